//! Merge patches.

use serde_json::{Map, Value};

use crate::mutation::{Mutation, is_active};

/// Merges `patch` into `object`: null removes a member.
pub(crate) fn merge(object: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        *object = patch.clone();
        return;
    };
    if !object.is_object() {
        *object = Value::Object(Map::new());
    }
    let Value::Object(members) = object else { return };
    for (name, value) in patch {
        if value.is_null() && !is_active(Mutation::MergePatchKeepsNull) {
            members.remove(name);
        } else {
            merge(members.entry(name.clone()).or_insert(Value::Null), value);
        }
    }
}
