//! What a guest sees of a Secret: digests of its values, but no digest by which it could check a
//! guess of a value that it never gets.
//!
//! Equal values at one place have equal digests. So a guest could desire a Secret with a guess of
//! its own where the host copied a value before, and compare the digests.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use super::Object;
use super::raw_json::{Members, join};
use super::type_meta::TypeMeta;
use crate::well_known::{APPLIED_ANNOTATION, COPIED_KEYS_ANNOTATION};

/// What a guest sees in place of the digest of a copied value.
const COPIED: &str = "copied";

/// What a guest sees in place of the digest of a value of a granted value source.
const VALUE_SOURCE: &str = "value source";

/// The members of a Secret that hold values.
const VALUES: [&str; 2] = ["data", "stringData"];

impl Object {
    /// The text as a guest may see it: that of a Secret is without the applied digests, since these
    /// are hashes without a key, from which a guest could guess a short value, and without the
    /// digests of copied values.
    pub fn guest_text(&self) -> Cow<'_, str> {
        let may_be_secret = self.text.contains(r#""kind":"Secret""#);
        let is_affected = may_be_secret && self.text.contains(APPLIED_ANNOTATION)
            || self.text.contains(COPIED_KEYS_ANNOTATION);
        // A text that cannot be read was not decoded by the host either.
        let shown = is_affected.then(|| self.shown().ok().flatten()).flatten();
        shown.map_or(Cow::Borrowed(&*self.text), Cow::Owned)
    }

    /// The same Secret without the digests of its values: a guest that could create an object in
    /// its place could check guesses by them.
    #[must_use]
    pub fn as_value_source(&self) -> Self {
        let hidden = || -> Result<String, serde_json::Error> {
            let members: Members<'_> = serde_json::from_str(&self.text)?;
            let replaced = values_replaced(&members, VALUE_SOURCE, |_| true)?;
            Ok(join(&members, &replaced, self.text.len()))
        };
        // An object that cannot be read shows nothing at all.
        let text = hidden().unwrap_or_else(|_| "{}".to_owned());
        Self { text: text.into(), ..self.clone() }
    }

    /// Whether the host copied values into the object, as far as its annotation says so.
    pub fn has_copied_values(&self) -> bool {
        self.annotation(COPIED_KEYS_ANNOTATION).is_some()
    }

    /// The text without the applied digests and those of copied values; `None` if the object is no
    /// Secret or has no annotations.
    fn shown(&self) -> Result<Option<String>, serde_json::Error> {
        let members: Members<'_> = serde_json::from_str(&self.text)?;
        if !TypeMeta::of(&members).is_ok_and(|type_meta| type_meta.is_secret()) {
            return Ok(None);
        }
        let Some(metadata) = members.get("metadata") else { return Ok(None) };
        let metadata_members: Members<'_> = serde_json::from_str(metadata.get())?;
        let Some(annotations) = metadata_members.get("annotations") else { return Ok(None) };
        let mut annotations: BTreeMap<String, String> = serde_json::from_str(annotations.get())?;
        annotations.retain(|name, _| !name.starts_with(APPLIED_ANNOTATION));
        let mut replaced = match annotations.get(COPIED_KEYS_ANNOTATION) {
            None => BTreeMap::new(),
            Some(keys) => {
                // A list that somebody has made unreadable hides every value.
                let keys: Option<BTreeSet<String>> = serde_json::from_str(keys).ok();
                let is_copied = |key: &str| keys.as_ref().is_none_or(|keys| keys.contains(key));
                values_replaced(&members, COPIED, is_copied)?
            }
        };
        let annotations = BTreeMap::from([("annotations", serde_json::to_string(&annotations)?)]);
        let metadata = join(&metadata_members, &annotations, metadata.get().len());
        replaced.insert("metadata", metadata);
        Ok(Some(join(&members, &replaced, self.text.len())))
    }
}

/// The members of a Secret that hold values, with `shown` in place of some of them.
fn values_replaced(
    members: &Members<'_>,
    shown: &str,
    is_replaced: impl Fn(&str) -> bool,
) -> Result<BTreeMap<&'static str, String>, serde_json::Error> {
    let mut replaced = BTreeMap::new();
    for member in VALUES {
        let Some(values) = members.get(member) else { continue };
        let values: Option<BTreeMap<String, String>> = serde_json::from_str(values.get())?;
        let mut values = values.unwrap_or_default();
        for (key, value) in &mut values {
            if is_replaced(key) {
                shown.clone_into(value);
            }
        }
        replaced.insert(member, serde_json::to_string(&values)?);
    }
    Ok(replaced)
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
