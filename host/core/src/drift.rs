//! Drift: fields that the host applied and another manager has changed since. Plans show them as a
//! reason, and [`field_fights`](crate::field_fights) counts them.

use serde_json::Value;

use crate::fieldset::{self, Element, FieldSet, Node};

/// Lists the fields of a desired object that the manager's entry no longer holds, as in
/// `.spec.template.spec.containers[name="a"].image`, in order.
///
/// An item of a list that the entry does not hold is listed as the whole list.
pub fn lost_fields(desired: &Value, entry: &FieldSet) -> Vec<String> {
    let mut paths = Vec::new();
    for (name, value) in desired.as_object().into_iter().flatten() {
        if !matches!(name.as_str(), "apiVersion" | "kind" | "status") {
            walk(value, entry.field(name), &mut format!(".{name}"), &mut paths);
        }
    }
    paths.dedup();
    paths.retain(|path| {
        !matches!(path.as_str(), ".metadata.name" | ".metadata.namespace" | ".metadata.uid")
    });
    paths
}

fn walk(desired: &Value, node: Option<&Node>, path: &mut String, paths: &mut Vec<String>) {
    let length = path.len();
    match (desired, node) {
        // A leaf stands for its whole value.
        (_, Some(node)) if node.is_leaf() => {}
        (Value::Object(members), _) if !members.is_empty() => {
            for (name, value) in members {
                let element = Element::Field(name.as_str().into());
                path.push_str(&element.to_string());
                walk(value, node.and_then(|node| node.below().field(name)), path, paths);
                path.truncate(length);
            }
        }
        (_, None) => paths.push(path.clone()),
        (Value::Array(items), Some(node)) => {
            for item in items {
                let Some((element, below)) = find(item, node.below()) else {
                    paths.push(path.clone());
                    continue;
                };
                path.push_str(&element.to_string());
                walk(item, Some(below), path, paths);
                path.truncate(length);
            }
        }
        _ => {}
    }
}

/// Finds the item of an entry with the same keys as an item of a desired list; keys that the
/// desired item lacks may have any value.
fn find<'a>(item: &Value, entry: &'a FieldSet) -> Option<(&'a Element, &'a Node)> {
    entry.iter().find(|(element, _)| match element {
        Element::Key(keys) => keys.iter().all(|(name, value)| {
            item.get(&**name).is_none_or(|given| fieldset::json(given) == *value)
        }),
        Element::Value(value) => fieldset::json(item) == *value,
        Element::Field(_) | Element::Index(_) => false,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(desired: &Value, entry: &Value, expected: &[&str]) {
        let entry = FieldSet::parse(&entry.to_string()).unwrap();
        assert_eq!(lost_fields(desired, &entry), expected);
    }

    #[test]
    fn field_of_another_manager_is_listed() {
        check(
            &json!({"apiVersion": "apps/v1", "metadata": {"name": "a", "labels": {"x": "y"}}, "spec": {"replicas": 3, "paused": false}}),
            &json!({"f:metadata": {"f:labels": {"f:x": {}}}, "f:spec": {"f:paused": {}}}),
            &[".spec.replicas"],
        );
    }

    #[test]
    fn item_of_a_list_is_found_by_its_given_keys() {
        let desired = json!({"spec": {"ports": [{"port": 53}, {"port": 53, "protocol": "UDP", "name": "u"}]}});
        check(
            &desired,
            &json!({"f:spec": {"f:ports": {
                "k:{\"port\":53,\"protocol\":\"TCP\"}": {".": {}, "f:port": {}},
                "k:{\"port\":53,\"protocol\":\"UDP\"}": {".": {}, "f:port": {}, "f:protocol": {}}}}}),
            &[".spec.ports[port=53,protocol=\"UDP\"].name"],
        );
    }

    #[test]
    fn missing_item_is_listed_as_its_list() {
        check(
            &json!({"spec": {"containers": [{"name": "a", "image": "x"}]}}),
            &json!({"f:spec": {"f:containers": {"k:{\"name\":\"b\"}": {"f:image": {}}}}}),
            &[".spec.containers"],
        );
    }

    #[test]
    fn every_field_is_listed_when_the_entry_is_empty() {
        check(
            &json!({"spec": {"a": 1, "b": [1]}, "data": {}}),
            &json!({}),
            &[".data", ".spec.a", ".spec.b"],
        );
    }
}
