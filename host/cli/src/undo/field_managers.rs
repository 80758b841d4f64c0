//! The managers of the fields in which two versions of an object differ.

use innkeeper_core::fieldset::{Element, FieldSet};
use serde_json::Value;

/// Lists the managers in `managedFields` of `before` that hold a field in which both versions
/// differ, each with its operation, except one.
pub(super) fn managers_of_changes(before: &Value, after: &Value, except: &str) -> Vec<String> {
    let entries = before["metadata"]["managedFields"].as_array().into_iter().flatten();
    let mut managers: Vec<String> = entries
        .filter(|entry| {
            let fields = FieldSet::parse(&entry["fieldsV1"].to_string()).unwrap_or_default();
            entry["manager"] != except && holds_change(&fields, Some(before), Some(after))
        })
        .map(|entry| {
            let text = |member: &str| entry[member].as_str().unwrap_or_default();
            format!("{} ({})", text("manager"), text("operation"))
        })
        .collect();
    managers.sort();
    managers.dedup();
    managers
}

/// Whether a set has a field in which two values differ.
fn holds_change(fields: &FieldSet, before: Option<&Value>, after: Option<&Value>) -> bool {
    fields.iter().any(|(element, node)| {
        let (before, after) = (find(before, element), find(after, element));
        // `managedFields` themselves are in no entry.
        before != after && (node.is_leaf() || holds_change(node.below(), before, after))
    })
}

/// The part of a value that an element names.
fn find<'a>(value: Option<&'a Value>, element: &Element) -> Option<&'a Value> {
    let value = value?;
    let parse = |text: &str| serde_json::from_str::<Value>(text).unwrap_or_default();
    match element {
        Element::Field(name) => value.get(&**name),
        Element::Key(keys) => value
            .as_array()?
            .iter()
            .find(|item| keys.iter().all(|(name, key)| item.get(&**name) == Some(&parse(key)))),
        Element::Value(text) => value.as_array()?.iter().find(|item| **item == parse(text)),
        Element::Index(index) => value.get(usize::try_from(*index).ok()?),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn manager_is_listed_only_when_it_holds_a_changed_field() {
        let entry = |manager: &str, operation: &str, fields: Value| json!({"manager": manager, "operation": operation, "fieldsV1": {"f:spec": fields}});
        let item = json!({"f:containers": {"k:{\"name\":\"a\"}": {".": {}, "f:image": {}}}});
        let mut before = json!({"spec": {"replicas": 1, "gone": {"x": 1},
            "containers": [{"name": "b", "image": "b"}, {"name": "a", "image": "a"}]}});
        before["metadata"]["managedFields"] = json!([
            entry("gitops", "Apply", item),
            entry("autoscaler", "Update", json!({"f:replicas": {}})),
            entry("editor", "Update", json!({"f:gone": {".": {}, "f:x": {}}})),
            entry("undo", "Update", json!({"f:gone": {}})),
            {"manager": "broken", "fieldsV1": 1},
        ]);
        let mut after = before.clone();
        after["spec"]["containers"][1]["image"] = "c".into();
        assert_eq!(managers_of_changes(&before, &after, "undo"), ["gitops (Apply)"]);
        after["spec"].as_object_mut().unwrap().remove("gone");
        let expected = ["editor (Update)", "gitops (Apply)"];
        assert_eq!(managers_of_changes(&before, &after, "undo"), expected);
        assert_eq!(managers_of_changes(&before, &before, "undo"), [""; 0]);
    }
}
