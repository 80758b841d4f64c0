//! The controller of namespaces: empties those that are being deleted and reports what remains.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};

use crate::controllers::client;
use crate::controllers::client::{Client, NAMESPACES};
use crate::controllers::garbage_collector;
use crate::state::cluster::Cluster;
use crate::types::object::finalizers;
use crate::types::object_key::{Key, KindKey};

const CONTROLLER: Client =
    Client::controller("system:serviceaccount:kube-system:namespace-controller");

/// Condition, and reason and message while nothing is wrong.
const CONDITIONS: [(&str, &str, &str); 5] = [
    (
        "NamespaceDeletionDiscoveryFailure",
        "ResourcesDiscovered",
        "All resources successfully discovered",
    ),
    (
        "NamespaceDeletionGroupVersionParsingFailure",
        "ParsedGroupVersions",
        "All legacy kube types successfully parsed",
    ),
    (
        "NamespaceDeletionContentFailure",
        "ContentDeleted",
        "All content successfully deleted, may be waiting on finalization",
    ),
    (LEFT, "ContentRemoved", "All content successfully removed"),
    (HELD, "ContentHasNoFinalizers", "All content-preserving finalizers finished"),
];
const LEFT: &str = "NamespaceContentRemaining";
const HELD: &str = "NamespaceFinalizersRemaining";

/// Empties the namespaces that are being deleted, and removes those that are empty.
pub(crate) fn empty_namespaces(cluster: &mut Cluster) -> bool {
    let terminating: Vec<Key> =
        cluster.work_queue.terminating.iter().map(|name| (String::new(), name.clone())).collect();
    let mut worked = false;
    for key in terminating {
        for (kind, inner) in contents(cluster, &key.1) {
            worked |= garbage_collector::delete_quietly(cluster, &kind, &inner);
        }
        worked |= report_remaining(cluster, &key);
        if contents(cluster, &key.1).is_empty() {
            worked |= finalize(cluster, &key);
        }
    }
    worked
}

/// The objects in a namespace.
pub(crate) fn contents(cluster: &Cluster, namespace: &str) -> Vec<(KindKey, Key)> {
    cluster
        .store
        .collections()
        .flat_map(|(kind, one)| one.objects.keys().map(move |key| (kind.clone(), key.clone())))
        .filter(|(_, inner)| inner.0 == namespace)
        .collect()
}

/// Writes the remaining objects to the status of a namespace. Returns whether that changed it.
pub(crate) fn report_remaining(cluster: &mut Cluster, key: &Key) -> bool {
    let Some(present) = client::get(cluster, &NAMESPACES, key) else { return false };
    let (mut kinds, mut holders) = (BTreeMap::new(), BTreeMap::new());
    for (kind, inner) in contents(cluster, &key.1) {
        *kinds.entry(format!("{}.{}", kind.1, kind.0)).or_insert(0) += 1;
        for finalizer in cluster.object(&kind, &inner).iter().flat_map(|one| finalizers(one)) {
            *holders.entry(finalizer).or_insert(0) += 1;
        }
    }
    let texts = |counts: &BTreeMap<String, i32>, has: &str| {
        let texts =
            counts.iter().map(|(name, count)| format!("{name} {has} {count} resource instances"));
        texts.collect::<Vec<_>>().join(", ")
    };
    let mut namespace = Value::clone(&present);
    let mut conditions = Vec::new();
    for (kind, reason, message) in CONDITIONS {
        let wrong = match kind {
            LEFT if !kinds.is_empty() => Some((
                "SomeResourcesRemain",
                format!("Some resources are remaining: {}", texts(&kinds, "has")),
            )),
            HELD if !holders.is_empty() => Some((
                "SomeFinalizersRemain",
                format!(
                    "Some content in the namespace has finalizers remaining: {}",
                    texts(&holders, "in")
                ),
            )),
            _ => None,
        };
        let status = if wrong.is_some() { "True" } else { "False" };
        let (reason, message) = wrong.unwrap_or((reason, message.to_owned()));
        let before = present["status"]["conditions"].as_array().into_iter().flatten();
        let before = before.into_iter().find(|one| one["type"] == kind && one["status"] == status);
        let since =
            before.map_or_else(|| cluster.time().into(), |one| one["lastTransitionTime"].clone());
        conditions.push(json!({
            "type": kind, "status": status, "reason": reason, "message": message,
            "lastTransitionTime": since,
        }));
    }
    namespace["status"]["conditions"] = conditions.into();
    if namespace == **present {
        return false;
    }
    client::replace(cluster, &CONTROLLER, &NAMESPACES, "status", namespace).is_ok()
}

/// Removes an empty namespace, unless a finalizer holds it. Returns whether anything changed.
pub(crate) fn finalize(cluster: &mut Cluster, key: &Key) -> bool {
    let kind = NAMESPACES.key();
    let Some(present) = cluster.object(&kind, key) else { return false };
    let known = present["spec"].get("finalizers").is_some();
    let mut namespace = Arc::unwrap_or_clone(present);
    if let Some(spec) = namespace["spec"].as_object_mut() {
        spec.remove("finalizers");
    }
    if finalizers(&namespace).is_empty() {
        cluster.remove(&kind, key, &mut namespace);
        return true;
    }
    if known {
        cluster.put(&kind, key, namespace);
    }
    known
}
