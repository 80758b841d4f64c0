//! Whether anybody reads what has changed of an object.
//!
//! A change concerns a primary if its last run could have seen it, or if the host decides by it.
//! The host itself decides by
//! - the identity, labels, owners, finalizers and deletion of every object, and its own entries of
//!   `managedFields`: another client that changes a field which the host applied takes it out of
//!   them, so drift always counts;
//! - the readiness of every object, which guests see and the condition `Ready` shows;
//! - everything but `status` of an object that it may write for the module: annotations hold
//!   digests and consent, and a restarted host compares values ([`crate::in_sync`]);
//! - everything of a primary whose status it writes, of a primary that is selected by fields, and
//!   of ConfigMaps and Secrets, whose values it may copy.

use innkeeper_contract::Kind;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::object::raw_json::Members;
use crate::object::{self, Entry};
use crate::{FieldMask, Object, readiness};

/// Members of `metadata` that change with every write, or that the head has.
const VERSIONS: [&str; 3] = ["generation", "managedFields", "resourceVersion"];

/// What the host itself needs of the objects of a kind, for one module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostReads {
    /// Every field.
    Whole,
    /// Every field but `status`: the module may write such objects.
    Written,
    /// The head and the readiness: the module only reads such objects. Of one that has an owner, or
    /// an entry of the host, as of those that it may write.
    Head,
}

/// Whether a change of an object may matter neither to the host nor to a guest that reads `mask` of
/// the kind (`None`: nothing but identity and readiness). False if in doubt.
pub fn is_unread(
    kind: &Kind,
    (before, after): (&Object, &Object),
    host: HostReads,
    mask: Option<&FieldMask>,
) -> bool {
    // The host may copy the values of any ConfigMap and Secret, see `crate::value_source`.
    if host == HostReads::Whole
        || object::holds_secrets(kind)
        || (kind.api_version == "v1" && kind.kind == "ConfigMap")
    {
        return false;
    }
    // Whatever the manifest says of the kind: the object has an owner, or an entry of the host.
    let is_written =
        host == HostReads::Written || !after.entries.is_empty() || !after.owners.is_empty();
    same_head(before, after)
        && mask.is_none_or(|mask| !mask.differs(&before.text, &after.text))
        && (!is_written || same_but_for_status(before, after))
        && readiness::of(kind, before) == readiness::of(kind, after)
}

/// Whether the heads of two versions are equal but for the version and the other managers, whose
/// times change with every write of theirs.
fn same_head(before: &Object, after: &Object) -> bool {
    before.key == after.key
        && before.uid == after.uid
        && before.labels == after.labels
        && before.owners == after.owners
        && before.deletion_timestamp == after.deletion_timestamp
        && before.finalizers == after.finalizers
        && applied(before).eq(applied(after))
}

/// The host's own entries, without those of statuses: the host reads these of primaries only, which
/// it reads whole.
fn applied(object: &Object) -> impl Iterator<Item = &Entry> {
    object.entries.iter().filter(|entry| &*entry.subresource != "status")
}

/// Whether two versions differ in their status and version only. False for a text that is no
/// object.
fn same_but_for_status(before: &Object, after: &Object) -> bool {
    let same = || -> Result<bool, serde_json::Error> {
        let (before, after) =
            (members(&before.text, &["status"])?, members(&after.text, &["status"])?);
        Ok(before.keys().eq(after.keys())
            && before.iter().zip(after.values()).all(|((name, before), after)| {
                same_value(before, after) || (name == "metadata" && same_metadata(before, after))
            }))
    };
    before.generation == after.generation && same().unwrap_or(false)
}

fn same_metadata(before: &RawValue, after: &RawValue) -> bool {
    let (Ok(before), Ok(after)) =
        (members(before.get(), &VERSIONS), members(after.get(), &VERSIONS))
    else {
        return false;
    };
    before.keys().eq(after.keys())
        && before.values().zip(after.values()).all(|(before, after)| same_value(before, after))
}

/// The members of an object without some.
fn members<'a>(text: &'a str, without: &[&str]) -> Result<Members<'a>, serde_json::Error> {
    let mut members: Members<'a> = serde_json::from_str(text)?;
    members.retain(|name, _| !without.contains(&&**name));
    Ok(members)
}

fn same_value(before: &RawValue, after: &RawValue) -> bool {
    let parsed = |value: &RawValue| serde_json::from_str::<Value>(value.get()).ok();
    before.get() == after.get() || parsed(before).is_some_and(|value| Some(value) == parsed(after))
}

#[cfg(test)]
mod tests;
