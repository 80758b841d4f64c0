//! Secrets: which objects are Secrets, and the digests in place of their values.

use std::collections::BTreeMap;

use innkeeper_contract::Kind;
use serde_json::value::RawValue;

use super::error::DecodeError;
use crate::ObjectKey;

/// Computes the text that replaces one value of a Secret, from the key of the Secret, the name of
/// the value, and the value as the object holds it (base64 in `data`).
pub type SecretDigest<'a> = dyn Fn(&ObjectKey, &str, &str) -> String + 'a;

/// Types of Secrets that hold a token of the API server. With one, an output could give away an
/// identity.
const TOKEN_TYPES: [&str; 2] =
    ["kubernetes.io/service-account-token", "bootstrap.kubernetes.io/token"];

/// Whether Secrets of a type hold a token of the API server: no Module can grant them.
pub fn is_token_type(type_: &str) -> bool {
    TOKEN_TYPES.contains(&type_)
}

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
