//! Which missing objects of a group the limit does not let the host create as they are desired now.

use innkeeper_contract::UpdateGroup;

use super::budget::{Decision, max_unavailable};
use super::member::{Member, MemberState};
use crate::ObjectRef;

/// The missing objects over the limit, in the order of the document.
///
/// While an update goes on, missing objects take the places of the limit first: one of them may be
/// the object that the update has just deleted. A stopped or paused update has no places. A group
/// without an outdated object has no update, so it has no limit either. A terminating object counts
/// as outdated, since nobody knows its revision, and so does one whose desired body the server
/// refused.
pub(super) fn over_limit(
    group: &UpdateGroup,
    members: &[Member<'_>],
    decision: &Decision,
) -> Vec<ObjectRef> {
    if !group.method.is_rolling() || !members.iter().any(Member::may_be_outdated) {
        return Vec::new();
    }
    let is_missing = |member: &&Member<'_>| matches!(member.state, MemberState::Missing);
    let places = match decision {
        Decision::Stop(..) | Decision::Pause | Decision::OnDelete => 0,
        Decision::Update(_) => {
            let others = members.iter().filter(|member| !is_missing(member));
            let in_flight = others.filter(|member| member.is_in_flight()).count();
            max_unavailable(group, members.len()).saturating_sub(in_flight)
        }
    };
    let missing = members.iter().filter(is_missing).skip(places);
    missing.map(|member| member.object_ref.clone()).collect()
}
