//! Whether applying a desired object would change nothing, decided without a request.
//!
//! The host does not compare values: the server stores some in another form than they were sent
//! (a quantity `1000m` becomes `1`, lists get defaults), so a comparison would apply such an object
//! forever. Instead it uses a rule of server-side apply: a client that changes the value of a field
//! takes the field out of the other managers' entries of `managedFields`. So an object is in sync
//! if
//! - the desired object is the one that the host last applied (their digests are equal), and
//! - the manager's entry still holds every field that the host applied.
//!
//! The running host remembers both as of its last apply ([`LastApplied`]). After a restart it reads
//! the digest from an annotation on the object ([`set_digest`]), and computes from the desired
//! object which entry to expect ([`is_in_sync_after_restart`]).
//!
//! After a restart the host applies two kinds of objects once, needlessly:
//! - those with a desired empty list whose items the server merges by key: it leaves no trace in
//!   the entry,
//! - those with an object that the server keeps whole, in which it stores a value in another form
//!   than it was sent (the `divisor: 1000m` of a resourceFieldRef becomes `1`).
//!
//! One change is missed: while the host was down, others took all members of a map (an object whose
//! names are no fields of a schema) and then wrote the host's values back. No repair is needed
//! then.

mod comparison;
mod digest;
mod host_fields;
mod last_applied;
mod owner_version;

use serde_json::Value;

use crate::fieldset::FieldSet;
use crate::{Manager, Object};

use comparison::Comparison;

pub use crate::well_known::APPLIED_ANNOTATION;
pub use comparison::matches;
pub(crate) use digest::canonical_text;
pub use digest::{digest, merge_annotation, set_digest, set_merge_digest};
pub use host_fields::same_but_for_host_fields;
pub use last_applied::LastApplied;
pub use owner_version::digest_in_version_of_owner;

/// Whether applying a desired object would change nothing, as far as the object itself shows: its
/// annotation has the digest of `desired`, and the manager's entry is the one that applying
/// `desired` gives.
///
/// `desired` carries its digest ([`set_digest`] or [`set_merge_digest`]), as the host would send
/// it.
pub fn is_in_sync_after_restart(live: &Object, manager: &Manager, desired: &Value) -> bool {
    let Some(entry) = live.applied_by(manager) else { return false };
    let Some((annotation, digest)) = applied_annotation(desired, manager) else { return false };
    // Cheap first: most objects that differ do not contain the digest anywhere.
    if !live.text.read().contains(digest) {
        return false;
    }
    let Ok(entry) = FieldSet::parse(&entry) else { return false };
    let mut comparison = Comparison::default();
    if !comparison.root(desired, &entry, None) {
        return false;
    }
    let Ok(live) = serde_json::from_str::<Value>(&live.text.read()) else { return false };
    live["metadata"]["annotations"][annotation] == digest
        && (!comparison.ambiguous || comparison.root(desired, &entry, Some(&live)))
}

/// The name and value of the annotation with the digest of a desired object.
fn applied_annotation<'a>(desired: &'a Value, manager: &Manager) -> Option<(&'a str, &'a str)> {
    let annotations = desired.get("metadata")?.get("annotations")?.as_object()?;
    let merged = merge_annotation(manager);
    annotations
        .iter()
        .find(|(name, _)| *name == APPLIED_ANNOTATION || **name == merged)
        .and_then(|(name, digest)| Some((name.as_str(), digest.as_str()?)))
}
