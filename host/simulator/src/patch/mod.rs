//! Patches other than server-side apply.

mod merge;
mod strategic;

use serde_json::Value;

use crate::schema::Schema;
use crate::status_error::StatusError;

/// The kinds of patches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// RFC 6902.
    Json,
    /// RFC 7386.
    Merge,
    /// Kubernetes' own.
    Strategic,
}

/// The object after a patch.
pub(crate) fn apply(
    kind: Kind,
    schema: &Schema,
    object: &Value,
    body: &[u8],
) -> Result<Value, StatusError> {
    let patch: Value = serde_json::from_slice(body)
        .or_else(|_| serde_yaml_ng::from_slice(body))
        .map_err(|error| StatusError::bad_request(format!("error decoding patch: {error}")))?;
    match kind {
        Kind::Json => json(object, patch),
        Kind::Merge => {
            let mut object = object.clone();
            merge::merge(&mut object, &patch);
            Ok(object)
        }
        Kind::Strategic => strategic::apply(schema, object, &patch),
    }
}

fn json(object: &Value, patch: Value) -> Result<Value, StatusError> {
    // The server tells nobody what it did not like.
    let refused = || {
        StatusError::new(
            422,
            "Invalid",
            "the server rejected our request due to an error in our request",
        )
        .details(serde_json::json!({}))
    };
    let Value::Array(operations) = patch else { return Err(refused()) };
    let mut object = object.clone();
    for mut operation in operations {
        loosen(&object, &mut operation);
        let step: json_patch::PatchOperation =
            serde_json::from_value(operation).map_err(|_| refused())?;
        json_patch::patch(&mut object, &[step]).map_err(|_| refused())?;
    }
    Ok(object)
}

/// The server is less strict than the RFC: a value may be left out for null, a member that is not there
/// can be replaced, and is equal to null.
fn loosen(object: &Value, operation: &mut Value) {
    let kind = operation["op"].as_str().unwrap_or_default().to_owned();
    if !matches!(kind.as_str(), "add" | "replace" | "test") {
        return;
    }
    if operation.get("value").is_none() {
        operation["value"] = Value::Null;
    }
    let path = operation["path"].as_str().unwrap_or_default().to_owned();
    let Some((parent, _)) = path.rsplit_once('/') else { return };
    let in_map = object.pointer(parent).is_some_and(Value::is_object);
    if !in_map || object.pointer(&path).is_some() {
        return;
    }
    if kind == "replace" || (kind == "test" && operation["value"].is_null()) {
        // Both leave null there, which says as much as nothing.
        operation["op"] = "add".into();
    }
}
