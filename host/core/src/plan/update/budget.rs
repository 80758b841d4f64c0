//! Which outdated objects of a group the host updates in this round.

use std::collections::BTreeSet;

use innkeeper_contract::{IntOrPercent, UpdateGroup, UpdateMethod};

use super::health::Health;
use super::member::{Member, MemberState};
use crate::ObjectRef;

/// What the host does with the outdated objects of a group.
pub(super) enum Decision {
    /// It updates those with these indexes of steps.
    Update(BTreeSet<usize>),
    /// Nothing: this object failed or was refused, for this reason.
    Stop(ObjectRef, String),
    /// Nothing: the guest paused the group.
    Pause,
    /// Nothing: they change when somebody deletes them.
    OnDelete,
}

/// Decides which outdated objects the host updates.
///
/// A rolling method bounds how many objects are on their way at a time. Outdated objects that do
/// not serve go first: so the number of objects that do not serve has the same bound, and the fix
/// of a bad change gets through although nothing serves.
pub(super) fn decide(group: &UpdateGroup, members: &[Member<'_>]) -> Decision {
    if group.method == UpdateMethod::OnDelete {
        return Decision::OnDelete;
    }
    if group.paused {
        return Decision::Pause;
    }
    let is_rolling = group.method.is_rolling();
    if let Some((object_ref, problem)) =
        members.iter().find_map(|member| Some((member.object_ref, stops(member, is_rolling)?)))
    {
        return Decision::Stop(object_ref.clone(), problem.to_owned());
    }
    let with = |serves: bool| {
        members.iter().filter(move |member| {
            matches!(member.state, MemberState::Outdated { is_available, .. } if is_available == serves)
                && !member.is_protected
        })
    };
    let chosen = with(false).chain(with(true)).take(budget(group, members));
    Decision::Update(chosen.map(|member| member.index).collect())
}

/// Why a member stops the update of the others, if it does.
fn stops<'a>(member: &'a Member<'_>, is_rolling: bool) -> Option<&'a str> {
    match &member.state {
        MemberState::Rejected(problem) | MemberState::Unknown(problem) => Some(problem),
        MemberState::Current(Health::Failed(problem)) if is_rolling => Some(problem),
        _ => None,
    }
}

/// How many objects may be updated in this round.
fn budget(group: &UpdateGroup, members: &[Member<'_>]) -> usize {
    let max = match group.method {
        // The first recreate shows that the server accepts the body.
        UpdateMethod::Recreate if !members.iter().any(Member::is_current) => 1,
        method if method.is_rolling() => max_unavailable(group, members.len()),
        _ => return usize::MAX,
    };
    let in_flight = members.iter().filter(|member| member.is_in_flight()).count();
    max.saturating_sub(in_flight)
}

/// How many of `count` members may be unavailable because of an update.
pub(super) fn max_unavailable(group: &UpdateGroup, count: usize) -> usize {
    match group.max_unavailable {
        None => 1,
        Some(IntOrPercent::Int(number)) => usize::try_from(number).unwrap_or(usize::MAX),
        Some(IntOrPercent::Percent(percent)) => (count * usize::from(percent) / 100).max(1),
    }
}
