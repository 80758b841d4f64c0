//! The verb `create`.

use serde_json::Value;

use crate::admission::attributes::Operation;
use crate::admission::webhooks;
use crate::api::request_body::read;
use crate::api::request_context::{Outcome, RequestContext, check_options};
use crate::api::verbs::owner_references::once;
use crate::api::verbs::write;
use crate::api::verbs::write::Written;
use crate::mutation::{Mutation, is_active};
use crate::state::cluster::Cluster;
use crate::types::object::meta;
use crate::types::status_error::{FieldError, StatusError};

/// `create`.
pub(crate) fn create(cluster: &mut Cluster, context: &RequestContext<'_>) -> Outcome {
    check_options(context.query, "CreateOptions")?;
    Ok(create_object(cluster, context, read(context)?)?.answer())
}

/// Creates an object.
pub(crate) fn create_object(
    cluster: &mut Cluster,
    context: &RequestContext<'_>,
    object: Value,
) -> Result<Written, StatusError> {
    let decoded = write::decode(context, object)?;
    let mut object = decoded.object;
    cluster.warned.extend(decoded.warnings);
    write::check_namespace(context, &mut object)?;
    cluster.warned.extend(once(&mut object, false));
    if meta(&object, "name").is_empty() && !meta(&object, "generateName").is_empty() {
        let base: String = meta(&object, "generateName").chars().take(58).collect();
        object["metadata"]["name"] = format!("{base}{}", cluster.suffix()).into();
    }
    if !meta(&object, "resourceVersion").is_empty() && meta(&object, "resourceVersion") != "0" {
        return Err(StatusError::unforeseen(
            "resourceVersion should not be set on objects to be created",
        ));
    }
    if meta(&object, "name").is_empty() {
        let error = FieldError::required("metadata.name", "name or generateName is required");
        return Err(StatusError::invalid(context.named_kind(""), &[error]));
    }
    let mut object = write::track(cluster, context, None, object);
    webhooks::mutate(cluster, context, Operation::Create, &mut object, None)?;
    cluster.warned.extend(once(&mut object, true));
    if is_active(Mutation::GenerateNameIsKept) {
        crate::types::object::unset(&mut object, "generateName");
    }
    let object = write::store_new(cluster, context, object, decoded.shares_labels)?;
    Ok(Written { code: 201, object })
}
