//! The admission plugin PersistentVolumeClaimResize: which claims may grow.

use serde_json::Value;

use crate::api::request_context::RequestContext;
use crate::state::cluster::Cluster;
use crate::types::kinds::claim::asked;
use crate::types::status_error::StatusError;

const WHY: &str = "only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must support resize";

/// A bound claim may grow if its class allows expansion.
pub(crate) fn check_resize(
    cluster: &Cluster,
    context: &RequestContext<'_>,
    new: &Value,
    old: &Value,
) -> Result<(), StatusError> {
    if !context.kind.is("", "PersistentVolumeClaim") || !context.target.subresource.is_empty() {
        return Ok(());
    }
    if asked(new) <= asked(old) || old["status"]["phase"] != "Bound" {
        return Ok(());
    }
    let class = old["spec"]["storageClassName"].as_str().unwrap_or_default();
    let kind = ("storage.k8s.io".to_owned(), "storageclasses".to_owned());
    let found = cluster.object(&kind, &(String::new(), class.to_owned()));
    if found.is_some_and(|class| class["allowVolumeExpansion"] == true) {
        return Ok(());
    }
    Err(StatusError::refused(context.named(&context.target.name), WHY))
}
