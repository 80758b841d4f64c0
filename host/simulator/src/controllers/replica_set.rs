//! The ReplicaSet controller: keeps the number of Pods.

use std::sync::Arc;

use jiff::SignedDuration;
use serde_json::{Value, json};

use crate::apply::managed_object::ManagedObject;
use crate::controllers::client;
use crate::controllers::client::{Client, PODS, REPLICA_SETS, Resource, owned_by};
use crate::controllers::event_recorder;
use crate::controllers::event_recorder::EventSpec;
use crate::state::cluster::{Cluster, later};
use crate::state::controller_set::Workload;
use crate::types::members::{condition, counts, key_of, number, text, time};
use crate::types::object::{is_terminating, meta};
use crate::types::object_key::Key;

/// A kind that has a number of Pods, and its controller.
#[derive(Debug)]
pub(crate) struct Replicated {
    pub(crate) resource: Resource,
    pub(crate) client: Client,
    /// Its name in Events.
    pub(crate) component: &'static str,
    pub(crate) workload: Workload,
    /// Whether its status counts the Pods that end.
    pub(crate) counts_terminating: bool,
}

const REPLICATED: Replicated = Replicated {
    resource: REPLICA_SETS,
    client: Client::controller("system:serviceaccount:kube-system:replicaset-controller"),
    component: "replicaset-controller",
    workload: Workload::ReplicaSets,
    counts_terminating: true,
};

/// The maximum number of Pods to create or delete at once.
const BURST_MAX: usize = 500;

/// Reconciles one ReplicaSet.
pub(crate) fn sync(cluster: &mut Cluster, key: &Key) {
    sync_as(cluster, key, &REPLICATED);
}

/// Reconciles one object of a kind that has a number of Pods.
pub(crate) fn sync_as(cluster: &mut Cluster, key: &Key, of: &Replicated) {
    let Some(set) = client::get(cluster, &of.resource, key) else { return };
    let all = client::controlled_by(cluster, &set, &PODS);
    let (mut active, ended): (Vec<Arc<ManagedObject>>, Vec<Arc<ManagedObject>>) =
        all.into_iter().filter(|pod| !has_ended(pod)).partition(|pod| !is_terminating(pod));
    let mut failure = None;
    if !is_terminating(&set) {
        let wanted = usize::try_from(number(&set["spec"]["replicas"])).unwrap_or(0);
        if active.len() < wanted {
            let missing = (wanted - active.len()).min(BURST_MAX);
            failure = create_pods(cluster, &set, of, missing, &mut active).err();
        } else if active.len() > wanted {
            let surplus = (active.len() - wanted).min(BURST_MAX);
            active.sort_by_key(|pod| std::cmp::Reverse(worth(pod)));
            for pod in active.split_off(active.len() - surplus) {
                if client::delete(cluster, &of.client, &PODS, &pod, None) {
                    let message = format!("Deleted pod: {}", meta(&pod, "name"));
                    let event = EventSpec::normal(of.component, "SuccessfulDelete", &message);
                    event_recorder::record(cluster, &of.client, &set, &event);
                }
            }
        }
    }
    if let Some(why) = &failure {
        let message = format!("Error creating: {why}");
        event_recorder::record(
            cluster,
            &of.client,
            &set,
            &EventSpec::warning(of.component, "FailedCreate", &message),
        );
        let again = client::after_seconds(cluster, 15);
        cluster.work_queue.wake_at(again, of.workload, key);
    }
    update_status(cluster, key, of, &active, ended.len(), failure.as_deref());
}

fn create_pods(
    cluster: &mut Cluster,
    set: &Value,
    of: &Replicated,
    count: usize,
    active: &mut Vec<Arc<ManagedObject>>,
) -> Result<(), String> {
    let mut pod = pod_of(&set["spec"]["template"], set, &of.resource);
    pod["metadata"]["generateName"] = format!("{}-", meta(set, "name")).into();
    for _ in 0..count {
        let made = client::create(cluster, &of.client, &PODS, meta(set, "namespace"), pod.clone())?;
        let message = format!("Created pod: {}", meta(&made, "name"));
        event_recorder::record(
            cluster,
            &of.client,
            set,
            &EventSpec::normal(of.component, "SuccessfulCreate", &message),
        );
        active.push(made);
    }
    Ok(())
}

