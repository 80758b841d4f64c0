//! What of the text of an object stays: no `managedFields`, no copy of the object in an annotation,
//! and digests in place of the values of a Secret. Decoding and reviews use the same functions.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;

use super::error::DecodeError;
use super::hidden_digests::without_digests;
use super::raw_json::{Members, join};
use super::secret::{self, SecretDigest};
use super::type_meta::TypeMeta;
use crate::ObjectKey;

/// The annotation in which `kubectl apply` keeps the object, and that no object keeps.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// The annotations in which other tools keep the object that they applied. One of them is packed,
/// so its text does not show what it holds.
const APPLIED_BY_TOOLS: [&str; 3] =
    ["banzaicloud.com/last-applied", "kapp.k14s.io/original", "objectset.rio.cattle.io/applied"];

/// Whether the host shows an annotation to nobody: it holds a copy of the object. Of a Secret, each
/// annotation that looks like one counts.
pub fn is_hidden_annotation(name: &str, value: &str, is_secret: bool) -> bool {
    name == LAST_APPLIED || (is_secret && (APPLIED_BY_TOOLS.contains(&name) || is_copy(value)))
}

/// Whether a text is a JSON object with the values of a Secret.
fn is_copy(text: &str) -> bool {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Copy {
        data: Option<IgnoredAny>,
        string_data: Option<IgnoredAny>,
    }
    text.trim_start().starts_with('{')
        && serde_json::from_str::<Copy>(text)
            .is_ok_and(|copy| copy.data.is_some() || copy.string_data.is_some())
}

/// Joins the members of `metadata` without hidden annotations.
///
/// # Errors
/// If annotations that have to be read are no map of texts.
pub(super) fn metadata(
    members: &Members<'_>,
    is_secret: bool,
    capacity: usize,
) -> Result<String, DecodeError> {
    let mut replaced: BTreeMap<&str, String> = BTreeMap::new();
    if let Some(annotations) = members.get("annotations")
        && (is_secret || may_name(annotations.get(), LAST_APPLIED))
    {
        let map: Option<BTreeMap<String, String>> = serde_json::from_str(annotations.get())?;
        if let Some(mut map) = map {
            map.retain(|name, value| !is_hidden_annotation(name, value, is_secret));
            replaced.insert("annotations", serde_json::to_string(&map)?);
        }
    }
    Ok(join(members, &replaced, capacity))
}

/// Whether a JSON text may have a member of this name, with or without escapes in it.
fn may_name(text: &str, name: &str) -> bool {
    text.contains(name) || text.contains("\\u") || text.contains("\\/")
}

/// The members of a Secret that hold values, with digests in their place.
///
/// # Errors
/// [`DecodeError::Secret`] if one is no map of texts.
pub(super) fn values(
    members: &Members<'_>,
    key: &ObjectKey,
    digest: &SecretDigest<'_>,
) -> Result<Vec<(&'static str, String)>, DecodeError> {
    let values = ["data", "stringData"].into_iter().filter_map(|name| {
        let values = members.get(name)?;
        Some(secret::redact(key, values, digest).map(|digests| (name, digests)))
    });
    values.collect()
}

/// Returns the text of an object without `managedFields` and hidden annotations, and that of a
/// Secret with digests.
///
/// An object is a Secret if `is_secret` says so or if it names itself one. `key` has the namespace
/// and the name for the digests if the object has none.
///
/// # Errors
/// If the text is no object of Kubernetes.
pub fn shown_text(
    text: &RawValue,
    key: &ObjectKey,
    is_secret: bool,
    digest: &SecretDigest<'_>,
) -> Result<String, DecodeError> {
    let text = text.get();
    let members: Members<'_> = serde_json::from_str(text)?;
    let is_secret = is_secret || TypeMeta::of(&members)?.is_secret();
    let mut replaced: BTreeMap<&str, String> = BTreeMap::new();
    if let Some(raw) = members.get("metadata").filter(|raw| raw.get() != "null") {
        let mut inner: Members<'_> = serde_json::from_str(raw.get())?;
        inner.remove("managedFields");
        replaced.insert("metadata", metadata(&inner, is_secret, raw.get().len())?);
    }
    if !is_secret {
        return Ok(join(&members, &replaced, text.len()));
    }
    let key = own_key(&members, key)?;
    replaced.extend(values(&members, &key, digest)?);
    let shown = join(&members, &replaced, text.len());
    Ok(without_digests(&shown, true)?.unwrap_or(shown))
}

/// The key in the metadata of an object, each part that it lacks from `key`.
fn own_key(members: &Members<'_>, key: &ObjectKey) -> Result<ObjectKey, DecodeError> {
    #[derive(Default, Deserialize)]
    struct Metadata<'a> {
        #[serde(default, borrow)]
        namespace: Cow<'a, str>,
        #[serde(default, borrow)]
        name: Cow<'a, str>,
    }
    let metadata = match members.get("metadata") {
        Some(metadata) => {
            serde_json::from_str::<Option<Metadata<'_>>>(metadata.get())?.unwrap_or_default()
        }
        None => Metadata::default(),
    };
    let or = |own: &str, other: &str| if own.is_empty() { other } else { own }.to_owned();
    let (namespace, name) =
        (or(&metadata.namespace, key.namespace()), or(&metadata.name, key.name()));
    Ok(ObjectKey::new(&namespace, &name))
}
