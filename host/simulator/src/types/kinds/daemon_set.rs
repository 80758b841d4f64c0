//! The generation of a DaemonSet's template, which old clients find in an annotation.

use serde_json::{Value, json};

/// The annotation.
const ANNOTATION: &str = "deprecated.daemonset.template.generation";

fn generation(object: &Value) -> i64 {
    let text = object["metadata"]["annotations"][ANNOTATION].as_str().unwrap_or_default();
    text.parse().unwrap_or(0)
}

fn set(object: &mut Value, generation: i64) {
    if !object["metadata"]["annotations"].is_object() {
        object["metadata"]["annotations"] = json!({});
    }
    object["metadata"]["annotations"][ANNOTATION] = generation.to_string().into();
}

/// Every DaemonSet that is read has it.
pub(crate) fn read(object: &mut Value) {
    let generation = generation(object);
    set(object, generation);
}

/// A new one's template is at least the first.
pub(crate) fn created(object: &mut Value) {
    let generation = generation(object).max(1);
    set(object, generation);
}

/// It grows with the template, and cannot be written.
pub(crate) fn updated(new: &mut Value, old: &Value) {
    let changed = new["spec"]["template"] != old["spec"]["template"];
    set(new, generation(old) + i64::from(changed));
}