fn update_status(
    cluster: &mut Cluster,
    key: &Key,
    of: &Replicated,
    active: &[Arc<ManagedObject>],
    terminating: usize,
    failure: Option<&str>,
) {
    let Some(set) = client::get(cluster, &of.resource, key) else { return };
    let labels = &set["spec"]["template"]["metadata"]["labels"];
    let labelled = active.iter().filter(|pod| {
        let mut wanted = labels.as_object().into_iter().flatten();
        wanted.all(|(name, value)| pod["metadata"]["labels"].get(name) == Some(value))
    });
    let count = |number: usize| i64::try_from(number).unwrap_or(i64::MAX);
    let min_ready = number(&set["spec"]["minReadySeconds"]);
    let available = active.iter().filter(|pod| {
        available_at(pod, min_ready).is_some_and(|available| available <= cluster.now())
    });
    let mut status = counts(&[
        ("fullyLabeledReplicas", count(labelled.count())),
        ("readyReplicas", count(active.iter().filter(|pod| is_ready(pod)).count())),
        ("availableReplicas", count(available.count())),
        ("observedGeneration", crate::types::object::generation(&set)),
    ]);
    status["replicas"] = active.len().into();
    if of.counts_terminating {
        status["terminatingReplicas"] = terminating.into();
    }
    if let Some(why) = failure {
        let known = condition(&set["status"], "ReplicaFailure").cloned();
        status["conditions"] = json!([known.unwrap_or_else(|| json!({
            "type": "ReplicaFailure", "status": "True", "reason": "FailedCreate",
            "message": why, "lastTransitionTime": cluster.time(),
        }))]);
    }
    let soonest = active.iter().filter_map(|pod| available_at(pod, min_ready));
    if let Some(soonest) = soonest.filter(|at| *at > cluster.now()).min() {
        cluster.work_queue.wake_at(soonest, of.workload, key);
    }
    if status != set["status"] {
        let mut set = Arc::unwrap_or_clone(set);
        set["status"] = status;
        let _ = client::replace(cluster, &of.client, &of.resource, "status", set);
    }
}

/// A Pod of a template, with a controller and without a name.
pub(crate) fn pod_of(template: &Value, owner: &Value, resource: &Resource) -> Value {
    let mut metadata = json!({ "ownerReferences": owned_by(owner, resource) });
    for member in ["labels", "annotations", "finalizers"] {
        if let Some(value) = template["metadata"].get(member) {
            metadata[member] = value.clone();
        }
    }
    json!({ "metadata": metadata, "spec": template["spec"] })
}

/// Whether a Pod has run to its end.
pub(crate) fn has_ended(pod: &Value) -> bool {
    matches!(text(&pod["status"]["phase"]), "Succeeded" | "Failed")
}

/// Whether a Pod is ready.
pub(crate) fn is_ready(pod: &Value) -> bool {
    condition(&pod["status"], "Ready").is_some_and(|ready| ready["status"] == "True")
}

/// When a Pod is or was available, if it is ready.
pub(crate) fn available_at(pod: &Value, min_ready_s: i64) -> Option<jiff::Timestamp> {
    let ready = condition(&pod["status"], "Ready").filter(|ready| ready["status"] == "True")?;
    Some(later(time(&ready["lastTransitionTime"]), SignedDuration::from_secs(min_ready_s)))
}

/// The sort key of Pods: the first are deleted first.
type Worth = (
    bool,
    u8,
    bool,
    i64,
    std::cmp::Reverse<jiff::Timestamp>,
    i64,
    std::cmp::Reverse<jiff::Timestamp>,
    Key,
);

fn worth(pod: &Value) -> Worth {
    let phase = match text(&pod["status"]["phase"]) {
        "Running" => 2,
        "Unknown" => 1,
        _ => 0,
    };
    let cost = &pod["metadata"]["annotations"]["controller.kubernetes.io/pod-deletion-cost"];
    let ready = condition(&pod["status"], "Ready");
    let since = ready.map_or(jiff::Timestamp::UNIX_EPOCH, |one| time(&one["lastTransitionTime"]));
    let restarts = number(&pod["status"]["containerStatuses"][0]["restartCount"]);
    (
        !text(&pod["spec"]["nodeName"]).is_empty(),
        phase,
        is_ready(pod),
        text(cost).parse().unwrap_or(0),
        // Pods that have been ready, or have existed, longest are kept.
        std::cmp::Reverse(since),
        -restarts,
        std::cmp::Reverse(time(&pod["metadata"]["creationTimestamp"])),
        key_of(pod),
    )
}
