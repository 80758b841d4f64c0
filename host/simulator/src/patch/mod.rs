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
pub(crate) fn apply(kind: Kind, schema: &Schema, object: &Value, body: &[u8]) -> Result<Value, StatusError> {
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
    let refused = |text: String| {
        StatusError::new(422, "Invalid", "the server rejected our request due to an error in our request")
            .details(serde_json::json!({"causes": [{"reason": "UnexpectedServerResponse", "message": text}]}))
    };
    let patch: json_patch::Patch = serde_json::from_value(patch)
        .map_err(|error| StatusError::bad_request(format!("error decoding patch: {error}")))?;
    let mut object = object.clone();
    json_patch::patch(&mut object, &patch).map_err(|error| refused(error.to_string()))?;
    Ok(object)
}
