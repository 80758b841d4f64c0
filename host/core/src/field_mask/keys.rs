//! The keys of an item of a list: names, and values as JSON text.

use std::collections::BTreeMap;

use serde_json::Value;
use serde_json::value::RawValue;

use crate::object::raw_json::Members;

/// The names of the keys, in order.
pub(super) type KeyNames = Box<[Box<str>]>;

/// The values of the keys, in the order of the names.
pub(super) type KeyValues = Box<[Box<str>]>;

/// Reads the keys of an element: an object of at least one scalar.
pub(super) fn read(text: &str) -> Option<(KeyNames, KeyValues)> {
    let keys: BTreeMap<Box<str>, Value> = serde_json::from_str(text).ok()?;
    let mut values = Vec::new();
    for value in keys.values() {
        values.push(scalar(value)?);
    }
    (!keys.is_empty()).then(|| (keys.into_keys().collect(), values.into()))
}

/// The values of these keys in an item; `None` if it is no object, or lacks one.
pub(super) fn of_item(names: &KeyNames, item: &RawValue) -> Option<KeyValues> {
    let members: Members<'_> = serde_json::from_str(item.get()).ok()?;
    let value = |name: &str| {
        let value: Value = serde_json::from_str(members.get(name)?.get()).ok()?;
        scalar(&value)
    };
    names.iter().map(|name| value(name)).collect()
}

/// The text of a scalar; `None` for other values.
fn scalar(value: &Value) -> Option<Box<str>> {
    let is_scalar = value.is_string() || value.is_number() || value.is_boolean();
    is_scalar.then(|| value.to_string().into())
}
