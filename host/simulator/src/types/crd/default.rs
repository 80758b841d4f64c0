//! Sets the defaults of a schema.

use serde_json::Value;

use crate::types::schema::{Additional, Schema};

/// Drops nulls that the schema does not allow, and sets defaults.
pub(crate) fn default(schema: &Schema, value: &mut Value) {
    drop_nulls(schema, value);
    fill(schema, value);
}

/// Fills in defaults.
pub(crate) fn fill(schema: &Schema, value: &mut Value) {
    // The metadata of a custom resource has no defaults.
    if schema.reference.is_some() {
        return;
    }
    match value {
        Value::Object(map) => {
            for (name, inner) in &schema.properties {
                let Some(default) = &inner.default else { continue };
                let missing = match map.get(name) {
                    None => true,
                    Some(Value::Null) => !inner.nullable,
                    Some(_) => false,
                };
                if missing {
                    map.insert(name.clone(), default.clone());
                }
            }
            for (name, member) in map.iter_mut() {
                match (schema.properties.get(name), &schema.additional) {
                    (Some(inner), _) => fill(inner, member),
                    (None, Additional::Of(inner)) => {
                        if member.is_null()
                            && !inner.nullable
                            && let Some(default) = &inner.default
                        {
                            *member = default.clone();
                        }
                        fill(inner, member);
                    }
                    _ => {}
                }
            }
        }
        Value::Array(items) => {
            if let Some(inner) = &schema.items {
                for item in items {
                    if item.is_null()
                        && !inner.nullable
                        && let Some(default) = &inner.default
                    {
                        *item = default.clone();
                    }
                    fill(inner, item);
                }
            }
        }
        _ => {}
    }
}

/// Drops nulls that the schema does not allow.
pub(crate) fn drop_nulls(schema: &Schema, value: &mut Value) {
    match value {
        Value::Object(map) => {
            let inner_of = |name: &str| match (schema.properties.get(name), &schema.additional) {
                (Some(inner), _) => Some(inner),
                (None, Additional::Of(inner)) => Some(&**inner),
                _ => None,
            };
            map.retain(|name, member| {
                !member.is_null()
                    || inner_of(name).is_none_or(|inner| inner.nullable || inner.default.is_some())
            });
            for (name, member) in map.iter_mut() {
                if let Some(inner) = inner_of(name) {
                    drop_nulls(inner, member);
                }
            }
        }
        Value::Array(items) => {
            if let Some(inner) = &schema.items {
                for item in items {
                    drop_nulls(inner, item);
                }
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
    fn defaults_are_set_from_the_root_down_and_replace_nulls() {
        let schema = Schema::parse(&json!({"type": "object", "properties": {"spec": {
        "type": "object", "default": {}, "properties": {
            "size": {"type": "integer", "default": 3},
            "name": {"type": "string"},
            "maybe": {"type": "string", "nullable": true, "default": "x"},
        }}}}));
        let mut value = json!({});
        default(&schema, &mut value);
        assert_eq!(value, json!({"spec": {"size": 3, "maybe": "x"}}));
        let mut value = json!({"spec": {"size": null, "name": null, "maybe": null}});
        default(&schema, &mut value);
        assert_eq!(value, json!({"spec": {"size": 3, "maybe": null}}));
    }
}
