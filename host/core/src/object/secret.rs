//! Secrets: which objects are Secrets, and which of their texts a guest may see.

use std::borrow::Cow;
use std::collections::BTreeMap;

use innkeeper_contract::Kind;
use serde_json::value::RawValue;

use super::Object;
use super::error::DecodeError;
use super::raw_json::{Members, join};
use super::type_meta::TypeMeta;
use crate::ObjectKey;
use crate::well_known::APPLIED_ANNOTATION;

/// Computes the text that replaces one value of a Secret, from the key of the Secret, the name of
/// the value, and the value as the object holds it (base64 in `data`).
pub type SecretDigest<'a> = dyn Fn(&ObjectKey, &str, &str) -> String + 'a;

/// Whether objects of a kind are Secrets: by group and resource, whichever name the kind has, or by
/// the name of the kind, whichever name the resource has.
pub fn holds_secrets(kind: &Kind) -> bool {
    kind.group().is_empty() && (kind.plural == "secrets" || kind.kind == "Secret")
}

/// Replaces each value of `data` or `stringData` by its digest.
///
/// # Errors
/// Returns [`DecodeError::Secret`] if a value is no string.
pub(super) fn redact(
    key: &ObjectKey,
    values: &RawValue,
    digest: &SecretDigest<'_>,
) -> Result<String, DecodeError> {
    let values: Option<BTreeMap<String, String>> =
        serde_json::from_str(values.get()).map_err(|_| DecodeError::Secret)?;
    let digests: BTreeMap<String, String> = values
        .unwrap_or_default()
        .into_iter()
        .map(|(name, value)| {
            let digest = digest(key, &name, &value);
            (name, digest)
        })
        .collect();
    Ok(serde_json::to_string(&digests)?)
}

impl Object {
    /// The text as a guest may see it: that of a Secret is without the applied digests, since these
    /// are hashes without a key, from which a guest could guess a short value.
    pub fn guest_text(&self) -> Cow<'_, str> {
        let may_be_secret = self.text.contains(r#""kind":"Secret""#);
        let redacted = (may_be_secret && self.text.contains(APPLIED_ANNOTATION))
            .then(|| self.without_applied_digests().ok().flatten())
            .flatten();
        redacted.map_or(Cow::Borrowed(&*self.text), Cow::Owned)
    }

    /// The text without the applied digests; `None` if the object is no Secret or has no
    /// annotations.
    fn without_applied_digests(&self) -> Result<Option<String>, serde_json::Error> {
        let members: Members<'_> = serde_json::from_str(&self.text)?;
        if !TypeMeta::of(&members).is_ok_and(|type_meta| type_meta.is_secret()) {
            return Ok(None);
        }
        let Some(metadata) = members.get("metadata") else { return Ok(None) };
        let metadata_members: Members<'_> = serde_json::from_str(metadata.get())?;
        let Some(annotations) = metadata_members.get("annotations") else { return Ok(None) };
        let mut annotations: BTreeMap<String, String> = serde_json::from_str(annotations.get())?;
        annotations.retain(|name, _| !name.starts_with(APPLIED_ANNOTATION));
        let replaced = BTreeMap::from([("annotations", serde_json::to_string(&annotations)?)]);
        let metadata = join(&metadata_members, &replaced, metadata.get().len());
        Ok(Some(join(&members, &BTreeMap::from([("metadata", metadata)]), self.text.len())))
    }
}
