//! Namespaces, definitions, and the time that Pods are given to end.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::cluster::Cluster;
use crate::controller_set::Workload;
use crate::controllers::definition;
use crate::controllers::garbage;
use crate::controllers::namespace;
use crate::object::{finalizers, is_terminating, meta};
use crate::request_context::Ask;
use crate::status_error::{Named, StatusError};
use crate::store::{Key, KindKey};
use crate::tracked::Tracked;

fn namespaces() -> KindKey {
    (String::new(), "namespaces".to_owned())
}

/// Whether something may be created in a namespace.
pub(crate) fn check_namespace_active(
    cluster: &Cluster,
    ask: &Ask<'_>,
    object: &Value,
) -> Result<(), StatusError> {
    definition::check_not_terminating(ask, meta(object, "name"))?;
    let name = ask.namespace();
    if name.is_empty() {
        return Ok(());
    }
    let key = (String::new(), name.to_owned());
    if cluster.store.get(&namespaces(), &key).is_none() {
        return Err(StatusError::not_found(Named { group: "", what: "namespaces", name }));
    }
    if !cluster.following.terminating.contains(name) {
        return Ok(());
    }
    let named = ask.named(meta(object, "name"));
    let resource = match named.group {
        "" => named.what.to_owned(),
        group => format!("{}.{group}", named.what),
    };
    let message = format!(
        "{resource} {:?} is forbidden: unable to create new content in namespace {name} because it is being terminated",
        named.name
    );
    let mut details = json!({
        "name": named.name,
        "kind": named.what,
        "causes": [{
            "reason": "NamespaceTerminating",
            "message": format!("namespace {name} is being terminated"),
            "field": "metadata.namespace",
        }],
    });
    if !named.group.is_empty() {
        details["group"] = named.group.into();
    }
    Err(StatusError::new(403, "Forbidden", message).details(details))
}

/// Whether the account that a new Pod names is there. `default` is taken to be: it comes with time.
pub(crate) fn check_service_account(
    cluster: &Cluster,
    ask: &Ask<'_>,
    object: &Value,
) -> Result<(), StatusError> {
    let spec = &object["spec"];
    let text = |name: &str| spec[name].as_str().unwrap_or_default();
    let account = match text("serviceAccountName") {
        "" => text("serviceAccount"),
        account => account,
    };
    if !ask.kind.is("", "Pod") || matches!(account, "" | "default") {
        return Ok(());
    }
    let accounts = (String::new(), "serviceaccounts".to_owned());
    if cluster.object(&accounts, &(ask.namespace().to_owned(), account.to_owned())).is_some() {
        return Ok(());
    }
    let name = meta(object, "name");
    let message = format!(
        "pods {name:?} is forbidden: error looking up service account {}/{account}: serviceaccount {account:?} not found",
        ask.namespace()
    );
    let details = json!({"name": name, "kind": "pods"});
    Err(StatusError::new(403, "Forbidden", message).details(details))
}

/// What follows from a write at once.
pub(crate) fn after_write(cluster: &mut Cluster, ask: &Ask<'_>, object: &Value) {
    if ask.kind.is("apiextensions.k8s.io", "CustomResourceDefinition") {
        definition::establish(cluster, object);
    }
}

/// What follows from a removal at once.
pub(crate) fn after_removal(cluster: &mut Cluster, ask: &Ask<'_>, object: &Value) {
    if ask.kind.is("apiextensions.k8s.io", "CustomResourceDefinition") {
        definition::removed(cluster, object);
    } else if ask.kind.custom.is_some() {
        definition::finish_deletions(cluster);
    }
}

/// Namespaces and definitions are deleted in ways of their own. Gives what the delete answers, or nothing if the
/// kind is deleted like any other.
pub(crate) fn delete_specially(
    cluster: &mut Cluster,
    ask: &Ask<'_>,
    object: &Tracked,
    dry_run: bool,
) -> Result<Option<(Tracked, bool)>, StatusError> {
    if ask.kind.is("apiextensions.k8s.io", "CustomResourceDefinition") && !is_terminating(object) {
        return Ok(Some((definition::begin_deletion(cluster, object, dry_run), false)));
    }
    if !ask.kind.is("", "Namespace") {
        return Ok(None);
    }
    let name = meta(object, "name").to_owned();
    if matches!(name.as_str(), "default" | "kube-system" | "kube-public") {
        let message =
            format!("namespaces {name:?} is forbidden: this namespace may not be deleted");
        let details = json!({"name": name, "kind": "namespaces"});
        return Err(StatusError::new(403, "Forbidden", message).details(details));
    }
    let mut object = object.clone();
    if !is_terminating(&object) {
        object["metadata"]["deletionTimestamp"] = cluster.time().into();
        object["status"]["phase"] = "Terminating".into();
        if !dry_run {
            let stored = cluster.put(&namespaces(), &(String::new(), name), object);
            object = Arc::unwrap_or_clone(stored);
        }
    }
    Ok(Some((object, false)))
}

/// Empties a namespace that is being deleted, and lets it go when it is empty.
pub(crate) fn empty_namespaces(cluster: &mut Cluster) -> bool {
    let terminating: Vec<Key> =
        cluster.following.terminating.iter().map(|name| (String::new(), name.clone())).collect();
    let mut worked = false;
    for key in terminating {
        for (kind, inner) in namespace::contents(cluster, &key.1) {
            worked |= garbage::delete_quietly(cluster, &kind, &inner);
        }
        worked |= namespace::report_remaining(cluster, &key);
        if namespace::contents(cluster, &key.1).is_empty() {
            worked |= namespace::finalize(cluster, &key);
        }
    }
    worked
}

/// Ends the Pods whose time is over.
pub(crate) fn expire_graces(cluster: &mut Cluster) {
    // Where Pods live, their kubelet ends them.
    if cluster.controllers.workloads.has(Workload::Pods) {
        return;
    }
    let kind = (String::new(), "pods".to_owned());
    let Some(pods) = cluster.store.collection(&kind) else { return };
    let over: Vec<(Key, Arc<Tracked>)> = pods
        .objects
        .iter()
        .map(|(key, stored)| (key.clone(), stored.object()))
        .filter(|(_, pod)| {
            let ends = meta(pod, "deletionTimestamp").parse::<jiff::Timestamp>();
            ends.is_ok_and(|ends| ends <= cluster.now()) && finalizers(pod).is_empty()
        })
        .collect();
    for (key, pod) in over {
        cluster.remove(&kind, &key, &mut Arc::unwrap_or_clone(pod));
    }
}
