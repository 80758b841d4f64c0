//! Which writes of a plan the update groups let through in this round.
//!
//! The host keeps no state of an update: whether an object is outdated shows in the step that
//! [`plan_desired`](super::desired::plan_desired) chose for it, and whether an updated one is
//! available shows in the object. So a host that restarts decides as the one before.

mod budget;
mod health;
mod member;
mod over_limit;
mod progress;
mod proof;

use std::collections::BTreeSet;

use innkeeper_contract::UpdateGroup;

use super::input::Input;
use super::skip_reason::SkipReason;
use super::step::{Action, Step};
use crate::ObjectRef;
use budget::Decision;
use member::{Member, MemberState};

pub use progress::{UpdateProgress, UpdateState};

/// Limits the writes to the members of update groups: turns writes into skips, or applies into
/// recreates. `steps` are those of the desired objects, in the same order.
///
/// It adds no write to an object for which none is planned, with one exception: where the group
/// recreates its objects, it recreates an object whose body the server rejected for an immutable
/// field.
///
/// A primary that is being deleted has no groups: a guest that finalizes it by changing its objects
/// must not wait for their readiness.
///
/// Returns the progress of each group.
pub(super) fn limit(steps: &mut [Step], input: &Input<'_>) -> Vec<UpdateProgress> {
    if input.deleting {
        return Vec::new();
    }
    input.desired.update_groups.iter().map(|group| limit_group(group, steps, input)).collect()
}

/// Leaves of the objects over the limits only those that the plan creates: of one that a conflict
/// holds back, no earlier form is needed.
pub(super) fn keep_creates(updates: &mut [UpdateProgress], steps: &[Step]) {
    if updates.iter().all(|update| update.over_limit.is_empty()) {
        return;
    }
    let creates = steps.iter().filter(|step| matches!(step.action, Action::Create));
    let object_refs: BTreeSet<&ObjectRef> = creates.map(|step| &step.object_ref).collect();
    for update in updates {
        update.over_limit.retain(|object_ref| object_refs.contains(object_ref));
    }
}

fn limit_group(group: &UpdateGroup, steps: &mut [Step], input: &Input<'_>) -> UpdateProgress {
    let mut members: Vec<Member<'_>> = input
        .desired
        .objects
        .iter()
        .zip(input.lookups)
        .zip(steps.iter())
        .enumerate()
        .filter(|(_, ((object, _), _))| object.update_group.as_ref() == Some(&group.name))
        .filter_map(|(index, ((object, lookup), step))| {
            Member::of(group, (index, object), lookup, &step.action, input)
        })
        .collect();
    members.sort_by_key(|member| member.position);
    let decision = budget::decide(group, &members);
    for member in &members {
        let MemberState::Outdated { uid, .. } = &member.state else { continue };
        let Some(step) = steps.get_mut(member.index) else { continue };
        let adopts = matches!(step.action, Action::Adopt { .. });
        let recreates =
            !adopts && (group.method.recreates() || matches!(step.action, Action::Recreate { .. }));
        match &decision {
            Decision::OnDelete => step.action = Action::Skip(SkipReason::UpdateOnDelete),
            Decision::Update(chosen) if chosen.contains(&member.index) => {
                // A recreate of the policy follows a rejection, which shows a difference.
                if recreates && !matches!(step.action, Action::Recreate { .. }) {
                    step.action = Action::Recreate { uid: uid.clone(), dry_run_first: true };
                }
            }
            Decision::Update(_) if member.is_protected => {
                step.action = Action::Skip(SkipReason::UpdateProtected);
            }
            Decision::Update(_) | Decision::Stop(..) | Decision::Pause => {
                step.action = Action::Skip(SkipReason::UpdatePending { recreates });
            }
        }
    }
    progress::of(group, &members, decision)
}
