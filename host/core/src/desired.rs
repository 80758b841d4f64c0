//! The desired state of a primary: one `desired` document of a guest, validated and completed.
//!
//! The host refuses a document that violates the contract as a whole, since a part of a desired
//! state is not a desired state.

mod copied_values;
mod error;
mod object;
mod placement;
mod revision_history;
#[cfg(test)]
mod tests;
mod update_groups;
mod validate;
mod values;

use std::collections::{BTreeMap, BTreeSet};

use innkeeper_contract::{Desired, Manifest, Reference, RevisionHistory, UpdateGroup};

use crate::host_names::Grants;
use crate::ownership::PrimaryOwner;
use crate::{ObjectRef, control, guest_status, names, order};

pub(crate) use copied_values::CachedSource;
pub use copied_values::{CopiedSource, MissingValues, MissingValuesProblem};
pub use error::InvalidDesired;
pub use object::DesiredObject;
pub(crate) use placement::source_ref as value_source_ref;
pub use revision_history::is_controller_revision;

/// The desired state of one primary, validated.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DesiredState {
    /// The objects, in the order in which the host applies them.
    pub objects: Vec<DesiredObject>,
    /// Objects of earlier runs that the host must not delete although they are not desired.
    pub keep: BTreeSet<Reference>,
    /// The update groups, in the order of the document.
    pub update_groups: Vec<UpdateGroup>,
    /// Which fields of the primary the host stores.
    pub revision_history: Option<RevisionHistory>,
    /// Revisions of the primary beyond the limit of its history: the host deletes them, whatever
    /// becomes of the other objects.
    pub surplus_revisions: BTreeSet<ObjectRef>,
}

impl DesiredState {
    /// Checks and completes a `desired` document.
    ///
    /// `grants` is what the Module allows its guest beyond the defaults.
    ///
    /// # Errors
    /// Returns the first violation of the contract. The host then applies nothing of the document.
    pub fn read(
        desired: &Desired,
        manifest: &Manifest,
        primary: &PrimaryOwner,
        grants: Grants<'_>,
    ) -> Result<Self, InvalidDesired> {
        if control::decorates(manifest)
            && (desired.status.is_some() || !desired.conditions.is_empty())
        {
            return Err(InvalidDesired::MalformedStatus {
                problem: format!(
                    "the guest decorates {}, so it may not set its status and conditions",
                    primary.object_ref.kind
                ),
            });
        }
        guest_status::check(desired.status.as_ref(), &desired.conditions, &desired.events)
            .map_err(|problem| InvalidDesired::MalformedStatus { problem })?;
        if let Some(history) = &desired.revision_history {
            revision_history::check(history, manifest)?;
        }
        let update_groups = update_groups::read(&desired.update_groups)?;
        let mut objects = Vec::with_capacity(desired.objects.len());
        let mut names = BTreeSet::new();
        for (position, object) in desired.objects.iter().enumerate() {
            let mut one = validate::read_object(object, manifest, primary, grants, &update_groups)?;
            one.position = position;
            if !names.insert(one.object_ref.clone()) {
                return Err(InvalidDesired::Duplicate { what: one.object_ref.to_string() });
            }
            objects.push(one);
        }
        check_versions(&objects)?;
        objects.sort_by(|a, b| order::sort_key(&a.object_ref).cmp(&order::sort_key(&b.object_ref)));
        for (index, kept) in desired.keep.iter().enumerate() {
            names::check_reference(&kept.api_version, &kept.kind, &kept.namespace, &kept.name)
                .map_err(|problem| InvalidDesired::Malformed {
                    what: format!("keep[{index}]"),
                    problem,
                })?;
        }
        let keep = desired
            .keep
            .iter()
            .map(|reference| with_namespace(reference, manifest, primary))
            .collect();
        let revision_history = desired.revision_history.clone();
        let surplus_revisions = BTreeSet::new();
        Ok(Self { objects, keep, update_groups, revision_history, surplus_revisions })
    }

    /// Adds objects that the host desires in addition to those of the guest.
    ///
    /// # Errors
    /// [`InvalidDesired::Duplicate`] if the guest desires one of them itself.
    pub(crate) fn add(&mut self, objects: Vec<DesiredObject>) -> Result<(), InvalidDesired> {
        let names: BTreeSet<&ObjectRef> = self.objects.iter().map(|one| &one.object_ref).collect();
        if let Some(taken) = objects.iter().find(|one| names.contains(&one.object_ref)) {
            return Err(InvalidDesired::Duplicate { what: taken.object_ref.to_string() });
        }
        self.objects.extend(objects);
        self.objects
            .sort_by(|a, b| order::sort_key(&a.object_ref).cmp(&order::sort_key(&b.object_ref)));
        Ok(())
    }

    /// Puts an object in the place of the one of its name, if there is one. It keeps the place in
    /// the document of the guest.
    pub(crate) fn replace(&mut self, object: &DesiredObject) -> bool {
        let Some(present) = self.objects.iter_mut().find(|one| one.object_ref == object.object_ref)
        else {
            return false;
        };
        *present = DesiredObject { position: present.position, ..object.clone() };
        true
    }
}

/// Checks that no object is given in two versions of its kind, which are one object: each apply
/// undoes the other. Of an optional kind a guest may give every version, as one may be unserved.
///
/// # Errors
/// Returns the first such object.
fn check_versions(objects: &[DesiredObject]) -> Result<(), InvalidDesired> {
    let mut versions = BTreeMap::new();
    for DesiredObject { object_ref, optional, .. } in objects {
        if *optional {
            continue;
        }
        let ObjectRef { kind, key } = object_ref;
        if let Some(first) = versions.insert((kind.group(), &kind.kind, key), &kind.api_version) {
            return Err(InvalidDesired::TwoVersions {
                what: object_ref.to_string(),
                first: first.clone(),
                second: kind.api_version.clone(),
            });
        }
    }
    Ok(())
}

/// Completes a `keep` reference of a namespaced kind: without a namespace it means the primary's.
fn with_namespace(reference: &Reference, manifest: &Manifest, primary: &PrimaryOwner) -> Reference {
    let mut reference = reference.clone();
    let namespaced = manifest.owned.iter().any(|owned| {
        owned.kind.kind == reference.kind
            && owned.kind.api_version == reference.api_version
            && owned.kind.is_namespaced()
    });
    if namespaced && reference.namespace.is_empty() {
        reference.namespace = primary.object_ref.key.namespace().to_string();
    }
    reference
}
