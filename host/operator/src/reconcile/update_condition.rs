//! What the condition `Synced` says about the updates of update groups. Pure: everything comes in
//! as values.

use innkeeper_core::counted_len;
use innkeeper_core::plan::{UpdateProgress, UpdateState};

/// The reason of a primary whose objects are being updated.
pub const UPDATING: &str = "Updating";

/// The reason of a primary with a group whose update is stopped, since an object failed.
const UPDATE_FAILED: &str = "UpdateFailed";

/// The reason of a primary with a group that the guest paused.
const UPDATE_PAUSED: &str = "UpdatePaused";

/// Why a primary is not synced, if updates are the cause.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UpdateCondition {
    /// The reason of the condition: that of the group that needs most attention.
    pub reason: &'static str,
    /// What each unfinished group waits for, and what to do.
    pub message: String,
}

impl UpdateCondition {
    /// Why a primary with these groups is not synced; `None` if their updates are done, or objects
    /// change only when somebody deletes them.
    pub fn of(updates: &[UpdateProgress]) -> Option<Self> {
        let mut lines: Vec<(Rank, String)> =
            updates.iter().filter_map(|one| Some((Rank::of(&one.state)?, line(one)))).collect();
        lines.sort_by_key(|(rank, _)| *rank);
        let (first, _) = lines.first()?;
        let reason = first.reason();
        let lines: Vec<String> = lines.into_iter().map(|(_, line)| line).collect();
        Some(Self { reason, message: lines.join("; ") })
    }

    /// Whether a user has to do something.
    pub fn is_failure(&self) -> bool {
        self.reason == UPDATE_FAILED
    }
}

/// The message of a primary that is synced: which objects change when somebody deletes them.
pub fn applied(updates: &[UpdateProgress]) -> String {
    let on_delete = updates.iter().filter_map(|one| match one.state {
        UpdateState::OnDelete(count) => {
            let objects = counted_len(count, "object", "objects");
            let verb = if count == 1 { "changes when it is" } else { "change when they are" };
            Some(format!("; {objects} of update group {} {verb} deleted", one.group))
        }
        _ => None,
    });
    format!("Every desired object is applied{}.", on_delete.collect::<String>())
}

/// How many objects of all groups are as they are desired.
pub fn updated(updates: &[UpdateProgress]) -> usize {
    updates.iter().map(|one| one.updated).sum()
}

/// How many objects of all groups are not as they are desired.
pub fn outdated(updates: &[UpdateProgress]) -> usize {
    updates.iter().map(|one| one.total.saturating_sub(one.updated)).sum()
}

/// How much attention an unfinished update needs, most first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    Failed,
    Waiting,
    Updating,
    Paused,
}

impl Rank {
    fn of(state: &UpdateState) -> Option<Self> {
        match state {
            UpdateState::Failed(..) => Some(Self::Failed),
            UpdateState::Waiting(..) => Some(Self::Waiting),
            UpdateState::Updating => Some(Self::Updating),
            UpdateState::Paused => Some(Self::Paused),
            UpdateState::Done | UpdateState::OnDelete(_) => None,
        }
    }

    fn reason(self) -> &'static str {
        match self {
            Self::Failed => UPDATE_FAILED,
            Self::Waiting | Self::Updating => UPDATING,
            Self::Paused => UPDATE_PAUSED,
        }
    }
}

fn line(progress: &UpdateProgress) -> String {
    let UpdateProgress { group, updated, total, .. } = progress;
    let verb = if *updated == 1 { "is" } else { "are" };
    let count = format!("{updated} of {} {verb} updated", counted_len(*total, "object", "objects"));
    match &progress.state {
        UpdateState::Failed(object_ref, problem) => format!(
            "update group {group} is stopped: {count}, and {object_ref} failed: {problem}; correct the primary or delete the object, then the host goes on"
        ),
        UpdateState::Waiting(object_ref, reason) => {
            format!("update group {group}: {count}; it waits for {object_ref}: {reason}")
        }
        UpdateState::Paused => format!("update group {group} is paused: {count}"),
        UpdateState::Updating | UpdateState::Done | UpdateState::OnDelete(_) => {
            format!("update group {group}: {count}; the host updates the next")
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use innkeeper_contract::{Kind, UpdateMethod};
    use innkeeper_core::{ObjectKey, ObjectRef};

    use super::*;

    fn progress(group: &str, state: UpdateState) -> UpdateProgress {
        UpdateProgress {
            group: group.to_owned(),
            method: UpdateMethod::RollingRecreate,
            total: 5,
            updated: 2,
            available: 1,
            state,
            look_again: None,
            over_limit: Vec::new(),
        }
    }

    fn pod() -> ObjectRef {
        let kind = Kind::namespaced("v1", "Pod", "pods");
        ObjectRef::new(Arc::new(kind), ObjectKey::new("web", "a-1"))
    }

    #[test]
    fn worst_state_gives_the_reason_and_each_unfinished_group_a_line() {
        let updates = [
            progress("a", UpdateState::Done),
            progress("b", UpdateState::Paused),
            progress("c", UpdateState::Waiting(pod(), "it is pending".to_owned())),
            progress("d", UpdateState::Updating),
            progress("e", UpdateState::OnDelete(3)),
        ];
        let condition = UpdateCondition::of(&updates).unwrap();
        assert_eq!((condition.reason, condition.is_failure()), ("Updating", false));
        assert_eq!(
            condition.message,
            "update group c: 2 of 5 objects are updated; it waits for Pod web/a-1: it is pending; update group d: 2 of 5 objects are updated; the host updates the next; update group b is paused: 2 of 5 objects are updated"
        );
        let failed = [
            updates[1].clone(),
            progress("f", UpdateState::Failed(pod(), "it crashes".to_owned())),
        ];
        let condition = UpdateCondition::of(&failed).unwrap();
        assert_eq!((condition.reason, condition.is_failure()), ("UpdateFailed", true));
        assert!(condition.message.starts_with("update group f is stopped: 2 of 5 objects are updated, and Pod web/a-1 failed: it crashes; correct the primary or delete the object"));
    }

    #[test]
    fn objects_that_change_when_they_are_deleted_leave_the_primary_synced() {
        let updates = [progress("a", UpdateState::OnDelete(3)), progress("b", UpdateState::Done)];
        assert_eq!(UpdateCondition::of(&updates), None);
        assert_eq!(
            applied(&updates),
            "Every desired object is applied; 3 objects of update group a change when they are deleted."
        );
        assert_eq!(applied(&[]), "Every desired object is applied.");
    }
}
