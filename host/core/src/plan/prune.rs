//! Objects that are no longer desired: which of them the host deletes, unmerges or keeps.

use std::collections::BTreeSet;
use std::sync::Arc;

use innkeeper_contract::Policy;

use super::input::Input;
use super::skip_reason::SkipReason;
use super::state::Lookup;
use super::step::{Action, Step};
use crate::desired::DesiredObject;
use crate::old_names::DELETABLE_ANNOTATION;
use crate::ownership::{Ownership, PrimaryOwner};
use crate::well_known::ALLOW_DELETION_ANNOTATION;
use crate::{Object, ObjectRef, consent, order};

/// Group and kind of the kinds that hold data or other objects.
const PROTECTED: [(&str, &str); 4] = [
    ("", "PersistentVolumeClaim"),
    ("", "PersistentVolume"),
    ("", "Namespace"),
    ("apiextensions.k8s.io", "CustomResourceDefinition"),
];

/// The objects of the primary that are no longer desired, last kinds first: those that it merges
/// into if `merges`, else those that it applies.
fn undesired<'a>(
    input: &'a Input<'_>,
    merges: bool,
) -> impl Iterator<Item = &'a (ObjectRef, Arc<Object>)> {
    let has_same_mode =
        move |desired_object: &&DesiredObject| desired_object.has(Policy::Merge) == merges;
    let desired: BTreeSet<&ObjectRef> = input
        .desired
        .objects
        .iter()
        .filter(has_same_mode)
        .map(|desired_object| &desired_object.object_ref)
        .collect();
    // Two versions of a kind show one object twice.
    let desired_uids: BTreeSet<&str> = input
        .desired
        .objects
        .iter()
        .zip(input.lookups)
        .filter(|(desired_object, _)| has_same_mode(desired_object))
        .filter_map(|(_, lookup)| match lookup {
            Lookup::Found(object) => Some(&*object.uid),
            _ => None,
        })
        .collect();
    let mut undesired: Vec<&(ObjectRef, Arc<Object>)> = input
        .owned
        .iter()
        .filter(|(object_ref, object)| {
            !desired.contains(object_ref)
                && !desired_uids.contains(&*object.uid)
                && !input.desired.keep.contains(&object_ref.reference())
        })
        .collect();
    undesired.sort_by(|a, b| order::sort_key(&b.0).cmp(&order::sort_key(&a.0)));
    undesired.into_iter()
}

/// Whether the module made an object for the primary, and still owns it.
fn is_made(input: &Input<'_>, object: &Object) -> bool {
    input.primary.has_applied(object) && input.primary.ownership(object) == Ownership::Own
}

/// Plans the deletion of objects that the primary made and no longer desires, last kinds first.
pub(super) fn plan_prunes(input: &Input<'_>) -> Vec<Step> {
    undesired(input, false)
        .filter(|(_, object)| is_made(input, object) && !object.is_terminating())
        .map(|(object_ref, object)| Step {
            object_ref: object_ref.clone(),
            desired_index: None,
            action: if input.deleting && input.primary.is_retained(object) {
                Action::Skip(SkipReason::Retained)
            } else if may_be_deleted(input.primary, object_ref, object) {
                Action::Delete { uid: object.uid.clone() }
            } else {
                Action::Skip(SkipReason::Protected)
            },
        })
        .collect()
}

/// Plans the removal of fields that the primary merged and no longer desires.
pub(super) fn plan_unmerges(input: &Input<'_>) -> impl Iterator<Item = Step> {
    undesired(input, true)
        .filter(|(_, object)| input.primary.has_merged(object) && !object.is_terminating())
        .map(|(object_ref, object)| Step {
            object_ref: object_ref.clone(),
            desired_index: None,
            action: Action::Unmerge { uid: object.uid.clone() },
        })
}

/// The objects that the host has to wait for: those to delete or to unmerge, and those that are
/// being deleted.
pub(super) fn pending_deletion(input: &Input<'_>, prunes: &[Step]) -> Vec<ObjectRef> {
    let is_pending =
        |step: &&Step| matches!(step.action, Action::Delete { .. } | Action::Unmerge { .. });
    let terminating = undesired(input, false)
        .filter(|(_, object)| is_made(input, object) && object.is_terminating());
    prunes
        .iter()
        .filter(is_pending)
        .map(|step| step.object_ref.clone())
        .chain(terminating.map(|(object_ref, _)| object_ref.clone()))
        .collect()
}

/// Whether the host may delete an object: not if its kind holds data, unless an annotation of a
/// user or of the module's own policy permits it.
pub fn may_be_deleted(primary: &PrimaryOwner, object_ref: &ObjectRef, object: &Object) -> bool {
    let kind = (object_ref.kind.group(), object_ref.kind.kind.as_str());
    let permits = |name: &&str| {
        consent::of_user_or_module(object, name, primary.module()).as_deref() == Some("true")
    };
    !PROTECTED.contains(&kind)
        || [ALLOW_DELETION_ANNOTATION, DELETABLE_ANNOTATION].iter().any(permits)
}
