//! Members of JSON objects: whether a user wrote them, and setting those that nobody wrote.

use innkeeper_sdk::serde_json::{Map, Value};

/// Returns the value at a path; `None` if it is missing or null.
pub(crate) fn written<'a>(object: &'a Map<String, Value>, path: &[&str]) -> Option<&'a Value> {
    let (first, rest) = path.split_first()?;
    let value = rest.iter().try_fold(object.get(*first)?, |value, member| value.get(member))?;
    (!value.is_null()).then_some(value)
}

/// Sets the value at a path if it is missing or null, and the objects on the way to it. Returns
/// whether it did: not if something else than an object is on the way.
pub(crate) fn fill(object: &mut Map<String, Value>, path: &[&str], value: Value) -> bool {
    let Some((last, parents)) = path.split_last() else { return false };
    let mut object = object;
    for member in parents {
        let parent = object.entry(*member).or_insert(Value::Null);
        if parent.is_null() {
            *parent = Value::Object(Map::new());
        }
        let Some(parent) = parent.as_object_mut() else { return false };
        object = parent;
    }
    let place = object.entry(*last).or_insert(Value::Null);
    let is_missing = place.is_null();
    if is_missing {
        *place = value;
    }
    is_missing
}
