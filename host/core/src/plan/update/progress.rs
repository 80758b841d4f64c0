//! How far the update of a group is.

use std::time::Duration;

use innkeeper_contract::{UpdateGroup, UpdateMethod};

use super::budget::Decision;
use super::health::Health;
use super::member::{Member, MemberState};
use super::over_limit::over_limit;
use crate::ObjectRef;

/// How far the update of a group is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UpdateProgress {
    /// The name of the group.
    pub group: String,
    /// How the host updates its objects.
    pub method: UpdateMethod,
    /// How many objects the group has.
    pub total: usize,
    /// How many of them are as the guest desires them now.
    pub updated: usize,
    /// How many of the updated ones are available.
    pub available: usize,
    /// What the update does next.
    pub state: UpdateState,
    /// After which time the state may change although no object does.
    pub look_again: Option<Duration>,
    /// The missing objects that the limit does not let the host create as they are desired now, in
    /// the order of the document. Without an earlier form of them it creates them so all the same.
    pub over_limit: Vec<ObjectRef>,
}

/// What the update of a group does next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UpdateState {
    /// Nothing: all objects are updated. Whether they are available is no matter of the update.
    Done,
    /// It updates objects in this round.
    Updating,
    /// It waits for this object to become available, which it is not for this reason.
    Waiting(ObjectRef, String),
    /// It is stopped: this object failed for this reason.
    Failed(ObjectRef, String),
    /// The guest paused it.
    Paused,
    /// So many objects change when somebody deletes them.
    OnDelete(usize),
}

/// Returns the progress of a group, of which the host does this in this round.
pub(super) fn of(
    group: &UpdateGroup,
    members: &[Member<'_>],
    decision: Decision,
) -> UpdateProgress {
    let is_available =
        |member: &&Member<'_>| matches!(member.state, MemberState::Current(Health::Available));
    let is_update_left = members.iter().any(Member::is_outdated);
    UpdateProgress {
        group: group.name.clone(),
        method: group.method,
        total: members.len(),
        updated: members.iter().filter(|member| member.is_current()).count(),
        available: members.iter().filter(is_available).count(),
        look_again: look_again(members).filter(|_| is_update_left && !group.paused),
        over_limit: over_limit(group, members, &decision),
        state: state(group, members, decision),
    }
}

fn state(group: &UpdateGroup, members: &[Member<'_>], decision: Decision) -> UpdateState {
    let outdated = members.iter().filter(|member| member.is_outdated()).count();
    if outdated > 0 {
        match decision {
            Decision::Stop(object_ref, problem) => return UpdateState::Failed(object_ref, problem),
            Decision::Pause => return UpdateState::Paused,
            Decision::OnDelete => return UpdateState::OnDelete(outdated),
            Decision::Update(chosen) if !chosen.is_empty() => return UpdateState::Updating,
            Decision::Update(_) => {}
        }
    }
    if !group.method.is_rolling() && !group.method.recreates() {
        return UpdateState::Done;
    }
    members
        .iter()
        .find_map(|member| {
            let reason = reason_to_wait(member, outdated > 0)?;
            Some(UpdateState::Waiting(member.object_ref.clone(), reason))
        })
        .unwrap_or(UpdateState::Done)
}

/// Why the update waits for a member, if it does. It waits for availability only as long as others
/// are to be updated: an updated object that serves no more is a matter of its readiness.
fn reason_to_wait(member: &Member<'_>, is_update_left: bool) -> Option<String> {
    match &member.state {
        MemberState::Missing => Some("it does not exist yet".to_owned()),
        MemberState::Adopting => Some("it is being adopted".to_owned()),
        MemberState::Taken => Some("another's object has its name".to_owned()),
        MemberState::Terminating => Some("it is being deleted".to_owned()),
        MemberState::Current(Health::Waiting(problem, _) | Health::Failed(problem))
            if is_update_left =>
        {
            Some(problem.clone())
        }
        MemberState::Outdated { .. } if member.is_protected => {
            Some("the host may not recreate it".to_owned())
        }
        MemberState::Outdated { .. }
        | MemberState::Current(_)
        | MemberState::Rejected(_)
        | MemberState::Unknown(_) => None,
    }
}

/// After which time the health of a member may change although the object does not.
fn look_again(members: &[Member<'_>]) -> Option<Duration> {
    let times = members.iter().filter_map(|member| match &member.state {
        MemberState::Current(Health::Waiting(_, time)) => *time,
        _ => None,
    });
    times.min()
}
