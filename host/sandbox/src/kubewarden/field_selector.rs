//! Field selectors of list calls: [`FieldSelector`].

use serde_json::Value;

/// The fields by which Kubernetes lets clients select, as far as they are plain texts of the
/// object: what an object lacks is the empty text.
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
    field: &'static str,
    value: String,
    is_equal: bool,
}

impl FieldSelector {
    /// Reads a selector.
    ///
    /// # Errors
    /// The reason why it is not offered.
    pub(crate) fn read(text: &str) -> Result<Self, String> {
        let parts: Vec<&str> = text.split(',').filter(|part| !part.trim().is_empty()).collect();
        if parts.len() > TERMS_MAX {
            return Err(format!("a field selector has more than {TERMS_MAX} terms"));
        }
        parts.into_iter().map(term).collect::<Result<_, _>>().map(Self)
    }

    /// Whether an object has what the selector asks for.
    pub(crate) fn matches(&self, object: &Value) -> bool {
        self.0.iter().all(|term| {
            let found = term.field.split('.').try_fold(object, |value, part| value.get(part));
            (found.and_then(Value::as_str).unwrap_or_default() == term.value) == term.is_equal
        })
    }
}

fn term(text: &str) -> Result<Term, String> {
    let (field, value, is_equal) = if let Some((field, value)) = text.split_once("!=") {
        (field, value, false)
    } else if let Some((field, value)) = text.split_once("==").or_else(|| text.split_once('=')) {
        (field, value, true)
    } else {
        return Err("a field selector has a term without =".to_owned());
    };
    let field = FIELDS.into_iter().find(|known| *known == field.trim());
    let field = field
        .ok_or_else(|| format!("field selectors are offered for {} only", FIELDS.join(", ")))?;
    Ok(Term { field, value: value.trim().to_owned(), is_equal })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

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
            assert_eq!(FieldSelector::read(text).unwrap().matches(&pod), expected, "{text}");
        }
    }

    #[test]
    fn selector_of_another_field_or_shape_is_refused() {
        for text in ["spec.x=1", "metadata.name", &"metadata.name=a,".repeat(17)] {
            assert!(FieldSelector::read(text).is_err(), "{text}");
        }
    }
}
