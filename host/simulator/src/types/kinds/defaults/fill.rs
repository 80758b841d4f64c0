//! Fills in members that are absent.

use serde_json::Value;

/// Puts `value` at `name` if nothing is there.
pub(crate) fn or(object: &mut Value, name: &str, value: Value) {
    if object.get(name).is_none_or(Value::is_null) {
        object[name] = value;
    }
}

pub(crate) fn or_text(object: &mut Value, name: &str, value: &str) {
    if object[name].as_str().unwrap_or_default().is_empty() {
        object[name] = value.into();
    }
}

pub(crate) fn each(object: &mut Value, name: &str, act: &mut dyn FnMut(&mut Value)) {
    if let Some(Value::Array(items)) = object.get_mut(name) {
        for item in items {
            act(item);
        }
    }
}
