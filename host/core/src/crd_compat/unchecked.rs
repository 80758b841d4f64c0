//! Constraints of a new definition that the check of stored objects skips.

use serde_json::{Map, Value};

use super::findings::Findings;
use super::{objects, versions};

/// Keywords whose schemas constrain the value itself.
const LOGICAL: [&str; 4] = ["allOf", "anyOf", "oneOf", "not"];

/// Adds each pattern, format and rule of `after` that `before` does not have at the same place.
pub(super) fn find(before: &Value, after: &Value, found: &mut Findings) {
    for version in versions::all(after) {
        let old = versions::named(before, versions::name_of(version));
        let old = old.map_or(Value::Null, versions::schema_of);
        find_in(&old, &versions::schema_of(version), &mut String::new(), found);
    }
}

fn find_in(old: &Value, new: &Value, path: &mut String, found: &mut Findings) {
    if old == new || found.is_full() {
        return;
    }
    let differs = |keyword: &str| new.get(keyword).is_some_and(|now| old.get(keyword) != Some(now));
    for (keyword, what) in objects::UNCHECKED {
        if differs(keyword) {
            found.add_at_once(path, what);
        }
    }
    for keyword in LOGICAL.into_iter().filter(|keyword| differs(keyword)) {
        if new.get(keyword).is_some_and(has_unchecked) {
            found.add_at_once(path, keyword);
        }
    }
    let length = path.len();
    let properties = new.get("properties").and_then(Value::as_object);
    for (name, member) in properties.into_iter().flatten() {
        path.push('.');
        path.push_str(name);
        let old = old.get("properties").and_then(|properties| properties.get(name));
        find_in(old.unwrap_or(&Value::Null), member, path, found);
        path.truncate(length);
    }
    for (keyword, place) in [("additionalProperties", "{}"), ("items", "[]")] {
        if let Some(inner) = new.get(keyword) {
            path.push_str(place);
            find_in(old.get(keyword).unwrap_or(&Value::Null), inner, path, found);
            path.truncate(length);
        }
    }
}

/// Whether a schema, or one within it, has a keyword that the check skips.
fn has_unchecked(schema: &Value) -> bool {
    let is_unchecked = |members: &Map<String, Value>| {
        objects::UNCHECKED.iter().any(|(keyword, _)| members.contains_key(*keyword))
    };
    match schema {
        Value::Object(members) => is_unchecked(members) || members.values().any(has_unchecked),
        Value::Array(items) => items.iter().any(has_unchecked),
        _ => false,
    }
}
