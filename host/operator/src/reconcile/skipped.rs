//! Which skipped step of a plan is a problem, and which is as it is desired.

use std::time::Duration;

use innkeeper_core::ObjectRef;
use innkeeper_core::desired::MissingValuesProblem;
use innkeeper_core::plan::{Action, Plan, SkipReason, Step};
use jiff::Timestamp;

use crate::reconcile::problem::{Problem, Retry};
use crate::reconcile::refusal::RefusalCause;

/// Whether a skipped object is as it is desired.
pub fn is_up_to_date(reason: &SkipReason) -> bool {
    matches!(reason, SkipReason::InSync | SkipReason::CreateOnly)
}

/// Whether a step skips an object that is as it is desired.
pub fn is_step_up_to_date(step: &Step) -> bool {
    match &step.action {
        Action::Skip(reason) => is_up_to_date(reason),
        _ => false,
    }
}

/// Whether every object of a plan is as it is desired.
pub fn is_all_up_to_date(plan: &Plan) -> bool {
    plan.steps.iter().all(is_step_up_to_date)
}

/// The object to read live before the next round, since the cache may be wrong about it.
pub fn needs_read(step: &Step) -> Option<&ObjectRef> {
    match &step.action {
        Action::Skip(SkipReason::Unknown) => Some(&step.object_ref),
        Action::Skip(SkipReason::MissingValues(missing))
            if missing.problem == MissingValuesProblem::Unknown =>
        {
            Some(&missing.source)
        }
        _ => None,
    }
}

/// The problem of a step that the plan skips; `None` if the step is skipped as it should be.
pub fn problem(object_ref: &ObjectRef, reason: &SkipReason, now: Timestamp) -> Option<Problem> {
    let (word, retry) = match reason {
        // The run has read the kind's state and the object's name: a change of either wakes it.
        SkipReason::NotServed => ("NotServed", Retry::OnChange),
        SkipReason::Unreadable(_) => ("Unreadable", Retry::OnChange),
        SkipReason::Conflict { .. } => ("Conflict", Retry::OnChange),
        SkipReason::Reserved => ("ReservedObject", Retry::OnChange),
        SkipReason::Rejected(rejected) => (rejected.reason.as_str(), Retry::OnChange),
        SkipReason::Unknown => ("Unknown", Retry::Backoff),
        SkipReason::MergeTargetMissing => ("MergeTargetMissing", Retry::OnChange),
        SkipReason::MissingValues(missing) => (
            missing.reason(),
            // Until the live read, no change of the source wakes the request.
            match missing.problem {
                MissingValuesProblem::Unknown => Retry::Backoff,
                _ => Retry::OnChange,
            },
        ),
        SkipReason::UpdateProtected => ("UpdateProtected", Retry::OnChange),
        SkipReason::FieldContested(fight) => {
            let wait = Duration::try_from(fight.until.duration_since(now)).unwrap_or_default();
            ("Contested", Retry::After(wait))
        }
        // The conflict that holds back an object is a problem of its own, and names the object.
        SkipReason::HeldBack(_)
        | SkipReason::InSync
        | SkipReason::CreateOnly
        | SkipReason::OptionalNotServed
        | SkipReason::Terminating
        | SkipReason::Protected
        | SkipReason::PrunePending
        | SkipReason::Retained
        | SkipReason::UpdatePending { .. }
        | SkipReason::UpdateOnDelete => return None,
    };
    let refusal = match reason {
        SkipReason::Reserved => Some(RefusalCause::Guest),
        SkipReason::Conflict { .. }
        | SkipReason::Rejected(_)
        | SkipReason::FieldContested(_)
        | SkipReason::MergeTargetMissing
        | SkipReason::MissingValues(_)
        | SkipReason::UpdateProtected => Some(RefusalCause::Data),
        _ => None,
    };
    Some(Problem {
        refusal,
        object_ref: Some(object_ref.clone()),
        reason: word.to_owned(),
        message: reason.to_string(),
        retry,
    })
}
