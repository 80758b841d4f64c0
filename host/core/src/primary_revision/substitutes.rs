//! Which missing objects of an update group the host creates as an earlier revision desires them.

use std::sync::Arc;

use crate::desired::{DesiredObject, DesiredState};
use crate::ownership::{Ownership, PrimaryOwner};
use crate::plan::{Lookup, UpdateProgress};
use crate::well_known::APPLIED_ANNOTATION;
use crate::{Object, ObjectRef};

/// An update group with missing objects over its limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupOverLimit {
    /// The name of the group.
    pub name: String,
    /// The missing objects over the limit.
    pub missing: Vec<ObjectRef>,
    /// The outdated objects of the group, each with the digest of its last apply.
    outdated: Vec<(ObjectRef, String)>,
}

/// Finds the groups with missing objects over the limit that an earlier revision may have: those
/// with an outdated object. `lookups` are those of the objects of `desired`, in the same order.
pub fn groups_over_limit(
    updates: &[UpdateProgress],
    desired: &DesiredState,
    lookups: &[Lookup],
    owner: &PrimaryOwner,
) -> Vec<GroupOverLimit> {
    let groups = updates.iter().filter(|update| !update.over_limit.is_empty());
    groups
        .filter_map(|update| {
            let members = desired
                .objects
                .iter()
                .zip(lookups)
                .filter(|(object, _)| object.update_group.as_ref() == Some(&update.group));
            let outdated: Vec<_> = members
                .filter_map(|(object, lookup)| {
                    let Lookup::Found(live) = lookup else { return None };
                    let applied = applied_digest(live, owner)?;
                    (applied != object.digest()).then(|| (object.object_ref.clone(), applied))
                })
                .collect();
            (!outdated.is_empty()).then(|| GroupOverLimit {
                name: update.group.clone(),
                missing: update.over_limit.clone(),
                outdated,
            })
        })
        .collect()
}

/// Replaces missing objects over the limit by those that `earlier` has, and removes their groups
/// from `groups`. Returns how many it replaced. `earlier` is what the guest desires for an earlier
/// revision, with the placeholders of its values.
///
/// It does so only for a group of which an outdated object is as `earlier` desires it: that proves
/// that the group is on this revision. Another version of the guest, or other objects that the
/// guest reads, would give another digest.
pub fn substitute(
    desired: &mut DesiredState,
    earlier: &DesiredState,
    groups: &mut Vec<GroupOverLimit>,
) -> usize {
    let mut replaced = 0;
    groups.retain(|group| {
        let find = |object_ref: &ObjectRef| member(earlier, object_ref, &group.name);
        let is_proven = group.outdated.iter().any(|(object_ref, applied)| {
            find(object_ref).is_some_and(|object| object.digest() == applied)
        });
        if is_proven {
            let substitutes = group.missing.iter().filter_map(find);
            replaced += substitutes.filter(|object| desired.replace(object)).count();
        }
        !is_proven
    });
    replaced
}

/// The desired object of this name, if it is in the group.
fn member<'a>(
    desired: &'a DesiredState,
    object_ref: &ObjectRef,
    group: &str,
) -> Option<&'a DesiredObject> {
    desired.objects.iter().find(|object| {
        object.object_ref == *object_ref && object.update_group.as_deref() == Some(group)
    })
}

/// The digest with which the host applied an object of the primary last.
fn applied_digest(live: &Arc<Object>, owner: &PrimaryOwner) -> Option<String> {
    (owner.ownership(live) == Ownership::Own).then(|| live.annotation(APPLIED_ANNOTATION))?
}
