//! Label and field selectors.

use serde_json::Value;

use crate::kinds::{LABEL_VALUE, is_label_value};
use crate::status_error::StatusError;
use crate::switch::{Bug, planted};

/// One demand on a label.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Demand {
    In(String, Vec<String>),
    NotIn(String, Vec<String>),
    Exists(String),
    Absent(String),
}

/// Which objects are meant.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Selector {
    labels: Vec<Demand>,
    /// Path, value, and whether they are to be equal.
    fields: Vec<(String, String, bool)>,
}

/// Splits at commas that are in no parentheses.
fn parts(text: &str) -> Vec<&str> {
    let (mut found, mut depth, mut start) = (Vec::new(), 0, 0);
    for (index, character) in text.char_indices() {
        match character {
            '(' => depth += 1,
            ')' => depth -= 1,
            ',' if depth == 0 => {
                found.push(text[start..index].trim());
                start = index + 1;
            }
            _ => {}
        }
    }
    found.push(text[start..].trim());
    found.into_iter().filter(|part| !part.is_empty()).collect()
}

fn values(text: &str) -> Option<Vec<String>> {
    let inner = text.trim().strip_prefix('(')?.strip_suffix(')')?;
    Some(inner.split(',').map(|value| value.trim().to_owned()).collect())
}

fn demand(part: &str) -> Option<Demand> {
    let own = |text: &str| text.trim().to_owned();
    if let Some((key, rest)) = part.split_once(" notin ") {
        return Some(Demand::NotIn(own(key), values(rest)?));
    }
    if let Some((key, rest)) = part.split_once(" in ") {
        return Some(Demand::In(own(key), values(rest)?));
    }
    if let Some((key, value)) = part.split_once("!=") {
        return Some(Demand::NotIn(own(key), vec![own(value)]));
    }
    if let Some((key, value)) = part.split_once("==").or_else(|| part.split_once('=')) {
        return Some(Demand::In(own(key), vec![own(value)]));
    }
    if let Some(key) = part.strip_prefix('!') {
        return Some(Demand::Absent(own(key)));
    }
    let plain = part.chars().all(|one| one.is_ascii_alphanumeric() || "-._/".contains(one));
    plain.then(|| Demand::Exists(own(part)))
}

impl Selector {
    /// Reads both; the fields of a kind that may be asked for are `known`.
    pub(crate) fn parse(
        labels: &str,
        fields: &str,
        known: &dyn Fn(&str) -> bool,
    ) -> Result<Self, StatusError> {
        let mut selector = Self::default();
        for part in parts(labels) {
            let demand = demand(part).ok_or_else(|| {
                StatusError::bad_request(format!("unable to parse requirement: {part:?}"))
            })?;
            if let Demand::In(key, values) | Demand::NotIn(key, values) = &demand {
                let wrong = values.iter().enumerate().find(|(_, value)| !is_label_value(value));
                if let Some((index, value)) = wrong {
                    return Err(StatusError::bad_request(format!(
                        "unable to parse requirement: values[{index}][{key}]: Invalid value: {value:?}: {LABEL_VALUE}"
                    )));
                }
            }
            selector.labels.push(demand);
        }
        for part in parts(fields) {
            let (path, value, equal) = if let Some((path, value)) = part.split_once("!=") {
                (path, value, false)
            } else if let Some((path, value)) =
                part.split_once("==").or_else(|| part.split_once('='))
            {
                (path, value, true)
            } else {
                return Err(StatusError::bad_request(format!(
                    "invalid selector: '{fields}'; can't understand '{part}'"
                )));
            };
            if !known(path) {
                return Err(StatusError::bad_request(format!("field label not supported: {path}")));
            }
            selector.fields.push((path.to_owned(), value.to_owned(), equal));
        }
        Ok(selector)
    }

    /// One as objects have it, with `matchLabels` and `matchExpressions`.
    pub(crate) fn of(value: &Value) -> Self {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let equal = value["matchLabels"].as_object().into_iter().flatten();
        let mut labels: Vec<Demand> =
            equal.map(|(key, value)| Demand::In(key.clone(), vec![text(value)])).collect();
        for one in value["matchExpressions"].as_array().into_iter().flatten() {
            let values = one["values"].as_array().into_iter().flatten().map(text).collect();
            let key = text(&one["key"]);
            labels.push(match one["operator"].as_str() {
                Some("In") => Demand::In(key, values),
                Some("NotIn") => Demand::NotIn(key, values),
                Some("Exists") => Demand::Exists(key),
                _ => Demand::Absent(key),
            });
        }
        Self { labels, fields: Vec::new() }
    }

    /// Whether everything is meant.
    pub(crate) fn is_all(&self) -> bool {
        self.labels.is_empty() && self.fields.is_empty()
    }

    /// Whether `object` is meant.
    pub(crate) fn fits(&self, object: &Value) -> bool {
        let labels = &object["metadata"]["labels"];
        let label = |key: &str| labels.get(key).and_then(Value::as_str);
        let labels_fit = planted(Bug::LabelsAreNotSelected)
            || self.labels.iter().all(|demand| match demand {
                Demand::In(key, values) => {
                    label(key).is_some_and(|value| values.iter().any(|one| one == value))
                }
                Demand::NotIn(key, values) => {
                    !label(key).is_some_and(|value| values.iter().any(|one| one == value))
                }
                Demand::Exists(key) => label(key).is_some(),
                Demand::Absent(key) => label(key).is_none(),
            });
        labels_fit
            && self.fields.iter().all(|(path, wanted, equal)| {
                let found = path.split('.').fold(object, |place, name| &place[name]);
                let found = match found {
                    Value::String(text) => text.clone(),
                    Value::Null => String::new(),
                    other => other.to_string(),
                };
                (found == *wanted) == *equal
            })
    }
}

/// The name that a field selector asks for, if it is for one.
pub(crate) fn only_name(fields: &str) -> Option<&str> {
    parts(fields).into_iter().filter(|part| !part.contains("!=")).find_map(|part| {
        let (path, value) = part.split_once("==").or_else(|| part.split_once('='))?;
        (path == "metadata.name" && !value.is_empty()).then_some(value)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn fits(labels: &str, fields: &str) -> bool {
        let object = json!({"metadata": {"name": "n", "labels": {"app": "a", "tier": "web"}}});
        Selector::parse(labels, fields, &|_| true).unwrap().fits(&object)
    }

    #[test]
    fn labels_are_selected_by_equality_sets_and_presence() {
        for yes in ["", "app=a", "app==a,tier", "app in (a, b)", "app notin (b),!none", "none!=x"] {
            assert!(fits(yes, ""), "{yes}");
        }
        for no in ["app=b", "app!=a", "app in (b)", "!app", "none", "app=a,tier=x"] {
            assert!(!fits(no, ""), "{no}");
        }
    }

    #[test]
    fn fields_are_selected_by_equality() {
        assert!(fits("", "metadata.name=n"));
        assert!(!fits("", "metadata.name!=n"));
        assert!(fits("", "spec.nodeName="));
        let unknown = Selector::parse("", "spec.x=1", &|_| false).unwrap_err();
        assert_eq!(unknown.body()["message"], "field label not supported: spec.x");
    }
}
