//! Reads members of objects.

use serde_json::Value;

use crate::types::object::meta;
use crate::types::object_key::Key;

/// The reference to the controller of an object.
pub(crate) fn controller(object: &Value) -> Option<&Value> {
    let list = object["metadata"]["ownerReferences"].as_array();
    list.into_iter().flatten().find(|owner| owner["controller"] == true)
}

/// Where an object lies.
pub(crate) fn key_of(object: &Value) -> Key {
    (meta(object, "namespace").to_owned(), meta(object, "name").to_owned())
}

/// A number, 0 if there is none.
pub(crate) fn number(value: &Value) -> i64 {
    value.as_i64().unwrap_or(0)
}

/// A text, empty if there is none.
pub(crate) fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// A time; the beginning of all if there is none.
pub(crate) fn time(value: &Value) -> jiff::Timestamp {
    text(value).parse().unwrap_or(jiff::Timestamp::UNIX_EPOCH)
}

/// A map of those counts that are not 0, as Go writes them.
pub(crate) fn counts(pairs: &[(&str, i64)]) -> Value {
    let map = pairs.iter().filter(|(_, count)| *count != 0);
    Value::Object(map.map(|(name, count)| ((*name).to_owned(), (*count).into())).collect())
}

/// The condition of a type.
pub(crate) fn condition<'a>(object: &'a Value, name: &str) -> Option<&'a Value> {
    object["conditions"].as_array().into_iter().flatten().find(|one| one["type"] == name)
}
