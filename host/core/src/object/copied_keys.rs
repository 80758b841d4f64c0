//! What a guest sees of a Secret: digests of its values, but no digest by which it could check a
//! guess of a value that it never gets.
//!
//! Equal values at one place have equal digests. So a guest could desire a Secret with a guess of
//! its own where the host copied a value before, and compare the digests.

use std::borrow::Cow;

use super::Object;
use super::hidden_digests::{values_replaced, without_digests};
use super::raw_json::{Members, join};
use crate::well_known::{APPLIED_ANNOTATION, COPIED_KEYS_ANNOTATION};

/// What a guest sees in place of the digest of a value of a granted value source.
const VALUE_SOURCE: &str = "value source";

impl Object {
    /// The text as a guest may see it: that of a Secret is without the applied digests, since these
    /// are hashes without a key, from which a guest could guess a short value, and without the
    /// digests of copied values.
    pub fn guest_text(&self) -> Cow<'_, str> {
        let text = self.text.read();
        let may_be_secret = text.contains(r#""kind":"Secret""#);
        let is_affected = may_be_secret && text.contains(APPLIED_ANNOTATION)
            || text.contains(COPIED_KEYS_ANNOTATION);
        // A text that cannot be read was not decoded by the host either.
        let shown = is_affected.then(|| without_digests(&text, false).ok().flatten()).flatten();
        shown.map_or(text, Cow::Owned)
    }

    /// The same Secret without the digests of its values: a guest that could create an object in
    /// its place could check guesses by them.
    #[must_use]
    pub fn as_value_source(&self) -> Self {
        let hidden = || -> Result<String, serde_json::Error> {
            let text = self.text.read();
            let members: Members<'_> = serde_json::from_str(&text)?;
            let replaced = values_replaced(&members, VALUE_SOURCE, |_| true)?;
            Ok(join(&members, &replaced, text.len()))
        };
        // An object that cannot be read shows nothing at all.
        let text = hidden().unwrap_or_else(|_| "{}".to_owned());
        Self { text: text.into(), ..self.clone() }
    }

    /// Whether the host copied values into the object, as far as its annotation says so.
    pub fn has_copied_values(&self) -> bool {
        self.annotation(COPIED_KEYS_ANNOTATION).is_some()
    }
}

#[cfg(test)]
mod tests {
    use innkeeper_contract::Kind;
    use serde_json::{Value, json};

    use super::*;

    fn secret(annotations: &Value) -> Object {
        let text = json!({"apiVersion": "v1", "kind": "Secret", "type": "Opaque",
            "metadata": {"name": "s", "namespace": "n", "annotations": annotations},
            "data": {"a": "digest-a", "b": "digest-b"}});
        Object::decode(&Kind::namespaced("v1", "Secret", "secrets"), &text.to_string(), None)
            .unwrap()
    }

    fn shown(annotations: &Value) -> Value {
        serde_json::from_str(&secret(annotations).guest_text()).unwrap()
    }

    #[test]
    fn copied_keys_are_shown_without_their_digests_and_other_keys_with_them() {
        let copy = shown(&json!({COPIED_KEYS_ANNOTATION: "[\"a\"]"}));
        assert_eq!(copy["data"], json!({"a": "copied", "b": "digest-b"}));
        let own = shown(&json!({"x": "y"}));
        assert_eq!(own["data"], json!({"a": "digest-a", "b": "digest-b"}));
    }

    #[test]
    fn unreadable_list_of_copied_keys_hides_every_value() {
        for list in ["", "a", "{}", "[1]", "[\"a\""] {
            let copy = shown(&json!({COPIED_KEYS_ANNOTATION: list}));
            assert_eq!(copy["data"], json!({"a": "copied", "b": "copied"}), "{list}");
        }
    }

    #[test]
    fn value_source_is_shown_with_its_keys_and_without_digests() {
        let source = secret(&json!({"x": "y"})).as_value_source();
        let shown: Value = serde_json::from_str(&source.guest_text()).unwrap();
        assert_eq!(shown["data"], json!({"a": "value source", "b": "value source"}));
        assert_eq!(shown["type"], "Opaque");
    }
}
