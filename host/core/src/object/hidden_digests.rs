//! The text of a Secret without the digests that a guest does not see.

use std::collections::{BTreeMap, BTreeSet};

use super::raw_json::{Members, join};
use super::type_meta::TypeMeta;
use crate::well_known::{APPLIED_ANNOTATION, COPIED_KEYS_ANNOTATION};

/// What a guest sees in place of the digest of a copied value.
const COPIED: &str = "copied";

/// The members of a Secret that hold values.
const VALUES: [&str; 2] = ["data", "stringData"];

/// The text of a Secret without the applied digests and those of copied values; `None` if it has no
/// annotations. Without `is_secret`, it is a Secret if it names itself one, and `None` if not.
///
/// # Errors
/// If the text is no object of Kubernetes.
pub(super) fn without_digests(
    text: &str,
    is_secret: bool,
) -> Result<Option<String>, serde_json::Error> {
    let members: Members<'_> = serde_json::from_str(text)?;
    if !is_secret && !TypeMeta::of(&members).is_ok_and(|type_meta| type_meta.is_secret()) {
        return Ok(None);
    }
    let Some(metadata) = members.get("metadata") else { return Ok(None) };
    let metadata_members: Option<Members<'_>> = serde_json::from_str(metadata.get())?;
    let metadata_members = metadata_members.unwrap_or_default();
    let Some(annotations) = metadata_members.get("annotations") else { return Ok(None) };
    let annotations: Option<BTreeMap<String, String>> = serde_json::from_str(annotations.get())?;
    let Some(mut annotations) = annotations else { return Ok(None) };
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
    Ok(Some(join(&members, &replaced, text.len())))
}

/// The members of a Secret that hold values, with `shown` in place of some of them.
pub(super) fn values_replaced(
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
