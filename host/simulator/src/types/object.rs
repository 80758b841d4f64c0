//! Reads and changes the metadata that all objects have.

use serde_json::{Map, Value, json};

/// A text in the metadata, empty if it is not there.
pub(crate) fn meta<'a>(object: &'a Value, name: &str) -> &'a str {
    object["metadata"][name].as_str().unwrap_or_default()
}

/// The finalizers.
pub(crate) fn finalizers(object: &Value) -> Vec<String> {
    let list = object["metadata"]["finalizers"].as_array();
    list.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

/// Replaces the finalizers.
pub(crate) fn set_finalizers(object: &mut Value, finalizers: &[String]) {
    if finalizers.is_empty() {
        unset(object, "finalizers");
    } else {
        object["metadata"]["finalizers"] = finalizers.to_vec().into();
    }
}

/// Whether the object is being deleted.
pub(crate) fn is_terminating(object: &Value) -> bool {
    object["metadata"]["deletionTimestamp"].is_string()
}

/// Takes a member out of the metadata.
pub(crate) fn unset(object: &mut Value, name: &str) {
    if let Some(metadata) = object["metadata"].as_object_mut() {
        metadata.remove(name);
    }
}

/// Copies a member of the metadata, or its absence.
pub(crate) fn copy_meta(from: &Value, to: &mut Value, name: &str) {
    match from["metadata"].get(name) {
        Some(value) if to["metadata"].get(name) == Some(value) => {}
        Some(value) => to["metadata"][name] = value.clone(),
        None => unset(to, name),
    }
}

/// Copies a member of the object, or its absence.
pub(crate) fn copy(from: &Value, to: &mut Value, name: &str) {
    match from.get(name) {
        // What is the same already is not copied.
        Some(value) if to.get(name) == Some(value) => {}
        Some(value) => to[name] = value.clone(),
        None => {
            if let Some(map) = to.as_object_mut() {
                map.remove(name);
            }
        }
    }
}

/// Only the status of `new`, in what is otherwise `old`.
pub(crate) fn only_status(new: &mut Value, old: &Value) {
    let mut result = old.clone();
    copy(new, &mut result, "status");
    *new = result;
}

/// The object with another status.
pub(crate) fn with_status(object: &Value, status: Value) -> Value {
    let members = object.as_object().into_iter().flatten();
    let members = members.filter(|(name, _)| *name != "status");
    let mut result: Map<_, _> =
        members.map(|(name, value)| (name.clone(), value.clone())).collect();
    result.insert("status".to_owned(), status);
    result.into()
}

/// The object as a map, with metadata that is a map; `None` if it is neither.
pub(crate) fn with_metadata(value: Value) -> Option<Value> {
    let Value::Object(mut map) = value else { return None };
    match map.get("metadata") {
        None | Some(Value::Null) => {
            map.insert("metadata".to_owned(), Value::Object(Map::new()));
        }
        Some(Value::Object(_)) => {}
        Some(_) => return None,
    }
    Some(Value::Object(map))
}

/// The generation; 0 if there is none.
pub(crate) fn generation(object: &Value) -> i64 {
    object["metadata"]["generation"].as_i64().unwrap_or(0)
}

/// Only what every object has, in a version of the group `meta.k8s.io`.
pub(crate) fn partial(object: &Value, version: &str) -> Value {
    json!({
        "kind": "PartialObjectMetadata",
        "apiVersion": version,
        "metadata": object["metadata"],
    })
}
