//! Schemas in normal form, in which two schemas that the API server treats alike are equal.

use std::sync::LazyLock;

use serde_json::{Map, Value};

/// Keywords that constrain no value.
const DOCUMENTATION: [&str; 4] = ["description", "title", "example", "externalDocs"];

/// Keywords whose `false` means the same as their absence.
const FLAGS: [&str; 7] = [
    "nullable",
    "uniqueItems",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "x-kubernetes-preserve-unknown-fields",
    "x-kubernetes-int-or-string",
    "x-kubernetes-embedded-resource",
];

/// The largest integer up to which every integer has an exact float.
const EXACT_MAX: f64 = 9_007_199_254_740_992.0;

/// The schema of members under `additionalProperties: true`: the API server keeps the members and
/// prunes all that is in them.
pub(super) static EMPTIED: LazyLock<Value> = LazyLock::new(|| Value::Object(Map::new()));

/// Returns a schema without documentation and without keywords that repeat a default, with whole
/// numbers as integers and required names in order.
pub(super) fn normal(schema: &Value) -> Value {
    let Value::Object(members) = schema else { return schema.clone() };
    let mut normal_members = Map::new();
    for (name, value) in members {
        if let Some(value) = keyword(name, value) {
            normal_members.insert(name.clone(), value);
        }
    }
    // The API server adds this `anyOf` next to the flag; it means the same.
    let either = serde_json::json!([{"type": "integer"}, {"type": "string"}]);
    if normal_members.get("x-kubernetes-int-or-string") == Some(&Value::Bool(true))
        && normal_members.get("anyOf") == Some(&either)
    {
        normal_members.remove("anyOf");
    }
    Value::Object(normal_members)
}

/// The normal form of one keyword; `None` if it constrains nothing.
fn keyword(name: &str, value: &Value) -> Option<Value> {
    let is_empty = match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        _ => false,
    };
    if is_empty || DOCUMENTATION.contains(&name) || FLAGS.contains(&name) && *value == false {
        return None;
    }
    Some(match (name, value) {
        ("x-kubernetes-list-type", Value::String(kind)) if kind == "atomic" => return None,
        ("x-kubernetes-map-type", Value::String(kind)) if kind == "granular" => return None,
        ("properties", Value::Object(members)) if members.is_empty() => return None,
        ("properties", Value::Object(members)) => {
            let all = members.iter().map(|(name, member)| (name.clone(), normal(member)));
            Value::Object(all.collect())
        }
        ("items" | "additionalProperties" | "not", _) => normal(value),
        ("allOf" | "anyOf" | "oneOf", Value::Array(all)) => all.iter().map(normal).collect(),
        ("required", Value::Array(names)) => {
            let mut names = names.clone();
            names.sort_by_key(ToString::to_string);
            names.dedup();
            Value::Array(names)
        }
        _ => number(value),
    })
}

/// Returns a value with its whole numbers as integers.
pub(super) fn number(value: &Value) -> Value {
    match value {
        Value::Number(given) => match given.as_f64() {
            Some(float) if given.is_f64() && float.fract() == 0.0 && float.abs() < EXACT_MAX =>
            {
                #[allow(clippy::cast_possible_truncation, reason = "it is whole and in bounds")]
                Value::from(float as i64)
            }
            _ => value.clone(),
        },
        Value::Array(items) => items.iter().map(number).collect(),
        Value::Object(members) => {
            Value::Object(members.iter().map(|(name, one)| (name.clone(), number(one))).collect())
        }
        _ => value.clone(),
    }
}

/// Adds the members that every Kubernetes object has (`apiVersion`, `kind`, `metadata`) to the
/// schema of a whole object, as the API server does.
pub(super) fn with_type_and_object_meta(mut schema: Value) -> Value {
    let text = || serde_json::json!({"type": "string"});
    let Some(members) = schema.as_object_mut() else { return schema };
    let Some(properties) = object_in(members, "properties") else { return schema };
    for name in ["apiVersion", "kind"] {
        properties.entry(name).or_insert_with(text);
    }
    if let Some(metadata) = object_in(properties, "metadata") {
        metadata.insert("type".into(), "object".into());
        metadata.insert("x-kubernetes-preserve-unknown-fields".into(), true.into());
        if let Some(names) = object_in(metadata, "properties") {
            for name in ["name", "generateName"] {
                names.entry(name).or_insert_with(text);
            }
        }
    }
    schema
}

/// Returns the object under a name, and makes it if there is none; `None` if the value there is no
/// object.
fn object_in<'a>(
    members: &'a mut Map<String, Value>,
    name: &str,
) -> Option<&'a mut Map<String, Value>> {
    members.entry(name).or_insert_with(|| Value::Object(Map::new())).as_object_mut()
}
