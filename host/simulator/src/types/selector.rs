//! Label and field selectors.

use serde_json::Value;

use crate::mutation::{Mutation, is_active};
use crate::types::label_selector;
use crate::types::label_selector::Requirement;
use crate::types::status_error::StatusError;

/// The selector of a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Selector {
    labels: Vec<Requirement>,
    /// Path, value, and whether they are to be equal.
    fields: Vec<(String, String, bool)>,
}

/// Splits a field selector at its commas. A backslash keeps what follows it from being one.
fn terms(text: &str) -> Vec<&str> {
    let (mut found, mut escaped, mut start) = (Vec::new(), false, 0);
    for (index, character) in text.char_indices() {
        match character {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            ',' => {
                found.push(&text[start..index]);
                start = index + 1;
            }
            _ => {}
        }
    }
    found.push(&text[start..]);
    found.retain(|term| !term.is_empty());
    // The server looks at them so.
    found.sort_unstable();
    found
}

/// A field, its value as it is written, and whether they are to be equal.
fn term(text: &str) -> Option<(&str, &str, bool)> {
    let at = text.find("!=").into_iter().chain(text.find('=')).min()?;
    let (path, rest) = text.split_at(at);
    Some(match (rest.strip_prefix("!="), rest.strip_prefix("==")) {
        (Some(value), _) => (path, value, false),
        (None, Some(value)) => (path, value, true),
        (None, None) => (path, &rest[1..], true),
    })
}

/// A value without what keeps its commas and signs from being read as such.
fn unescaped(text: &str) -> Result<String, String> {
    let mut value = String::new();
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        value.push(match character {
            '\\' => match characters.next() {
                Some(next @ ('\\' | ',' | '=')) => next,
                other => {
                    let sequence: String = ['\\'].into_iter().chain(other).collect();
                    return Err(format!(
                        "invalid field selector: invalid escape sequence: {sequence}"
                    ));
                }
            },
            ',' | '=' => {
                let number = u32::from(character);
                return Err(format!(
                    "invalid field selector: unescaped character in value: {number}"
                ));
            }
            other => other,
        });
    }
    Ok(value)
}

/// What a field holds, as the server compares it.
fn field(object: &Value, path: &str) -> String {
    let at = |path: &str| path.split('.').fold(object, |place, name| &place[name]);
    let text = |path: &str| match at(path) {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    };
    let or = |path: &str, zero: &str| if at(path).is_null() { zero.to_owned() } else { text(path) };
    let kind = (&object["apiVersion"], &object["kind"]);
    match (kind.0.as_str().unwrap_or_default(), kind.1.as_str().unwrap_or_default(), path) {
        ("v1", "Pod", "spec.hostNetwork") | ("v1", "Node", "spec.unschedulable") => {
            or(path, "false")
        }
        // The field is selectable, and no object has it.
        ("v1", "Pod", "status.podIPs") => String::new(),
        ("v1", "ReplicationController", "status.replicas") => or(path, "0"),
        ("batch/v1", "Job", "status.successful") => or("status.succeeded", "0"),
        ("v1", "Event", "source") => match text("source.component") {
            none if none.is_empty() => text("reportingComponent"),
            component => component,
        },
        _ => text(path),
    }
}

impl Selector {
    /// Reads both.
    pub(crate) fn parse(labels: &str, fields: &str) -> Result<Self, StatusError> {
        let labels = label_selector::parse(labels).map_err(StatusError::bad_request)?;
        let mut selector = Self { labels, fields: Vec::new() };
        for part in terms(fields) {
            let (path, value, equal) = term(part).ok_or_else(|| {
                StatusError::bad_request(format!(
                    "invalid selector: '{fields}'; can't understand '{part}'"
                ))
            })?;
            let value = unescaped(value).map_err(StatusError::bad_request)?;
            selector.fields.push((path.to_owned(), value, equal));
        }
        Ok(selector)
    }

    /// Whether the fields may be asked for: `known` says which of a kind may.
    pub(crate) fn check(
        &self,
        known: &dyn Fn(&str) -> Result<(), String>,
    ) -> Result<(), StatusError> {
        self.fields.iter().try_for_each(|(path, ..)| known(path).map_err(StatusError::bad_request))
    }

    /// The one selected name, if the fields select one.
    pub(crate) fn name(&self) -> Option<&str> {
        let names_one = |path: &str, equal: bool| equal && path == "metadata.name";
        let mut names = self.fields.iter().filter(|(path, _, equal)| names_one(path, *equal));
        names.next().map(|(_, name, _)| name.as_str()).filter(|name| !name.is_empty())
    }

    /// One as objects have it, with `matchLabels` and `matchExpressions`.
    pub(crate) fn of(value: &Value) -> Self {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let equal = value["matchLabels"].as_object().into_iter().flatten();
        let mut labels: Vec<Requirement> =
            equal.map(|(key, value)| Requirement::In(key.clone(), vec![text(value)])).collect();
        for one in value["matchExpressions"].as_array().into_iter().flatten() {
            let values = one["values"].as_array().into_iter().flatten().map(text).collect();
            let key = text(&one["key"]);
            labels.push(match one["operator"].as_str() {
                Some("In") => Requirement::In(key, values),
                Some("NotIn") => Requirement::NotIn(key, values),
                Some("Exists") => Requirement::Exists(key),
                _ => Requirement::Absent(key),
            });
        }
        Self { labels, fields: Vec::new() }
    }

    /// Whether it selects everything.
    pub(crate) fn is_all(&self) -> bool {
        self.labels.is_empty() && self.fields.is_empty()
    }

    /// Whether it selects `object`.
    pub(crate) fn fits(&self, object: &Value) -> bool {
        let labels = &object["metadata"]["labels"];
        let labels_fit = is_active(Mutation::LabelsAreNotSelected)
            || self.labels.iter().all(|demand| demand.fits(labels));
        let fits = |(path, wanted, equal): &(String, String, bool)| {
            (field(object, path) == *wanted) == *equal
        };
        labels_fit && (is_active(Mutation::FieldsAreNotSelected) || self.fields.iter().all(fits))
    }
}

/// The name that a field selector asks for, if it is for one.
pub(crate) fn only_name(fields: &str) -> Option<&str> {
    let mut found = terms(fields).into_iter().filter_map(term);
    found.find_map(|(path, value, equal)| {
        (equal && path == "metadata.name" && !value.is_empty()).then_some(value)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn fits(labels: &str, fields: &str) -> bool {
        let object = json!({"metadata": {"name": "n", "labels": {"app": "a", "tier": "web"}}});
        Selector::parse(labels, fields).unwrap().fits(&object)
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
        assert!(fits("", "metadata.name=n,,metadata.name!=n\\,m"));
        let unknown = Selector::parse("", "spec.x=1").unwrap();
        let unknown = unknown.check(&|path| Err(path.to_owned())).unwrap_err();
        assert_eq!(unknown.body()["message"], "spec.x");
    }
}
