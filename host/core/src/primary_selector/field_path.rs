//! The value of a field of an object's text.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde_json::value::RawValue;

/// Whether a text is the path of a field: names, separated by dots.
pub(super) fn is_valid(path: &str) -> bool {
    path.split('.').all(|name| {
        !name.is_empty()
            && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '$'))
    })
}

/// Why no selector may have this path, and what to do; `None` if it may.
pub(super) fn problem(path: &str) -> Option<String> {
    let mut names = path.split('.');
    if names.next() != Some("metadata") {
        return None;
    }
    match names.next() {
        None => Some("metadata is no single value; select by one of its fields".to_owned()),
        Some("labels") => Some(format!("{path}: use matchLabels or matchExpressions")),
        Some("annotations") => {
            Some(format!("{path}: use matchAnnotations or matchAnnotationExpressions"))
        }
        Some("managedFields") => {
            Some(format!("the host does not keep {path}; select by another field"))
        }
        Some(
            "deletionGracePeriodSeconds"
            | "deletionTimestamp"
            | "finalizers"
            | "generation"
            | "resourceVersion",
        ) => Some(format!(
            "{path} changes while the host works on the object; select by another field"
        )),
        Some(_) => None,
    }
}

/// The value of a field; `None` if the object does not have it or it is null. Text is given as it
/// is, anything else as JSON.
///
/// It parses only the objects on the path, so that neither the depth nor the form of another field
/// has an effect.
pub(super) fn value<'a>(object: &'a str, path: &str) -> Option<Cow<'a, str>> {
    let mut text = object;
    for name in path.split('.') {
        let members: BTreeMap<Cow<'a, str>, &'a RawValue> = serde_json::from_str(text).ok()?;
        text = members.get(name)?.get();
    }
    match text {
        "null" => None,
        text if text.starts_with('"') => serde_json::from_str(text).ok().map(Cow::Owned),
        text => Some(Cow::Borrowed(text)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn value_is_the_text_or_the_json_of_a_field() {
        let object =
            r#"{"a":{"text":"x\"y","number":3,"yes":true,"list":[1],"none":null,"k\u0065y":1}}"#;
        for (path, expected) in [
            ("a.text", Some("x\"y")),
            ("a.number", Some("3")),
            ("a.yes", Some("true")),
            ("a.list", Some("[1]")),
            ("a.key", Some("1")),
            ("a.none", None),
            ("a.missing", None),
            ("a.text.more", None),
            ("b.c", None),
        ] {
            assert_eq!(value(object, path).as_deref(), expected, "{path}");
        }
    }

    #[test]
    fn deep_field_hides_no_other_field() {
        let deep = format!("{}{}", "[".repeat(1000), "]".repeat(1000));
        let object = format!(r#"{{"deep":{deep},"spec":{{"a":"b","deep":{deep}}}}}"#);
        assert_eq!(value(&object, "spec.a").as_deref(), Some("b"));
    }

    #[test]
    fn path_has_names_and_dots() {
        for (path, valid) in [
            ("spec.type", true),
            ("metadata.name", true),
            ("a", true),
            ("", false),
            ("spec.", false),
            (".spec", false),
            ("spec.list[0]", false),
            ("spec/type", false),
        ] {
            assert_eq!(is_valid(path), valid, "{path}");
        }
    }
}
