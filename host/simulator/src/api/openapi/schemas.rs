//! Schemas of built-in types, as published.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use crate::types::builtin::{raw_types, table};
use crate::types::descriptions::texts;

/// How a schema names another one.
pub(crate) const REFERENCE: &str = "#/components/schemas/";

/// The types of the kinds of a group and version: `apps/v1`.
pub(crate) fn of_group(id: &str, schemas: &mut Map<String, Value>) {
    for (kind, name) in &table().kinds {
        if kind.split(' ').next() == Some(id)
            && let Some(schema) = published(name)
        {
            schemas.insert(name.clone(), schema);
        }
    }
}

/// Adds the types that others name.
pub(crate) fn complete(schemas: &mut Map<String, Value>) {
    let mut wanted = BTreeSet::new();
    for schema in schemas.values() {
        references(schema, &mut wanted);
    }
    while let Some(name) = wanted.pop_first() {
        if schemas.contains_key(&name) {
            continue;
        }
        if let Some(schema) = published(&name) {
            references(&schema, &mut wanted);
            schemas.insert(name, schema);
        }
    }
}

fn references(value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(map) => {
            for (name, inner) in map {
                match inner.as_str().and_then(|text| text.strip_prefix(REFERENCE)) {
                    Some(other) if name == "$ref" => {
                        found.insert(other.to_owned());
                    }
                    _ => references(inner, found),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| references(item, found)),
        _ => {}
    }
}

/// A type as the real server publishes it.
pub(crate) fn published(name: &str) -> Option<Value> {
    let kept = raw_types().get(name)?;
    let mut schema = full(kept, texts().description(name, ""));
    for (field, property) in kept["properties"].as_object().into_iter().flatten() {
        schema["properties"][field] = full(property, texts().description(name, field));
    }
    let either = match name.rsplit('.').next() {
        Some("IntOrString") => json!([{"type": "integer"}, {"type": "string"}]),
        Some("Quantity") => json!([{"type": "string"}, {"type": "number"}]),
        _ => Value::Null,
    };
    if either.is_array() {
        schema["oneOf"] = either;
        if let Some(members) = schema.as_object_mut() {
            members.remove("type");
        }
    }
    let kind = table().kinds.iter().find(|(_, type_name)| *type_name == name);
    if let Some((id, kind)) = kind.and_then(|(kind, _)| kind.split_once(' ')) {
        let (group, version) = id.split_once('/').unwrap_or(("", id));
        schema["x-kubernetes-group-version-kind"] =
            json!([{"group": group, "kind": kind, "version": version}]);
    }
    Some(schema)
}

/// Publishes a schema of which the table keeps only the needed members.
fn full(kept: &Value, description: Option<&str>) -> Value {
    let mut schema = Map::new();
    if let Some(text) = description {
        schema.insert("description".to_owned(), text.into());
    }
    for (name, value) in kept.as_object().into_iter().flatten() {
        let value = match name.as_str() {
            "$ref" | "x-go" => continue,
            "properties" => value
                .as_object()
                .into_iter()
                .flatten()
                .map(|(name, one)| (name.clone(), full(one, None)))
                .collect::<Map<_, _>>()
                .into(),
            "items" | "additionalProperties" if value.is_object() => full(value, None),
            _ => value.clone(),
        };
        schema.insert(name.clone(), value);
    }
    if let Some(name) = kept["$ref"].as_str() {
        let reference = format!("{REFERENCE}{name}");
        // A schema with `$ref` may have no other member.
        if schema.is_empty() {
            schema.insert("$ref".to_owned(), reference.into());
        } else {
            schema.insert("allOf".to_owned(), json!([{ "$ref": reference }]));
        }
    }
    Value::Object(schema)
}
