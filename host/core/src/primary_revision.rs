//! Primary revisions: states of named fields of a primary, each stored in a `ControllerRevision`
//! that the primary owns.
//!
//! They let a user return to an earlier state, and the host create a missing object of an update
//! group as it was. The host keeps no other state of them: which of them are genuine, and in which
//! API version of the primary, shows in their digests, and which one the objects of a group are on
//! shows in the objects.

mod content;
mod input;
mod revision;
mod stored;
mod substitutes;

use std::collections::BTreeSet;
use std::sync::Arc;

use innkeeper_contract::{Kind, Manifest, Policy, Reference};
use serde_json::json;

use crate::ObjectRef;
use crate::desired::{DesiredObject, DesiredState, InvalidDesired, is_controller_revision};
use content::Content;
use stored::Stored;

pub use crate::well_known::{
    REVISION_API_VERSION_ANNOTATION, REVISION_DIGEST_ANNOTATION, REVISION_FIELD_PATHS_ANNOTATION,
};
pub use content::{REVISION_BYTES_MAX, with_revision};
pub use input::{KeyedDigest, RevisionInput};
pub use revision::{PrimaryRevision, RevisionOfOtherVersion};
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
    /// Stored revisions beyond the limit of the history, and those whose API version nothing
    /// proves. The host has made the content of each.
    pub surplus: BTreeSet<ObjectRef>,
    /// The earlier revisions among the desired ones that are in the present API version of the
    /// primary, newest first.
    pub earlier: Vec<PrimaryRevision>,
    /// The other earlier revisions among the desired ones, newest first.
    pub of_other_version: Vec<RevisionOfOtherVersion>,
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
    let mut revisions = PrimaryRevisions::default();
    match Content::of(input.primary, &input.history.field_paths) {
        Ok(content) => {
            let present = Stored::present(input, content, &stored);
            // Equal fields of another API version are this revision, which is in the present one.
            stored.retain(|one| one.object_ref != present.object_ref);
            revisions.desired.push(desired_object(input, &present, input.api_version()));
        }
        Err(problem) => revisions.not_stored = Some(problem),
    }
    let mut room = usize::try_from(input.history.limit).unwrap_or(usize::MAX);
    for one in stored {
        let Some(api_version) = one.api_version.clone().filter(|_| room > 0) else {
            revisions.surplus.insert(one.object_ref);
            continue;
        };
        room -= 1;
        revisions.desired.push(desired_object(input, &one, &api_version));
        if api_version == input.api_version() {
            revisions.earlier.push(one.revision());
        } else {
            let name = one.object_ref.key.name().to_owned();
            revisions.of_other_version.push(RevisionOfOtherVersion { name, api_version });
        }
    }
    revisions
}

impl PrimaryRevisions {
    /// Whether there are genuine earlier revisions, in any API version of the primary.
    pub fn has_earlier(&self) -> bool {
        !self.earlier.is_empty() || !self.of_other_version.is_empty()
    }

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

fn desired_object(input: &RevisionInput<'_>, one: &Stored, api_version: &str) -> DesiredObject {
    let mut body = one.object_ref.body();
    body["metadata"]["ownerReferences"] = json!([input.owner.owner_reference()]);
    body["metadata"]["annotations"] = json!({
        REVISION_API_VERSION_ANNOTATION: api_version,
        REVISION_DIGEST_ANNOTATION: content::digest_in(input, &one.digest, api_version),
        REVISION_FIELD_PATHS_ANNOTATION: content::joined(&one.content.field_paths),
    });
    body["revision"] = one.number.max(1).into();
    body["data"] = one.content.data.clone();
    DesiredObject::of_host(one.object_ref.clone(), body, BTreeSet::from([Policy::Independent]))
}
