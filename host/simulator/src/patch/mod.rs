//! JSON patch, merge patch and strategic merge patch.

pub(crate) mod merge;
pub(crate) mod strategic;

use serde_json::Value;

use crate::api::request_body;
use crate::mutation::{Mutation, is_active};
use crate::types::schema::Schema;
use crate::types::status_error::StatusError;

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

/// The most operations of a JSON patch, as an API server limits them.
const OPERATIONS_MAX: usize = 10_000;

/// How many bytes a JSON patch may copy, as an API server limits them.
const COPIED_BYTES_MAX: usize = 3 << 20;

/// The object after a patch.
pub(crate) fn apply(
    kind: Kind,
    schema: &Schema,
    object: &Value,
    body: &[u8],
) -> Result<Value, StatusError> {
    let patch: Value = serde_json::from_slice(body)
        .or_else(|_| request_body::yaml(body))
        .map_err(|error| StatusError::bad_request(format!("error decoding patch: {error}")))?;
    match kind {
        Kind::Json => json(object, patch),
        Kind::Merge if !patch.is_object() => Err(undecoded(&patch)),
        Kind::Merge => {
            let mut object = object.clone();
            merge::merge(&mut object, &patch);
            Ok(object)
        }
        Kind::Strategic => strategic::apply(schema, object, &patch),
    }
}

fn json(object: &Value, patch: Value) -> Result<Value, StatusError> {
    // The server does not name the error.
    let refused = || {
        StatusError::new(
            422,
            "Invalid",
            "the server rejected our request due to an error in our request",
        )
        .details(serde_json::json!({}))
    };
    let text = |operation: &Value, name: &str| {
        operation.get(name).is_none_or(|value| value.is_string() || value.is_null())
    };
    let is_operation = |one: &Value| {
        one.is_object() && ["op", "path", "from"].into_iter().all(|name| text(one, name))
    };
    let operations = match patch {
        Value::Array(operations) if operations.iter().all(is_operation) => operations,
        other => return Err(undecoded(&other)),
    };
    if operations.len() > OPERATIONS_MAX {
        let message = format!(
            "The allowed maximum operations in a JSON patch is {OPERATIONS_MAX}, got {}",
            operations.len()
        );
        return Err(StatusError::new(413, "RequestEntityTooLarge", message));
    }
    let mut object = object.clone();
    let mut copied = 0_usize;
    for mut operation in operations {
        if operation["op"] == "copy" {
            let from = count(&object, operation["from"].as_str().unwrap_or_default(), false);
            let bytes = object.pointer(&from).map_or(0, |value| value.to_string().len());
            copied = copied.saturating_add(bytes);
            if copied > COPIED_BYTES_MAX {
                let message = format!(
                    "Unable to complete the copy, the accumulated size increase of copy is {copied}, exceeding the limit {COPIED_BYTES_MAX}"
                );
                return Err(StatusError::new(422, "Invalid", message));
            }
        }
        // A move resolves its target after it has removed its source.
        if operation["op"] == "move" && !is_active(Mutation::MoveLeavesWhatItMoved) {
            let from = count(&object, operation["from"].as_str().unwrap_or_default(), false);
            operation["value"] = object.pointer(&from).cloned().unwrap_or_default();
            operation["op"] = "add".into();
            let gone = serde_json::from_value(serde_json::json!({"op": "remove", "path": from}));
            json_patch::patch(&mut object, &[gone.map_err(|_| refused())?])
                .map_err(|_| refused())?;
        }
        loosen(&object, &mut operation);
        let step: json_patch::PatchOperation =
            serde_json::from_value(operation).map_err(|_| refused())?;
        json_patch::patch(&mut object, &[step]).map_err(|_| refused())?;
    }
    Ok(object)
}

/// The error for a body that is no patch of its type.
fn undecoded(patch: &Value) -> StatusError {
    let kind = match patch {
        Value::String(_) => "string",
        Value::Number(_) => "number",
        Value::Bool(_) => "bool",
        Value::Array(_) => "array",
        _ => "object",
    };
    StatusError::bad_request(format!("error decoding patch: json: cannot unmarshal {kind}"))
}

/// Places in lists may be counted from the end.
fn count(object: &Value, path: &str, adds: bool) -> String {
    let mut present = Some(object);
    let mut steps: Vec<String> = path.split('/').map(str::to_owned).collect();
    let last = steps.len() - 1;
    for (index, step) in steps.iter_mut().enumerate().skip(1) {
        if let Some(Value::Array(items)) = present
            && let Some(back) = step.strip_prefix('-').and_then(|text| text.parse::<usize>().ok())
        {
            let length = items.len() + usize::from(adds && index == last);
            if let Some(place) = length.checked_sub(back) {
                *step = place.to_string();
            }
        }
        present = present.and_then(|value| value.pointer(&format!("/{step}")));
    }
    steps.join("/")
}

/// The server is less strict than the RFC: a value may be left out for null, a member that is not
/// there can be replaced, and is equal to null.
fn loosen(object: &Value, operation: &mut Value) {
    let kind = operation["op"].as_str().unwrap_or_default().to_owned();
    for (name, adds) in
        [("from", false), ("path", matches!(kind.as_str(), "add" | "move" | "copy"))]
    {
        if let Some(path) = operation.get(name).and_then(Value::as_str) {
            operation[name] = count(object, path, adds).into();
        }
    }
    if kind == "move" {
        operation["op"] = "copy".into();
    }
    if kind == "copy" {
        // A missing member is copied as null.
        let from = operation["from"].as_str().unwrap_or_default();
        let parent = from.rsplit_once('/').and_then(|(parent, _)| object.pointer(parent));
        if parent.is_some_and(Value::is_object) && object.pointer(from).is_none() {
            operation["op"] = "add".into();
            operation["value"] = Value::Null;
        }
    }
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
    if kind == "replace" {
        operation["op"] = "add".into();
    } else if kind == "test" && operation["value"].is_null() {
        // A test compares with the current value.
        operation["value"] = object.pointer(parent).cloned().unwrap_or_default();
        operation["path"] = parent.into();
    }
}
