//! A Deployment with its ReplicaSets, and the annotations of these.

use crate::apply::managed_object::ManagedObject;
use crate::controllers::client::Client;
use crate::controllers::deployment::scaling::Bounds;
use crate::types::members::{number, text};
use crate::types::object::meta;
use serde_json::{Value, json};
use std::sync::Arc;

pub(crate) const CLIENT: Client =
    Client::controller("system:serviceaccount:kube-system:deployment-controller");

pub(crate) const COMPONENT: &str = "deployment-controller";
pub(crate) const HASH: &str = "pod-template-hash";
pub(crate) const REVISION: &str = "deployment.kubernetes.io/revision";
pub(crate) const HISTORY: &str = "deployment.kubernetes.io/revision-history";
pub(crate) const DESIRED: &str = "deployment.kubernetes.io/desired-replicas";
pub(crate) const MAX: &str = "deployment.kubernetes.io/max-replicas";

/// Annotations of a Deployment that its sets do not get.
pub(crate) const OWN: [&str; 6] = [
    "kubectl.kubernetes.io/last-applied-configuration",
    REVISION,
    HISTORY,
    DESIRED,
    MAX,
    "deprecated.deployment.rollback.to",
];

/// A Deployment and its sets.
pub(crate) struct Rollout {
    pub(crate) deployment: Arc<ManagedObject>,
    pub(crate) bounds: Bounds,
    /// The set of the current template.
    pub(crate) new: Option<Arc<ManagedObject>>,
    /// The other sets, oldest first.
    pub(crate) old: Vec<Arc<ManagedObject>>,
}

impl Rollout {
    pub(crate) fn all(&self) -> impl Iterator<Item = &Arc<ManagedObject>> {
        self.old.iter().chain(&self.new)
    }

    pub(crate) fn sum(&self, pointer: &str) -> i64 {
        self.all().map(|set| set.pointer(pointer).map_or(0, number)).sum()
    }

    pub(crate) fn wanted(&self) -> i64 {
        self.sum("/spec/replicas")
    }

    pub(crate) fn deadline(&self) -> Option<i64> {
        // The largest number means never.
        self.deployment["spec"]["progressDeadlineSeconds"]
            .as_i64()
            .filter(|seconds| *seconds < i64::from(i32::MAX))
    }
}

pub(crate) fn status_of(rollout: &mut Rollout) -> &mut Value {
    &mut Arc::make_mut(&mut rollout.deployment)["status"]
}

pub(crate) fn replace_in_rollout(rollout: &mut Rollout, set: &Arc<ManagedObject>) {
    let place = rollout.old.iter_mut().chain(&mut rollout.new);
    for old in place.filter(|old| meta(old, "uid") == meta(set, "uid")) {
        *old = set.clone();
    }
}

/// Whether the Deployment was scaled since its sets were last written.
pub(crate) fn is_scaled(rollout: &Rollout) -> bool {
    rollout.all().filter(|set| number(&set["spec"]["replicas"]) > 0).any(|set| {
        let annotated = &set["metadata"]["annotations"][DESIRED];
        annotated.is_string() && annotation_number(set, DESIRED) != rollout.bounds.replicas
    })
}

pub(crate) fn is_saturated(rollout: &Rollout, set: &Value) -> bool {
    let wanted = rollout.bounds.replicas;
    number(&set["spec"]["replicas"]) == wanted
        && annotation_number(set, DESIRED) == wanted
        && number(&set["status"]["availableReplicas"]) == wanted
}

pub(crate) fn is_complete(rollout: &Rollout) -> bool {
    let wanted = rollout.bounds.replicas;
    let updated = rollout.new.as_ref().map_or(0, |new| number(&new["status"]["replicas"]));
    updated == wanted
        && rollout.sum("/status/replicas") == wanted
        && rollout.sum("/status/availableReplicas") == wanted
}

pub(crate) fn max_replicas(rollout: &Rollout) -> i64 {
    rollout.bounds.replicas + rollout.bounds.surge
}

pub(crate) fn annotation_number(object: &Value, name: &str) -> i64 {
    text(&object["metadata"]["annotations"][name]).parse().unwrap_or(0)
}

pub(crate) fn revision(object: &Value) -> i64 {
    annotation_number(object, REVISION)
}

pub(crate) fn next_revision(rollout: &Rollout) -> i64 {
    rollout.old.iter().map(|set| revision(set)).max().unwrap_or(0) + 1
}

/// Those annotations that sets get.
pub(crate) fn annotations(deployment: &Value) -> Value {
    let mut annotations = deployment["metadata"]["annotations"].clone();
    match annotations.as_object_mut() {
        Some(map) => map.retain(|name, _| !OWN.contains(&name.as_str())),
        None => annotations = json!({}),
    }
    annotations
}

/// Whether two templates are the same but for the hash.
pub(crate) fn is_same(one: &Value, other: &Value) -> bool {
    let without_hash = |template: &Value| {
        let mut metadata = template["metadata"].clone();
        if let Some(labels) = metadata["labels"].as_object_mut() {
            labels.remove(HASH);
        }
        metadata
    };
    one["spec"] == other["spec"] && without_hash(one) == without_hash(other)
}
