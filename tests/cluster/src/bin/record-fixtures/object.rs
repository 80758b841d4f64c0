//! Parts of a live object that a recording compares or keeps.

use serde_json::{Value, json};

pub(crate) fn version(object: &Value) -> Option<&str> {
    object["metadata"]["resourceVersion"].as_str()
}

/// The object with what differs between recordings of the same thing set to fixed values.
pub(crate) fn steady(mut object: Value) -> Value {
    const TIME: &str = "2026-01-01T00:00:00Z";
    let metadata = &mut object["metadata"];
    metadata["uid"] = json!("0a0a0a0a-0000-4000-8000-00000000000b");
    metadata["resourceVersion"] = json!("7");
    metadata["creationTimestamp"] = json!(TIME);
    for entry in metadata["managedFields"].as_array_mut().into_iter().flatten() {
        entry["time"] = json!(TIME);
    }
    object
}

pub(crate) fn without_managers(object: &Value) -> Value {
    let mut object = object.clone();
    if let Some(metadata) = object["metadata"].as_object_mut() {
        metadata.remove("managedFields");
    }
    object
}

pub(crate) fn without_versions(object: &Value) -> Value {
    let mut object = without_managers(object);
    if let Some(metadata) = object["metadata"].as_object_mut() {
        metadata.remove("resourceVersion");
        metadata.remove("generation");
    }
    object
}

/// The fields that a manager holds by apply.
pub(crate) fn entry<'a>(object: &'a Value, manager: &str) -> Option<&'a Value> {
    let entries = object["metadata"]["managedFields"].as_array()?;
    entries
        .iter()
        .find(|entry| entry["manager"] == manager && entry["operation"] == "Apply")
        .map(|entry| &entry["fieldsV1"])
}
