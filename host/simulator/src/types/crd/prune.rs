//! Prunes members that the schema of a custom resource does not have.

use std::sync::LazyLock;

use serde_json::Value;

use crate::types::field_path::FieldPath;
use crate::types::schema::{Additional, Schema};

/// Drops the members of `value` that the schema does not name. Returns their paths.
pub(crate) fn prune(schema: &Schema, value: &mut Value) -> Vec<String> {
    let mut dropped = Vec::new();
    walk(schema, value, &FieldPath::root(""), &mut dropped);
    dropped
}

/// The schema of members under `additionalProperties: true`: they stay, and what is in them goes.
static UNNAMED: LazyLock<Schema> = LazyLock::new(Schema::default);

fn walk(schema: &Schema, value: &mut Value, path: &FieldPath<'_>, dropped: &mut Vec<String>) {
    let schema = schema.resolved();
    match value {
        Value::Object(map) => {
            map.retain(|name, member| {
                let below = path.member(name);
                let always =
                    schema.embedded && matches!(name.as_str(), "apiVersion" | "kind" | "metadata");
                let inner = match (schema.properties.get(name), &schema.additional) {
                    (Some(inner), _) => Some(inner),
                    (None, Additional::Of(inner)) => Some(&**inner),
                    (None, Additional::Anything) => Some(&*UNNAMED),
                    _ => None,
                };
                match inner {
                    Some(inner) => {
                        walk(inner, member, &below, dropped);
                        true
                    }
                    None if schema.preserve || always || schema.free => true,
                    None => {
                        dropped.push(below.to_string());
                        false
                    }
                }
            });
        }
        Value::Array(items) => {
            let inner = match &schema.items {
                Some(inner) => &**inner,
                None if schema.preserve || schema.free => return,
                // A list where none should be: nothing in it is known.
                None => &*UNNAMED,
            };
            for (index, item) in items.iter_mut().enumerate() {
                walk(inner, item, &path.item(index), dropped);
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn unknown_fields_are_pruned_unless_the_schema_preserves_them() {
        let schema = Schema::parse(&json!({"type": "object", "properties": {
            "a": {"type": "object", "properties": {"b": {"type": "string"}}},
            "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
            "map": {"type": "object", "additionalProperties": {"type": "object", "properties": {"x": {"type": "integer"}}}},
            "any": {"type": "object", "additionalProperties": true},
        }}));
        let mut value = json!({"a": {"b": "1", "c": 2}, "free": {"z": 1}, "map": {"k": {"x": 1, "y": 2}}, "q": 1});
        let dropped = prune(&schema, &mut value);
        assert_eq!(value, json!({"a": {"b": "1"}, "free": {"z": 1}, "map": {"k": {"x": 1}}}));
        assert_eq!(dropped, ["a.c", "map.k.y", "q"]);
        let mut value = json!({"any": {"text": "x", "list": [1, {"c": 2}], "k": {"c": 2}}});
        assert_eq!(prune(&schema, &mut value), ["any.k.c", "any.list[1].c"]);
        assert_eq!(value, json!({"any": {"text": "x", "list": [1, {}], "k": {}}}));
        let mut value = json!({"a": {"b": [[{"c": 2}], 1]}});
        assert_eq!(prune(&schema, &mut value), ["a.b[0][0].c"]);
        assert_eq!(value, json!({"a": {"b": [[{}], 1]}}));
    }
}
