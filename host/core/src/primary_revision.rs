//! Primary revisions: states of named fields of a primary, each stored in a `ControllerRevision`
//! that the primary owns.
//!
//! They let a user return to an earlier state, and the host create a missing object of an update
//! group as it was. The host keeps no other state of them: which of them are genuine shows in
//! their digests, and which one the objects of a group are on shows in the objects.

mod content;
mod input;
mod revision;
mod stored;
mod substitutes;

use std::collections::BTreeSet;
use std::sync::Arc;

use innkeeper_contract::{Kind, Manifest, Policy, Reference};
use serde_json::json;

use crate::desired::{DesiredObject, DesiredState, InvalidDesired, is_controller_revision};
use crate::{ObjectKey, ObjectRef};
use content::Content;
use stored::{Stored, present_number};

pub use crate::well_known::{REVISION_DIGEST_ANNOTATION, REVISION_FIELD_PATHS_ANNOTATION};
pub use content::{REVISION_BYTES_MAX, with_revision};
pub use input::{KeyedDigest, RevisionInput};
pub use revision::PrimaryRevision;
pub use substitutes::{GroupOverLimit, groups_over_limit, substitute};

/// The reason of the Event for fields that the host cannot store.
pub const REVISION_TOO_LARGE: &str = "RevisionTooLarge";

/// The most earlier revisions for which the host calls the guest in one round.
pub const EARLIER_CALLS_MAX: usize = 2;

/// The revisions of a primary in one round.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PrimaryRevisions {
    /// The `ControllerRevisions` that the host desires: that of the present state, and those of as
    /// many earlier states as the history keeps.
    pub desired: Vec<DesiredObject>,
    /// Stored revisions that the host must not delete although they are not desired.
    pub keep: BTreeSet<Reference>,
    /// Stored revisions beyond the limit of the history. The host has made each as it is.
    pub surplus: BTreeSet<ObjectRef>,
    /// The genuine earlier revisions among the desired ones, newest first.
    pub earlier: Vec<PrimaryRevision>,
    /// Why the present state is not stored, for the Event [`REVISION_TOO_LARGE`].
    pub not_stored: Option<String>,
}

/// The kind `ControllerRevision` as a manifest declares it; `None` if the guest does not own it.
pub fn revision_kind(manifest: &Manifest) -> Option<Arc<Kind>> {
    let owned =
        manifest.owned.iter().find(|owned| !owned.merges && is_controller_revision(&owned.kind));
    owned.map(|owned| Arc::new(owned.kind.clone()))
}

/// Returns the revisions of a primary.
///
/// Of a primary that is being deleted the host stores nothing: Kubernetes deletes its stored
/// revisions with it.
pub fn of(input: &RevisionInput<'_>) -> PrimaryRevisions {
    let mut stored = Stored::all(input);
    if input.primary.is_terminating() {
        let keep = stored.iter().map(|one| one.object_ref.reference()).collect();
        return PrimaryRevisions { keep, ..PrimaryRevisions::default() };
    }
    let (present, not_stored) = match Content::of(input.primary, &input.history.field_paths) {
        Ok(content) => (Some(content), None),
        Err(problem) => (None, Some(problem)),
    };
    let mut desired = Vec::new();
    if let Some(content) = present {
        let digest = content.digest(input);
        let name = content::name(input.primary.key.name(), &digest);
        let number = present_number(&stored, &name);
        stored.retain(|one| one.object_ref.key.name() != name);
        desired.push(desired_object(input, &name, number, &content, &digest));
    }
    let limit = usize::try_from(input.history.limit).unwrap_or(usize::MAX);
    let surplus = stored.drain(limit.min(stored.len())..).map(|one| one.object_ref).collect();
    desired.extend(stored.iter().map(|one| {
        let name = one.object_ref.key.name();
        desired_object(input, name, one.number.max(1), &one.content, &one.digest)
    }));
    let earlier = stored.into_iter().filter(|one| one.is_signed).map(Stored::revision).collect();
    PrimaryRevisions { desired, keep: BTreeSet::new(), surplus, earlier, not_stored }
}

impl PrimaryRevisions {
    /// Adds the revisions to what a guest desires.
    ///
    /// # Errors
    /// [`InvalidDesired::Duplicate`] if the guest desires one of them itself.
    pub fn add_to(&self, desired: &mut DesiredState) -> Result<(), InvalidDesired> {
        desired.keep.extend(self.keep.iter().cloned());
        // The host alone decides how many it stores, not the guest.
        desired.keep.retain(|kept| self.surplus.iter().all(|one| one.reference() != *kept));
        desired.surplus_revisions.clone_from(&self.surplus);
        desired.add(self.desired.clone())
    }
}

fn desired_object(
    input: &RevisionInput<'_>,
    name: &str,
    number: i64,
    content: &Content,
    digest: &str,
) -> DesiredObject {
    let namespace = input.primary.key.namespace();
    let object_ref = ObjectRef::new(input.kind.clone(), ObjectKey::new(namespace, name));
    let mut body = object_ref.body();
    body["metadata"]["ownerReferences"] = json!([input.owner.owner_reference()]);
    body["metadata"]["annotations"] = json!({
        REVISION_DIGEST_ANNOTATION: digest,
        REVISION_FIELD_PATHS_ANNOTATION: content::joined(&content.field_paths),
    });
    body["revision"] = number.into();
    body["data"] = content.data.clone();
    DesiredObject::of_host(object_ref, body, BTreeSet::from([Policy::Independent]))
}
