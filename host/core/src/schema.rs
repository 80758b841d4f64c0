//! Structural schemas (`openAPIV3Schema` of a CustomResourceDefinition).

use serde_json::{Map, Value};

/// What the server keeps of any object, whatever the schema says.
const OBJECT_MEMBERS: &[&str] = &["apiVersion", "kind", "metadata"];

/// Drops from a value what the API server would prune by this schema, so that it is not
/// sent: members that the schema does not name. `schema` is that of the value itself (of `status`,
/// say, if the value is a status).
pub fn prune(schema: &Value, value: &mut Value) {
    prune_value(schema, value, false);
}

/// `is_object`: the value is a whole Kubernetes object inside another.
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
    // `additionalProperties: true` is not structural together with pruning; it says the same as
    // a schema that allows anything.
    let others = schema.get("additionalProperties").filter(|others| **others != Value::Bool(false));
    let keeps_unknown = is_set(schema, "x-kubernetes-preserve-unknown-fields")
        || others == Some(&Value::Bool(true));
    members.retain(|name, value| {
        if is_object && OBJECT_MEMBERS.contains(&name.as_str()) {
            return true;
        }
        match properties.and_then(|properties| properties.get(name)).or(others) {
            Some(schema) if schema.is_object() => {
                prune_value(schema, value, is_set(schema, "x-kubernetes-embedded-resource"));
                true
            }
            _ => keeps_unknown,
        }
    });
}

/// Whether a list in a schema is merged by keys, as conditions should be by `type`
/// (`x-kubernetes-list-type: map`); `path` is of names, from `schema` down.
///
/// Where it is not, the list has one writer.
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

/// The schema at a path of names; `None` if the schema does not name it.
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
    fn members_that_the_schema_does_not_name_go() {
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
    fn other_members_have_their_schema() {
        check(
            &json!({"additionalProperties": {"type": "object", "properties": {"a": {"type": "string"}}}}),
            json!({"x": {"a": "1", "b": "2"}, "y": {}}),
            &json!({"x": {"a": "1"}, "y": {}}),
        );
        check(&json!({"additionalProperties": false}), json!({"x": 1}), &json!({}));
    }

    #[test]
    fn unknown_members_stay_where_the_schema_says_so_and_known_ones_are_still_pruned() {
        check(
            &json!({"x-kubernetes-preserve-unknown-fields": true, "properties": {"a": {"type": "object", "properties": {}}}}),
            json!({"x": {"y": 1}, "a": {"z": 1}}),
            &json!({"x": {"y": 1}, "a": {}}),
        );
    }

    #[test]
    fn an_embedded_object_keeps_its_head() {
        check(
            &json!({"properties": {"template": {"x-kubernetes-embedded-resource": true, "properties": {"spec": {"type": "object"}}}}}),
            json!({"template": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"}, "spec": {"a": 1}, "z": 1}}),
            &json!({"template": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"}, "spec": {}}}),
        );
    }

    #[test]
    fn conditions_are_merged_by_type_only_if_the_schema_says_so() {
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
