//! Effects of a write within the request, and kinds with their own delete.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::api::request_context::RequestContext;
use crate::apply::managed_object::ManagedObject;
use crate::state::cluster::Cluster;
use crate::types::object::{is_terminating, meta};
use crate::types::status_error::StatusError;

/// Runs the immediate effects of a write.
pub(crate) fn after_write(cluster: &mut Cluster, context: &RequestContext<'_>, object: &Value) {
    if context.kind.is("apiextensions.k8s.io", "CustomResourceDefinition") {
        (cluster.definition_hooks.written)(cluster, object);
    }
}

/// Runs the immediate effects of a removal.
pub(crate) fn after_removal(cluster: &mut Cluster, context: &RequestContext<'_>, object: &Value) {
    if context.kind.is("apiextensions.k8s.io", "CustomResourceDefinition") {
        (cluster.definition_hooks.removed)(cluster, object);
    } else if context.kind.custom.is_some() {
        (cluster.definition_hooks.custom_object_removed)(cluster);
    }
}

/// Deletes a namespace or a definition, which have their own delete. Returns the response, or
/// `None` for any other kind.
pub(crate) fn delete_specially(
    cluster: &mut Cluster,
    context: &RequestContext<'_>,
    object: &ManagedObject,
    dry_run: bool,
) -> Result<Option<(ManagedObject, bool)>, StatusError> {
    if context.kind.is("apiextensions.k8s.io", "CustomResourceDefinition")
        && !is_terminating(object)
    {
        return Ok(Some((
            (cluster.definition_hooks.begin_deletion)(cluster, object, dry_run),
            false,
        )));
    }
    if !context.kind.is("", "Namespace") {
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
            let stored = cluster.put(
                &(String::new(), "namespaces".to_owned()),
                &(String::new(), name),
                object,
            );
            object = Arc::unwrap_or_clone(stored);
        }
    }
    Ok(Some((object, false)))
}
