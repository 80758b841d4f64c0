//! The fields from which the rules decide.

use innkeeper_contract::Kind;

use crate::FieldMask;

/// The fields that the rules read of objects of any kind.
const OF_ANY: [&[&str]; 2] = [&["status", "observedGeneration"], &["status", "conditions"]];

/// Of a workload with replicas.
const OF_REPLICAS: [&[&str]; 11] = [
    &["spec", "replicas"],
    &["spec", "progressDeadlineSeconds"],
    &["spec", "updateStrategy"],
    &["status", "replicas"],
    &["status", "updatedReplicas"],
    &["status", "readyReplicas"],
    &["status", "availableReplicas"],
    &["status", "currentReplicas"],
    &["status", "fullyLabeledReplicas"],
    &["status", "currentRevision"],
    &["status", "updateRevision"],
];

const OF_DAEMON_SET: [&[&str]; 5] = [
    &["status", "desiredNumberScheduled"],
    &["status", "currentNumberScheduled"],
    &["status", "updatedNumberScheduled"],
    &["status", "numberAvailable"],
    &["status", "numberReady"],
];

const OF_POD: [&[&str]; 2] = [&["status", "phase"], &["status", "containerStatuses"]];

const OF_CLAIM: [&[&str]; 1] = [&["status", "phase"]];

const OF_SERVICE: [&[&str]; 2] = [&["spec", "type"], &["spec", "clusterIP"]];

const OF_JOB: [&[&str]; 4] = [
    &["spec", "parallelism"],
    &["spec", "completions"],
    &["status", "failed"],
    &["status", "startTime"],
];

/// The fields of an object that decide about its readiness ([`of`](super::of)), in addition to its
/// head: an object with these fields only is as ready as the whole one.
pub fn fields(kind: &Kind) -> FieldMask {
    let of_kind: &[&[&str]] = match (kind.group(), kind.kind.as_str()) {
        ("apps", "Deployment" | "StatefulSet" | "ReplicaSet") => &OF_REPLICAS,
        ("apps", "DaemonSet") => &OF_DAEMON_SET,
        ("", "Pod") => &OF_POD,
        ("", "PersistentVolumeClaim") => &OF_CLAIM,
        ("", "Service") => &OF_SERVICE,
        ("batch", "Job") => &OF_JOB,
        _ => &[],
    };
    FieldMask::of_paths(&[&OF_ANY, of_kind].concat())
}
