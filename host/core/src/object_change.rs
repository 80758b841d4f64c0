//! Whether anybody reads what has changed of an object.
//!
//! A change concerns a primary if its last run could have seen it, or if the host decides by it.
//! The host itself decides by
//! - the identity, labels, owners, finalizers and deletion of every object, and its own entries of
//!   `managedFields`: another client that changes a field which the host applied takes it out of
//!   them, so drift always counts;
//! - the readiness of every object, which guests see and the condition `Ready` shows;
//! - everything but `status` of an object that it may write for the module, and who wrote it:
//!   annotations hold digests and consent, a restarted host compares values ([`crate::in_sync`]),
//!   and a field that another manager gives up can be written;
//! - everything of a primary whose status it writes, of a primary that is selected by fields, and
//!   of ConfigMaps and Secrets, whose values it may copy.

use innkeeper_contract::Kind;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::object::Entry;
use crate::object::raw_json::Members;
use crate::{Object, readiness, value_source};

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

/// Whether a change of an object may matter neither to the host nor to a guest that reads nothing
/// but identity and readiness. False if in doubt. For a guest that reads more, see
/// [`FieldMask::differs`](crate::FieldMask::differs).
pub fn is_unread_by_host(
    kind: &Kind,
    (before, after): (&Object, &Object),
    host: HostReads,
) -> bool {
    // The host may copy the values of any ConfigMap and Secret, see `crate::value_source`.
    if host == HostReads::Whole || value_source::is_kind_of_sources(kind) {
        return false;
    }
    // Whatever the manifest says of the kind: the object has an owner, or an entry of the host.
    let is_written =
        host == HostReads::Written || !after.entries.is_empty() || !after.owners.is_empty();
    same_head(before, after)
        && (!is_written || (same_writers(before, after) && same_but_for_status(before, after)))
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

/// Whether the entries of other managers are equal, but for those of statuses: another client that
/// gives up a field, which the host could not write before, may change nothing else.
fn same_writers(before: &Object, after: &Object) -> bool {
    let writers = |object: &'_ Object| -> Vec<_> {
        let all = object.other_managers.iter();
        all.filter(|other| &*other.subresource != "status").cloned().collect()
    };
    writers(before) == writers(after)
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
        let (before, after) = (before.text.read(), after.text.read());
        let (before, after) = (members(&before, &["status"])?, members(&after, &["status"])?);
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
