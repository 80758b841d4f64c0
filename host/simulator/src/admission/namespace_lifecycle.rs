//! The admission plugin NamespaceLifecycle: admits creates in namespaces that exist and are not
//! being deleted. The same for definitions.

use serde_json::{Value, json};

use crate::api::request_context::RequestContext;
use crate::state::cluster::Cluster;
use crate::types::object::meta;
use crate::types::status_error::{Named, StatusError};

/// Refuses a create in a namespace that is missing or being deleted.
pub(crate) fn check_namespace_active(
    cluster: &Cluster,
    context: &RequestContext<'_>,
    object: &Value,
) -> Result<(), StatusError> {
    check_not_terminating(context, meta(object, "name"))?;
    let name = context.namespace();
    if name.is_empty() {
        return Ok(());
    }
    let key = (String::new(), name.to_owned());
    if cluster.store.get(&(String::new(), "namespaces".to_owned()), &key).is_none() {
        return Err(StatusError::not_found(Named { group: "", what: "namespaces", name }));
    }
    if !cluster.work_queue.terminating.contains(name) {
        return Ok(());
    }
    let named = context.named(meta(object, "name"));
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

/// Refuses a create of a kind whose definition is being deleted.
fn check_not_terminating(context: &RequestContext<'_>, name: &str) -> Result<(), StatusError> {
    match &context.kind.custom {
        Some(definition) if definition.terminating => Err(StatusError::refused(
            context.named(name),
            "create not allowed while custom resource definition is terminating",
        )),
        _ => Ok(()),
    }
}
