//! The conditions of a Module with a policy: whether requests reach it, and how their reviews end.

use innkeeper_contract::{Condition, ConditionStatus};
use innkeeper_modules::machine::condition::{
    HEALTHY_CONDITION, READY_CONDITION, SERVING_CONDITION,
};

use crate::policies::PolicyState;

/// The reason of a revision that only reviews requests and gets none.
const POLICY_NOT_ACTIVE: &str = "PolicyNotActive";

/// The reason of a revision that only reviews requests, and whose reviews succeed.
const REVIEWS_SUCCEED: &str = "ReviewsSucceed";

/// The reason of a revision that only reviews requests, and some of whose reviews failed.
const SOME_REVIEWS_FAILED: &str = "SomeReviewsFailed";

/// Why a revision that only reviews requests gets none.
const NO_REQUESTS: &str = "It only reviews requests, and no API server sends this host any: the host has no admission port, or cannot read its policies (see its log).";

/// The reason of a policy of which the leader knows nothing yet.
const POLICY_STATE_UNKNOWN: &str = "PolicyStateUnknown";

/// How many digits of the id of a record are shown.
const RECORD_DIGITS: usize = 12;

/// What this host knows of a decided policy.
pub(super) struct ObservedPolicy<'a> {
    /// Whether this host leads policies.
    pub(super) is_leading: bool,
    /// What the leader knows of it; `None` before its first round, and if this host leads no
    /// policies.
    pub(super) state: Option<&'a PolicyState>,
    /// The conditions of the live Module.
    pub(super) live: &'a [Condition],
}

/// Replaces what the driver says of a revision that only reviews requests: it is active as far as
/// the driver knows, and the leader of policies knows which replicas review with it. A policy that
/// no request reaches is not ready.
pub(super) fn replace_serving(conditions: &mut [Condition], policy: &ObservedPolicy<'_>) {
    let Some(serving) = true_one(conditions, SERVING_CONDITION) else { return };
    if let Some(state) = policy.state {
        *serving = state.condition(serving);
    } else if policy.is_leading {
        *serving = not_known_yet(SERVING_CONDITION);
    } else {
        serving.status = ConditionStatus::False;
        POLICY_NOT_ACTIVE.clone_into(&mut serving.reason);
        serving.message = format!("{} {NO_REQUESTS}", serving.message);
    }
    if serving.status == ConditionStatus::True {
        return;
    }
    let not_ready = Condition { type_: READY_CONDITION.to_owned(), ..serving.clone() };
    if let Some(ready) = true_one(conditions, READY_CONDITION) {
        *ready = not_ready;
    }
}

/// The condition of a type, if it is true.
fn true_one<'c>(conditions: &'c mut [Condition], type_: &str) -> Option<&'c mut Condition> {
    let is_it = |one: &&mut Condition| one.type_ == type_ && one.status == ConditionStatus::True;
    conditions.iter_mut().find(is_it)
}

/// Replaces what the driver says of the runs of a revision that only reviews requests: it
/// reconciles nothing. The condition keeps the first failed review that it names, so that a policy
/// that fails often does not write the status each time.
pub(super) fn replace_healthy(conditions: &mut [Condition], policy: &ObservedPolicy<'_>) {
    let healthy = conditions.iter_mut().find(|one| one.type_ == HEALTHY_CONDITION);
    let Some(healthy) = healthy else { return };
    *healthy = match policy.state {
        Some(state) if state.reviewing == 0 => {
            Condition { status: ConditionStatus::Unknown, ..state.condition(healthy) }
        }
        Some(state) => reviews_condition(state, policy.live),
        None if policy.is_leading => not_known_yet(HEALTHY_CONDITION),
        None => Condition {
            type_: HEALTHY_CONDITION.to_owned(),
            status: ConditionStatus::Unknown,
            reason: POLICY_NOT_ACTIVE.to_owned(),
            message: NO_REQUESTS.to_owned(),
        },
    };
}

/// Whether the reviews of a policy succeed, with the first failed one that the Module names.
fn reviews_condition(state: &PolicyState, live: &[Condition]) -> Condition {
    let record = &state.record[..state.record.len().min(RECORD_DIGITS)];
    let (reason, message) = if state.failed_reviews == 0 {
        let message = format!(
            "No review with the record {record} has failed since the present replicas started."
        );
        (REVIEWS_SUCCEED, message)
    } else {
        let failed = format!("Reviews with the record {record} have ended without a verdict: ");
        let is_named =
            |one: &&Condition| one.type_ == HEALTHY_CONDITION && one.message.starts_with(&failed);
        let named = live.iter().find(is_named).map(|named| named.message.clone());
        let example = state.failure_example.as_deref().unwrap_or("see the log of the host");
        let message = named.unwrap_or_else(|| {
            format!(
                "{failed}{example}. The metric innkeeper_policy_review_failures_total counts them."
            )
        });
        (SOME_REVIEWS_FAILED, message)
    };
    Condition {
        type_: HEALTHY_CONDITION.to_owned(),
        status: ConditionStatus::True,
        reason: reason.to_owned(),
        message,
    }
}

/// A condition of a policy before the leader has looked at its replicas: the live one is truer.
fn not_known_yet(type_: &str) -> Condition {
    Condition {
        type_: type_.to_owned(),
        status: ConditionStatus::Unknown,
        reason: POLICY_STATE_UNKNOWN.to_owned(),
        message: "The leader has not looked yet which replicas review with the policy.".to_owned(),
    }
}

/// Replaces what does not hold while the API server or the replicas do not know the policy:
/// `problem` is the reason and the message.
pub(super) fn replace_unreviewed(
    conditions: &mut [Condition],
    (reason, message): (&str, &str),
    is_policy_only: bool,
) {
    for condition in conditions {
        let is_about_policy = condition.type_ == READY_CONDITION
            || (is_policy_only && condition.type_ == SERVING_CONDITION);
        if is_about_policy {
            condition.status = ConditionStatus::False;
            reason.clone_into(&mut condition.reason);
            message.clone_into(&mut condition.message);
        }
    }
}
