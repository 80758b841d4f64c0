//! Field selectors of list calls: [`FieldSelector`].

use serde_json::Value;

use crate::host::ResourceKind;

/// The fields by which Kubernetes lets clients select its own kinds, as far as they are plain texts
/// of the object: what an object lacks is the empty text.
const FIELDS: [&str; 8] = [
    "metadata.name",
    "metadata.namespace",
    "spec.nodeName",
    "spec.restartPolicy",
    "spec.schedulerName",
    "spec.serviceAccountName",
    "status.phase",
    "type",
];

/// The most terms of a selector.
const TERMS_MAX: usize = 16;

/// A field selector, such as `spec.nodeName=a,status.phase!=Failed`.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct FieldSelector(Vec<Term>);

#[derive(Debug, PartialEq, Eq)]
struct Term {
    field: String,
    value: String,
    is_equal: bool,
}

impl FieldSelector {
    /// Reads a selector for objects of a kind. Those of Kubernetes have a few fields; of other
    /// kinds their API server decides, so any field counts.
    ///
    /// # Errors
    /// The reason why it is not offered.
    pub(crate) fn read(text: &str, kind: &ResourceKind) -> Result<Self, String> {
        let parts: Vec<&str> = text.split(',').filter(|part| !part.trim().is_empty()).collect();
        if parts.len() > TERMS_MAX {
            return Err(format!("a field selector has more than {TERMS_MAX} terms"));
        }
        let has_any_field = is_foreign(kind);
        let terms = parts.into_iter().map(|part| term(part, has_any_field));
        terms.collect::<Result<_, _>>().map(Self)
    }

    /// Whether an object has what the selector asks for.
    pub(crate) fn matches(&self, object: &Value) -> bool {
        self.0.iter().all(|term| {
            let found = term.field.split('.').try_fold(object, |value, part| value.get(part));
            let is_equal = match found {
                Some(Value::String(found)) => *found == term.value,
                Some(found @ (Value::Bool(_) | Value::Number(_))) => {
                    let text = found.to_string();
                    text == term.value
                }
                _ => term.value.is_empty(),
            };
            is_equal == term.is_equal
        })
    }
}

/// Whether the kind is not one of Kubernetes, whose groups have no dot or end with `.k8s.io`.
fn is_foreign(kind: &ResourceKind) -> bool {
    let group = kind.api_version.split_once('/').map_or("", |(group, _)| group);
    group.contains('.') && !group.ends_with(".k8s.io")
}

fn term(text: &str, has_any_field: bool) -> Result<Term, String> {
    let (field, value, is_equal) = if let Some((field, value)) = text.split_once("!=") {
        (field, value, false)
    } else if let Some((field, value)) = text.split_once("==").or_else(|| text.split_once('=')) {
        (field, value, true)
    } else {
        return Err("a field selector has a term without =".to_owned());
    };
    let field = field.trim();
    if !has_any_field && !FIELDS.contains(&field) {
        return Err(format!("field selectors are offered for {} only", FIELDS.join(", ")));
    }
    Ok(Term { field: field.to_owned(), value: value.trim().to_owned(), is_equal })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(text: &str, api_version: &str) -> Result<FieldSelector, String> {
        let kind = ResourceKind { api_version: api_version.to_owned(), kind: "Kind".to_owned() };
        FieldSelector::read(text, &kind)
    }

    #[test]
    fn selector_compares_texts_and_takes_a_missing_member_as_empty() {
        let pod = json!({"metadata": {"name": "a"}, "spec": {"nodeName": "n"}});
        for (text, expected) in [
            ("", true),
            ("metadata.name=a", true),
            ("metadata.name==a,spec.nodeName=n", true),
            ("metadata.name=a,spec.nodeName!=n", false),
            ("status.phase!=Failed", true),
            ("status.phase=", true),
            ("metadata.name=b", false),
        ] {
            assert_eq!(read(text, "v1").unwrap().matches(&pod), expected, "{text}");
        }
    }

    #[test]
    fn selector_of_a_custom_resource_has_any_field_of_one_value() {
        let report = json!({"image": {"tag": "1.29", "layers": 3, "signed": true, "of": {}}});
        for (text, expected) in [
            ("image.tag=1.29,image.layers=3,image.signed=true", true),
            ("image.tag!=1.29", false),
            ("image.layers=4", false),
            ("image.digest=", true),
            ("image.of=", true),
            ("image.of={}", false),
        ] {
            let selector = read(text, "reports.example.com/v1").unwrap();
            assert_eq!(selector.matches(&report), expected, "{text}");
        }
    }

    #[test]
    fn selector_of_another_field_or_shape_is_refused() {
        for text in ["spec.x=1", "metadata.name", &"metadata.name=a,".repeat(17)] {
            for api_version in ["v1", "apps/v1", "networking.k8s.io/v1"] {
                assert!(read(text, api_version).is_err(), "{text}");
            }
        }
    }
}
