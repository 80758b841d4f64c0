//! The conditions of a primary. Pure: everything comes in as values.

use std::collections::{BTreeMap, BTreeSet};

use innkeeper_contract::{Condition, ConditionStatus, ReadinessState};
use innkeeper_core::{foreign, guest_status, readiness, run_result};

use crate::modules::granted_secrets::GrantedSecrets;
use crate::reconcile::status_input::StatusInput;
use crate::reconcile::update_condition;

/// The host's condition: whether every desired object is applied.
pub const SYNCED: &str = "Synced";

/// Whether the primary's objects are ready. The guest may give this condition itself.
pub const READY: &str = "Ready";

/// Whether the API server serves all optional kinds; only on primaries whose guest has some.
pub const KINDS_AVAILABLE: &str = "KindsAvailable";

/// The host's conditions and the guest's. The guest's `Ready` replaces the host's; `Synced` is the
/// host's alone. Types that differ in case only are one type: `kubectl wait` ignores case, and
/// would take the guest's condition for the host's. Where the host shows the result of the run, its
/// condition is the host's alone too.
pub fn all(status_input: &StatusInput, has_optional: bool, shows_result: bool) -> Vec<Condition> {
    let mut by_type: BTreeMap<String, Condition> = BTreeMap::new();
    let mut add = |condition: Condition| {
        by_type.entry(condition.type_.to_ascii_lowercase()).or_insert(condition);
    };
    add(synced(status_input));
    if shows_result {
        add(run_result::condition(&status_input.last_run()));
    }
    for condition in &status_input.conditions {
        add(condition.clone());
    }
    let has_ready = is_of_type(&status_input.conditions, READY);
    if !has_ready && (status_input.status.is_some() || status_input.problems.is_empty()) {
        add(ready(status_input));
    }
    if has_optional {
        add(kinds_available(status_input));
    }
    by_type.into_values().collect()
}

/// Whether one of the conditions has the type, in upper or lower case.
fn is_of_type(conditions: &[Condition], type_: &str) -> bool {
    conditions.iter().any(|condition| condition.type_.eq_ignore_ascii_case(type_))
}

/// The first condition of each type: the API server refuses a list with two of one type.
pub fn first_of_each_type(conditions: &[Condition]) -> Vec<Condition> {
    let mut types = BTreeSet::new();
    conditions.iter().filter(|one| types.insert(one.type_.to_ascii_lowercase())).cloned().collect()
}

fn synced(status_input: &StatusInput) -> Condition {
    let (type_, granted) = (SYNCED, &status_input.granted);
    if let Some(writes) = &status_input.paused {
        let message = match writes.as_slice() {
            [] => "The primary is paused; nothing is to be written.".to_owned(),
            writes => format!("The primary is paused; to be written: {}.", writes.join("; ")),
        };
        return make(granted, type_, ConditionStatus::False, "Paused", &message);
    }
    if let Some(reason) = status_input.problems.reason() {
        let message = status_input.problems.message();
        return make(granted, type_, ConditionStatus::False, reason, &message);
    }
    if let Some(updates) = status_input.update_condition() {
        return make(granted, type_, ConditionStatus::False, updates.reason, &updates.message);
    }
    let message = update_condition::applied(&status_input.updates);
    make(granted, type_, ConditionStatus::True, "Applied", &message)
}

fn ready(status_input: &StatusInput) -> Condition {
    let (type_, granted) = (READY, &status_input.granted);
    if !status_input.problems.is_empty() {
        return make(
            granted,
            type_,
            ConditionStatus::False,
            "NotSynced",
            &status_input.problems.message(),
        );
    }
    for (object_ref, object) in &status_input.owned {
        let readiness = readiness::of(&object_ref.kind, object);
        if readiness.state != ReadinessState::Ready {
            let reason = match readiness.state {
                ReadinessState::InProgress => "InProgress",
                ReadinessState::Failed => "Failed",
                ReadinessState::Terminating => "Terminating",
                ReadinessState::Ready | ReadinessState::Unknown => "Unknown",
            };
            let message = format!("{object_ref}: {}", readiness.message);
            return make(granted, type_, ConditionStatus::False, reason, &message);
        }
    }
    make(granted, type_, ConditionStatus::True, "ObjectsReady", "Every object is ready.")
}

fn kinds_available(status_input: &StatusInput) -> Condition {
    let (type_, granted) = (KINDS_AVAILABLE, &status_input.granted);
    let unserved = &status_input.unserved;
    if unserved.is_empty() {
        return make(
            granted,
            type_,
            ConditionStatus::True,
            "AllKindsServed",
            "The API server serves all kinds.",
        );
    }
    let message = format!(
        "The API server does not serve {}; the host creates objects of it as soon as it does.",
        unserved.join(", ")
    );
    make(granted, type_, ConditionStatus::False, "NotServed", &message)
}

/// A condition of the host. A message about a thousand objects is cut to a length that can be
/// written; granted values are masked before that, while they can be found.
fn make(
    granted: &GrantedSecrets,
    type_: &str,
    status: ConditionStatus,
    reason: &str,
    message: &str,
) -> Condition {
    let message = foreign::message(granted.mask(message), guest_status::MESSAGE_BYTES_MAX);
    Condition { type_: type_.to_owned(), status, reason: reason.to_owned(), message }
}

