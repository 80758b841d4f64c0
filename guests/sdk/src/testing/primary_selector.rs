use std::borrow::Cow;

use innkeeper_contract::{PrimarySelector, SelectorOperator};
use serde_json::Value;

/// Returns whether the selector of a manifest selects a primary. The Module's selector, which may
/// select less, does not count.
pub(super) fn selects(selector: Option<&PrimarySelector>, primary: &Value) -> bool {
    let Some(selector) = selector else { return true };
    let label = |key: &str| text(primary["metadata"]["labels"].get(key));
    let annotation = |key: &str| text(primary["metadata"]["annotations"].get(key));
    let field =
        |path: &str| text(path.split('.').try_fold(primary, |object, name| object.get(name)));
    let is_equal = |found: Option<Cow<'_, str>>, value: &str| found.as_deref() == Some(value);

    selector.match_labels.iter().all(|(key, value)| is_equal(label(key), value))
        && selector.match_annotations.iter().all(|(key, value)| is_equal(annotation(key), value))
        && selector
            .match_expressions
            .iter()
            .all(|one| holds(one.operator, &one.values, label(&one.key).as_deref()))
        && selector
            .match_annotation_expressions
            .iter()
            .all(|one| holds(one.operator, &one.values, annotation(&one.key).as_deref()))
        && selector
            .match_fields
            .iter()
            .all(|one| holds(one.operator, &one.values, field(&one.key).as_deref()))
}

/// Returns the value as a selector compares it: the text, or the JSON of what is no text.
fn text(value: Option<&Value>) -> Option<Cow<'_, str>> {
    match value? {
        Value::Null => None,
        Value::String(text) => Some(Cow::Borrowed(text)),
        other => Some(Cow::Owned(other.to_string())),
    }
}

fn holds(operator: SelectorOperator, values: &[String], found: Option<&str>) -> bool {
    let is_among = found.is_some_and(|found| values.iter().any(|one| one == found));
    match operator {
        SelectorOperator::In => is_among,
        SelectorOperator::NotIn => !is_among,
        SelectorOperator::Exists => found.is_some(),
        SelectorOperator::DoesNotExist => found.is_none(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn selects_it(selector: &Value, primary: &Value) -> bool {
        let selector = serde_json::from_value(selector.clone()).unwrap();
        selects(Some(&selector), primary)
    }

    #[test]
    fn primary_is_selected_when_every_member_of_the_selector_holds() {
        let selector = json!({
            "matchLabels": {"app": "web"},
            "matchExpressions": [{"key": "tier", "operator": "NotIn", "values": ["back"]}],
            "matchAnnotations": {"mode": "on"},
            "matchAnnotationExpressions": [{"key": "team", "operator": "Exists"}],
            "matchFields": [
                {"key": "spec.size", "operator": "In", "values": ["3"]},
                {"key": "spec.host", "operator": "DoesNotExist"},
            ],
        });
        let primary = json!({
            "metadata": {"labels": {"app": "web"}, "annotations": {"mode": "on", "team": ""}},
            "spec": {"size": 3, "host": null},
        });
        assert!(selects(None, &json!({})));
        assert!(selects_it(&json!({}), &json!({})));
        assert!(selects_it(&selector, &primary));
        for (pointer, value) in [
            ("/metadata/labels", json!({})),
            ("/metadata/labels", json!({"app": "web", "tier": "back"})),
            ("/metadata/annotations", json!({"mode": "on"})),
            ("/metadata/annotations", json!({"mode": "off", "team": ""})),
            ("/spec/size", json!(4)),
            ("/spec/host", json!("a")),
            ("/spec", json!(null)),
        ] {
            let mut other = primary.clone();
            *other.pointer_mut(pointer).unwrap() = value;
            assert!(!selects_it(&selector, &other), "{pointer}");
        }
    }
}
