//! The verb `update`.

use serde_json::Value;

use crate::admission::attributes::Operation;
use crate::admission::webhooks;
use crate::api::request_body::read;
use crate::api::request_context::{Outcome, RequestContext, check_options, present};
use crate::api::verbs::owner_references::once;
use crate::api::verbs::write;
use crate::api::verbs::write::Written;
use crate::state::cluster::Cluster;
use crate::types::kinds;
use crate::types::object::meta;
use crate::types::status_error::StatusError;

/// `update`.
pub(crate) fn update(cluster: &mut Cluster, context: &RequestContext<'_>) -> Outcome {
    check_options(context.query, "UpdateOptions")?;
    Ok(update_object(cluster, context, read(context)?)?.answer())
}

/// Replaces an object.
pub(crate) fn update_object(
    cluster: &mut Cluster,
    context: &RequestContext<'_>,
    object: Value,
) -> Result<Written, StatusError> {
    let decoded = write::decode(context, object)?;
    let mut object = decoded.object;
    cluster.warned.extend(decoded.warnings);
    cluster.warned.extend(once(&mut object, false));
    let name = &context.target.name;
    write::check_namespace(context, &mut object)?;
    if meta(&object, "name").is_empty() {
        return Err(StatusError::bad_request(format!(
            "the name of the object ({name} based on URL) was undeterminable: name must be provided"
        )));
    }
    if meta(&object, "name") != name {
        return Err(StatusError::bad_request(format!(
            "the name of the object ({}) does not match the name on the URL ({name})",
            meta(&object, "name")
        )));
    }
    let Some(old) = present(cluster, context) else {
        if !kinds::creates_on_update(&context.kind) {
            return Err(StatusError::not_found(context.named(name)));
        }
        let sent = meta(&object, "uid");
        if !sent.is_empty() {
            return Err(StatusError::conflict(
                context.named(name),
                &uid_mismatch(context, sent, ""),
            ));
        }
        let mut object = write::track(cluster, context, None, object);
        webhooks::mutate(cluster, context, Operation::Create, &mut object, None)?;
        let object = write::store_new(cluster, context, object, decoded.shares_labels)?;
        return Ok(Written { code: 201, object });
    };
    let (sent, present) = (meta(&object, "uid"), meta(&old, "uid"));
    if !sent.is_empty() && sent != present {
        let why = uid_mismatch(context, sent, present);
        return Err(StatusError::conflict(context.named(name), &why));
    }
    let mut object = write::track(cluster, context, Some(&old), object);
    webhooks::mutate(cluster, context, Operation::Update, &mut object, Some(&old))?;
    cluster.warned.extend(once(&mut object, true));
    let object = write::store_change(cluster, context, &old, object)?;
    Ok(Written { code: 200, object })
}

/// The message of the store for a uid that is not the present one.
pub(crate) fn uid_mismatch(context: &RequestContext<'_>, sent: &str, present: &str) -> String {
    format!(
        "StorageError: invalid object, Code: 4, Key: {}, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in precondition: {sent}, UID in object meta: {present}",
        context.storage_key()
    )
}
