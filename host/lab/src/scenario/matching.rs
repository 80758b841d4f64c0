//! Compares objects with asserts.

use serde_json::{Map, Value};
use similar::TextDiff;

/// Lines of context around a difference.
const CONTEXT_LINES: usize = 3;

/// Whether an object matches an assert by the rules of KUTTL: other members are ignored; lists must
/// have the same length and matching elements.
pub(super) fn fits(expected: &Value, actual: &Value) -> bool {
    match (expected, actual) {
        (Value::Object(expected), Value::Object(actual)) => expected
            .iter()
            .all(|(name, expected)| fits(expected, actual.get(name).unwrap_or(&Value::Null))),
        (Value::Array(expected), Value::Array(actual)) => {
            expected.len() == actual.len()
                && expected.iter().zip(actual).all(|(expected, actual)| fits(expected, actual))
        }
        (Value::Number(a), Value::Number(b)) => a == b || a.as_f64() == b.as_f64(),
        (expected, actual) => expected == actual,
    }
}

/// The number of matching values: to find the object that the assert means.
pub(super) fn likeness(expected: &Value, actual: &Value) -> usize {
    match (expected, actual) {
        (Value::Object(expected), Value::Object(actual)) => expected
            .iter()
            .filter_map(|(name, expected)| Some(likeness(expected, actual.get(name)?)))
            .sum(),
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
                if let Some(actual) = actual.get(name) {
                    kept.insert(name.clone(), named(expected, actual));
                }
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
    fn difference_shows_only_the_members_of_the_assert() {
        let expected = json!({"spec": {"replicas": 3, "image": "a"}});
        let actual = json!({"spec": {"replicas": 2, "image": "a", "noise": true}, "status": {}});
        assert_eq!(
            difference(&expected, &actual),
            "--- expected\n+++ found\n@@ -1,3 +1,3 @@\n spec:\n   image: a\n-  replicas: 3\n+  replicas: 2\n"
        );
    }
}