/// The condition with a message that a terminal shows literally, also if it is the guest's.
pub fn visible(condition: Condition) -> Condition {
    if foreign::is_message(&condition.message) {
        return condition;
    }
    let message = foreign::message(&condition.message, usize::MAX);
    // The escaped message is longer, and a cut one ends in three dots.
    let message = foreign::message(&message, guest_status::CONDITION_MESSAGE_BYTES_MAX - 3);
    Condition { message, ..condition }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::Map;

    use super::*;
    use crate::reconcile::problem::{Problem, Problems, Retry};

    fn status_input() -> StatusInput {
        StatusInput { status: Some(Map::new()), ..StatusInput::default() }
    }

    fn lines(status_input: &StatusInput, has_optional: bool) -> Vec<String> {
        all(status_input, has_optional, false)
            .into_iter()
            .map(|one| {
                format!("{}={} {}: {}", one.type_, one.status.as_str(), one.reason, one.message)
            })
            .collect()
    }

    #[test]
    fn conditions_are_true_when_everything_is_applied() {
        assert_eq!(
            lines(&status_input(), false),
            [
                "Ready=True ObjectsReady: Every object is ready.",
                "Synced=True Applied: Every desired object is applied."
            ]
        );
    }

    #[test]
    fn readiness_of_the_guest_overrides_that_of_the_host() {
        let mut status_input = status_input();
        status_input.conditions.push(make(
            &GrantedSecrets::nothing(),
            "Ready",
            ConditionStatus::False,
            "Warming",
            "up",
        ));
        assert_eq!(lines(&status_input, false)[0], "Ready=False Warming: up");
    }

    #[test]
    fn synced_condition_of_the_guest_is_ignored() {
        let mut status_input = status_input();
        status_input.conditions.push(make(
            &GrantedSecrets::nothing(),
            "Synced",
            ConditionStatus::True,
            "Sure",
            "it is",
        ));
        status_input.problems.push(Problem {
            refusal: None,
            object_ref: None,
            reason: "Conflict".into(),
            message: "m".into(),
            retry: Retry::OnChange,
        });
        assert_eq!(
            lines(&status_input, false),
            ["Ready=False NotSynced: m", "Synced=False Conflict: m"]
        );
    }

    #[test]
    fn kinds_available_is_false_and_names_the_unserved_kinds() {
        let mut status_input = status_input();
        status_input.unserved.push("route.openshift.io/v1 Route".into());
        assert_eq!(
            lines(&status_input, true)[0],
            "KindsAvailable=False NotServed: The API server does not serve route.openshift.io/v1 Route; the host creates objects of it as soon as it does."
        );
    }

    #[test]
    fn failed_guest_without_a_status_gives_no_ready_condition() {
        let mut status_input = StatusInput::default();
        status_input.problems.push(Problem {
            refusal: None,
            object_ref: None,
            reason: "Trap".into(),
            message: "m".into(),
            retry: Retry::Backoff,
        });
        assert_eq!(lines(&status_input, false), ["Synced=False Trap: m"]);
    }

    #[test]
    fn message_about_a_thousand_objects_is_cut() {
        let mut status_input = status_input();
        status_input.paused = Some(vec!["create Service web/a".into(); 1000]);
        let condition = all(&status_input, false, false).remove(1);
        assert_eq!(condition.reason, "Paused");
        assert_eq!(condition.message.len(), guest_status::MESSAGE_BYTES_MAX + 3);
    }

    #[test]
    fn skipped_changes_of_a_paused_primary_are_reported() {
        let mut status_input = status_input();
        status_input.paused = Some(vec!["create Service web/a".into()]);
        assert_eq!(
            lines(&status_input, false)[1],
            "Synced=False Paused: The primary is paused; to be written: create Service web/a."
        );
    }

    #[test]
    fn granted_value_at_the_cut_of_a_message_is_masked() {
        let value = "correct horse \u{200b} battery staple";
        let problem = |message: String| Problem {
            refusal: None,
            object_ref: None,
            reason: "Because".into(),
            message,
            retry: Retry::OnChange,
        };
        for before in guest_status::MESSAGE_BYTES_MAX - 100..guest_status::MESSAGE_BYTES_MAX {
            let text = format!("{}{value}", "-".repeat(before));
            let granted = Arc::new(GrantedSecrets::of_value(value.as_bytes()));
            let paused = StatusInput {
                paused: Some(vec![text.clone()]),
                granted: granted.clone(),
                ..status_input()
            };
            let stuck = StatusInput {
                problems: Problems(vec![problem(text.clone())]),
                granted,
                ..status_input()
            };
            for line in [lines(&paused, false), lines(&stuck, false)].concat() {
                for part in ["corr", "hors", "batt", "stap", "200b"] {
                    assert!(!line.contains(part), "{before}: {part} in {line:.9}");
                }
            }
        }
    }
}
