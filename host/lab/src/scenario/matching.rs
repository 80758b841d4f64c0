//! Compares objects with asserts.

use serde_json::{Map, Value};
use similar::TextDiff;

/// Lines of context around a difference.
const CONTEXT_LINES: usize = 3;

/// Whether an object matches an assert by the rules of KUTTL: other members are ignored; lists must
/// have the same length and matching elements. Conditions are found by their type, and other
/// conditions are ignored.
pub(super) fn fits(expected: &Value, actual: &Value) -> bool {
    match (expected, actual) {
        (Value::Object(expected), Value::Object(actual)) => {
            expected.iter().all(|(name, expected)| {
                let actual = actual.get(name).unwrap_or(&Value::Null);
                match conditions(name, expected, actual) {
                    Some(pairs) => pairs.iter().all(|(one, other)| fits(one, other)),
                    None => fits(expected, actual),
                }
            })
        }
        (Value::Array(expected), Value::Array(actual)) => {
            expected.len() == actual.len()
                && expected.iter().zip(actual).all(|(expected, actual)| fits(expected, actual))
        }
        (Value::Number(a), Value::Number(b)) => a == b || a.as_f64() == b.as_f64(),
        (expected, actual) => expected == actual,
    }
}

/// Each condition of an assert with the condition of the same type, or Null; `None` if the member
/// is no list of conditions.
fn conditions<'a>(
    member: &str,
    expected: &'a Value,
    actual: &'a Value,
) -> Option<Vec<(&'a Value, &'a Value)>> {
    let expected = expected.as_array().filter(|list| member == "conditions" && !list.is_empty())?;
    if !expected.iter().all(|one| one["type"].is_string()) {
        return None;
    }
    let actual = actual.as_array().map(Vec::as_slice).unwrap_or_default();
    let pairs = expected.iter().map(|one| {
        let same = actual.iter().find(|other| other["type"] == one["type"]);
        (one, same.unwrap_or(&Value::Null))
    });
    Some(pairs.collect())
}

/// The number of matching values: to find the object that the assert means.
pub(super) fn likeness(expected: &Value, actual: &Value) -> usize {
    match (expected, actual) {
        (Value::Object(expected), Value::Object(actual)) => {
            let members = expected.iter().filter_map(|(name, expected)| {
                let actual = actual.get(name)?;
                Some(match conditions(name, expected, actual) {
                    Some(pairs) => pairs.iter().map(|(one, other)| likeness(one, other)).sum(),
                    None => likeness(expected, actual),
                })
            });
            members.sum::<usize>()
        }
        (Value::Array(expected), Value::Array(actual)) => {
            expected.iter().zip(actual).map(|(expected, actual)| likeness(expected, actual)).sum()
        }
        (expected, actual) => usize::from(expected == actual),
    }
}

/// The members of an object that an assert names; lists of another length as a whole.
pub(super) fn named(expected: &Value, actual: &Value) -> Value {
    match (expected, actual) {
        (Value::Object(expected), Value::Object(actual)) => {
            let mut kept = Map::new();
            for (name, expected) in expected {
                let Some(actual) = actual.get(name) else { continue };
                let found = match conditions(name, expected, actual) {
                    Some(pairs) => {
                        let found = pairs.into_iter().filter(|(_, other)| !other.is_null());
                        found.map(|(one, other)| named(one, other)).collect()
                    }
                    None => named(expected, actual),
                };
                kept.insert(name.clone(), found);
            }
            Value::Object(kept)
        }
        (Value::Array(expected), Value::Array(actual)) if expected.len() == actual.len() => {
            let all = expected.iter().zip(actual);
            Value::Array(all.map(|(expected, actual)| named(expected, actual)).collect())
        }
        (_, actual) => actual.clone(),
    }
}

/// The difference between an assert and an object, as a unified diff.
pub(super) fn difference(expected: &Value, actual: &Value) -> String {
    let (before, after) = (yaml(expected), yaml(&named(expected, actual)));
    let difference = TextDiff::from_lines(before.as_str(), after.as_str());
    let mut shown = difference.unified_diff();
    shown.context_radius(CONTEXT_LINES).header("expected", "found");
    shown.to_string()
}

/// An object as YAML.
pub(super) fn yaml(value: &Value) -> String {
    serde_yaml_ng::to_string(value).unwrap_or_else(|_| value.to_string())
}

/// Kind and name of an object.
pub(super) fn name_of_object(object: &Value) -> String {
    let kind = object["kind"].as_str().unwrap_or_default();
    match object["metadata"]["name"].as_str() {
        Some(name) => format!("{kind} {name}"),
        None => format!("matching {kind}"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn object_matches_with_other_members_but_not_with_other_elements() {
        let actual = json!({"a": 1, "b": {"c": "x", "d": 2}, "l": [{"n": 1, "m": 2}, {"n": 3}]});
        assert!(fits(&json!({"b": {"c": "x"}}), &actual));
        assert!(fits(&json!({"l": [{"n": 1}, {"n": 3}], "a": 1.0}), &actual));
        assert!(!fits(&json!({"l": [{"n": 1}]}), &actual), "a list of another length matched");
        assert!(!fits(&json!({"b": {"c": "y"}}), &actual));
        assert!(!fits(&json!({"e": 1}), &actual));
        assert!(fits(&json!({"e": null}), &actual), "an absent member did not match null");
    }

    #[test]
    fn conditions_match_by_type_whatever_their_order_and_number() {
        let actual = json!({"status": {"conditions": [
            {"type": "Synced", "status": "True", "reason": "Applied"},
            {"type": "Ready", "status": "False"}]}});
        let assert = |conditions: Value| json!({"status": {"conditions": conditions}});
        assert!(fits(&assert(json!([{"type": "Ready", "status": "False"}])), &actual));
        let wrong = assert(json!([{"type": "Ready", "status": "True"}, {"type": "Synced"}]));
        assert!(!fits(&wrong, &actual));
        assert!(!fits(&assert(json!([{"type": "Other"}])), &actual));
        assert!(!fits(&assert(json!([])), &actual), "an empty list matched conditions");
        let found = assert(json!([{"type": "Ready", "status": "False"}, {"type": "Synced"}]));
        assert_eq!(named(&wrong, &actual), found);
    }

    #[test]
    fn difference_shows_only_the_members_of_the_assert() {
        let expected = json!({"spec": {"replicas": 3, "image": "a"}});
        let actual = json!({"spec": {"replicas": 2, "image": "a", "noise": true}, "status": {}});
        assert_eq!(
            difference(&expected, &actual),
            "--- expected\n+++ found\n@@ -1,3 +1,3 @@\n spec:\n   image: a\n-  replicas: 3\n+  replicas: 2\n"
        );
    }
}
