//! Structural schemas (`openAPIV3Schema` of a CustomResourceDefinition).

use serde_json::{Map, Value};

/// Members that the server keeps in any embedded object.
const OBJECT_MEMBERS: &[&str] = &["apiVersion", "kind", "metadata"];

/// Drops from a value the members that the API server would prune, since the schema does not name
/// them. `schema` is the schema of the value itself: that of `status` for a status.
pub fn prune(schema: &Value, value: &mut Value) {
    prune_value(schema, value, false);
}

/// Prunes one value. `is_object`: the value is an embedded Kubernetes object.
fn prune_value(schema: &Value, value: &mut Value, is_object: bool) {
    match value {
        Value::Object(members) => prune_members(schema, members, is_object),
        Value::Array(items) => {
            if let Some(schema) = schema.get("items") {
                for item in items {
                    prune_value(schema, item, is_set(schema, "x-kubernetes-embedded-resource"));
                }
            }
        }
        _ => {}
    }
}

fn prune_members(schema: &Value, members: &mut Map<String, Value>, is_object: bool) {
    let properties = schema.get("properties").and_then(Value::as_object);
    let others = schema.get("additionalProperties").filter(|others| **others != Value::Bool(false));
    let keeps_unknown = is_set(schema, "x-kubernetes-preserve-unknown-fields");
    members.retain(|name, value| {
        if is_object && OBJECT_MEMBERS.contains(&name.as_str()) {
            return true;
        }
        match properties.and_then(|properties| properties.get(name)).or(others) {
            Some(schema) if schema.is_object() => {
                prune_value(schema, value, is_set(schema, "x-kubernetes-embedded-resource"));
                true
            }
            // `additionalProperties: true`: the API server keeps the member, and prunes what is in
            // it.
            Some(Value::Bool(true)) => {
                prune_value(&Value::Object(Map::new()), value, false);
                true
            }
            _ => keeps_unknown,
        }
    });
}

/// Whether the server merges a list by keys (`x-kubernetes-list-type: map`), as it should merge
/// conditions by `type`. `path` has the names of the fields from `schema` to the list.
///
/// Any other list has one writer.
pub fn has_list_map_keys(schema: &Value, path: &[&str]) -> bool {
    let list = at(schema, path);
    list.is_some_and(|list| {
        list.get("x-kubernetes-list-type").and_then(Value::as_str) == Some("map")
            && list
                .get("x-kubernetes-list-map-keys")
                .and_then(Value::as_array)
                .is_some_and(|keys| !keys.is_empty())
    })
}

/// The schema of the field at a path of names; `None` if the schema does not name the field.
pub fn at<'a>(schema: &'a Value, path: &[&str]) -> Option<&'a Value> {
    path.iter().try_fold(schema, |schema, name| schema.get("properties")?.get(name))
}

fn is_set(schema: &Value, extension: &str) -> bool {
    schema.get(extension).and_then(Value::as_bool).unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(schema: &Value, mut before: Value, after: &Value) {
        prune(schema, &mut before);
        assert_eq!(before, *after, "{schema}");
    }

    #[test]
    fn members_that_the_schema_does_not_name_are_pruned() {
        let schema = json!({"type": "object", "properties": {
            "a": {"type": "string"},
            "b": {"type": "object", "properties": {"c": {"type": "integer"}}},
            "list": {"type": "array", "items": {"type": "object", "properties": {"d": {"type": "string"}}}},
            "port": {"x-kubernetes-int-or-string": true},
        }});
        check(
            &schema,
            json!({"a": "x", "z": 1, "b": {"c": 1, "z": 2}, "list": [{"d": "x", "z": 1}, {}], "port": "http"}),
            &json!({"a": "x", "b": {"c": 1}, "list": [{"d": "x"}, {}], "port": "http"}),
        );
        check(&json!({"type": "object"}), json!({"a": 1}), &json!({}));
        check(&schema, json!("not an object"), &json!("not an object"));
    }

    #[test]
    fn additional_members_are_pruned_by_their_schema() {
        check(
            &json!({"additionalProperties": {"type": "object", "properties": {"a": {"type": "string"}}}}),
            json!({"x": {"a": "1", "b": "2"}, "y": {}}),
            &json!({"x": {"a": "1"}, "y": {}}),
        );
        check(&json!({"additionalProperties": false}), json!({"x": 1}), &json!({}));
        check(
            &json!({"additionalProperties": true}),
            json!({"x": 1, "y": {"a": 1}}),
            &json!({"x": 1, "y": {}}),
        );
    }

    #[test]
    fn unknown_members_are_kept_where_the_schema_preserves_them() {
        check(
            &json!({"x-kubernetes-preserve-unknown-fields": true, "properties": {"a": {"type": "object", "properties": {}}}}),
            json!({"x": {"y": 1}, "a": {"z": 1}}),
            &json!({"x": {"y": 1}, "a": {}}),
        );
    }

    #[test]
    fn embedded_object_keeps_its_type_and_metadata() {
        check(
            &json!({"properties": {"template": {"x-kubernetes-embedded-resource": true, "properties": {"spec": {"type": "object"}}}}}),
            json!({"template": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"}, "spec": {"a": 1}, "z": 1}}),
            &json!({"template": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"}, "spec": {}}}),
        );
    }

    #[test]
    fn list_is_merged_by_keys_only_if_the_schema_has_them() {
        let with =
            |list: Value| json!({"properties": {"status": {"properties": {"conditions": list}}}});
        let path = ["status", "conditions"];
        let map = json!({"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]});
        assert!(has_list_map_keys(&with(map), &path));
        assert!(!has_list_map_keys(&with(json!({"type": "array"})), &path));
        assert!(!has_list_map_keys(&with(json!({"x-kubernetes-list-type": "atomic"})), &path));
        assert!(!has_list_map_keys(&json!({}), &path));
    }
}
