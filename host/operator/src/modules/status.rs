//! What the host writes into a Module's status: given the driver's report and what the supervisor
//! knows, which conditions. Nothing here writes.

use std::collections::BTreeSet;

use innkeeper_contract::{Condition, ConditionStatus};
use innkeeper_core::{foreign, guest_status};
use innkeeper_modules::Report;
use innkeeper_modules::machine::condition::{LOADED_CONDITION, READY_CONDITION, SERVING_CONDITION};

use super::account_access::Denial;
use super::readable::AUTHORIZED_CONDITION;

/// What the supervisor knows of a module, in addition to the driver's report.
pub(super) struct Observation<'a> {
    /// Conditions of what the active revision may and can read; `None` if no revision is active.
    pub(super) readable: Option<Vec<Condition>>,
    /// Why the module may not act as its account, if it may not.
    pub(super) denial: Option<Denial<'a>>,
    /// The conditions of the live Module.
    pub(super) live: &'a [Condition],
}

/// Adds to a report what the active revision may and can read, and why the account denies it.
pub(super) fn complete_report(mut report: Report, observation: &Observation<'_>) -> Report {
    report.conditions.extend(observation.readable.iter().flatten().cloned());
    if let Some(denial) = &observation.denial {
        replace_denied(&mut report.conditions, denial);
    }
    // A guest's names and schemas may be of any length; the schema of the Module refuses a status
    // with a longer message.
    for condition in &mut report.conditions {
        condition.message = foreign::message(&condition.message, guest_status::MESSAGE_BYTES_MAX);
    }
    report
}

/// Replaces the conditions that do not hold without the account.
fn replace_denied(conditions: &mut Vec<Condition>, denial: &Denial<'_>) {
    let stopped = [SERVING_CONDITION, READY_CONDITION].into_iter().filter(|_| denial.is_stopped);
    for type_ in std::iter::once(AUTHORIZED_CONDITION).chain(stopped) {
        conditions.retain(|one| one.type_ != type_);
        conditions.push(Condition {
            type_: type_.to_owned(),
            status: ConditionStatus::False,
            reason: denial.reason.to_owned(),
            message: denial.message.to_owned(),
        });
    }
}

/// Whether the live status is to stay: after a restart of the host it is truer than "loading",
/// until a revision is active again.
pub(super) fn keeps_live_status(report: &Report, observation: &Observation<'_>) -> bool {
    let is_loading = report.conditions.iter().any(|condition| {
        condition.type_ == LOADED_CONDITION && condition.status == ConditionStatus::Unknown
    });
    is_loading
        && observation.readable.is_none()
        && observation.denial.is_none()
        && !observation.live.is_empty()
}

/// The conditions of one module that the host has written or logged since it started.
#[derive(Debug, Default)]
pub(super) struct ConditionHistory {
    /// Types that have had another status than `Unknown`.
    known: BTreeSet<String>,
    /// The last report.
    reported: Vec<Condition>,
}

impl ConditionHistory {
    /// Keeps the live condition where the host has not known better since it started.
    pub(super) fn carry_over(&mut self, conditions: &mut [Condition], live: &[Condition]) {
        for condition in conditions {
            if condition.status != ConditionStatus::Unknown {
                self.known.insert(condition.type_.clone());
            } else if !self.known.contains(&condition.type_)
                && let Some(before) = live.iter().find(|before| before.type_ == condition.type_)
            {
                condition.clone_from(before);
            }
        }
    }

    /// Records a report; returns the conditions that differ from the last one.
    pub(super) fn record(&mut self, conditions: &[Condition]) -> Vec<Condition> {
        let is_new = |one: &&Condition| !self.reported.contains(one);
        let changed = conditions.iter().filter(is_new).cloned().collect();
        self.reported = conditions.to_vec();
        changed
    }
}

#[cfg(test)]
mod tests {
    use ConditionStatus::{False, True, Unknown};
    use serde_json::Map;

    use super::*;

    fn condition(type_: &str, status: ConditionStatus) -> Condition {
        Condition { type_: type_.into(), status, reason: "Because".into(), message: String::new() }
    }

    fn report(conditions: &[(&str, ConditionStatus)]) -> Report {
        let conditions = conditions.iter().map(|(type_, status)| condition(type_, *status));
        Report { generation: 1, members: Map::new(), conditions: conditions.collect() }
    }

    fn observation<'a>() -> Observation<'a> {
        Observation { readable: None, denial: None, live: &[] }
    }

    const DENIAL: Denial<'static> =
        Denial { reason: "AccountNotAllowed", message: "ask the owner", is_stopped: false };

    /// Type, status and reason of each condition.
    fn shown(report: &Report) -> Vec<String> {
        let show =
            |one: &Condition| format!("{}={} {}", one.type_, one.status.as_str(), one.reason);
        report.conditions.iter().map(show).collect()
    }

    #[test]
    fn denial_replaces_authorized_and_of_a_stopped_module_also_serving_and_ready() {
        let readable = || Some(vec![condition("Authorized", True)]);
        for (denial, expected) in [
            (None, vec!["Ready=True Because", "Serving=True Because", "Authorized=True Because"]),
            (
                Some(DENIAL),
                vec![
                    "Ready=True Because",
                    "Serving=True Because",
                    "Authorized=False AccountNotAllowed",
                ],
            ),
            (
                Some(Denial { is_stopped: true, ..DENIAL }),
                vec![
                    "Authorized=False AccountNotAllowed",
                    "Serving=False AccountNotAllowed",
                    "Ready=False AccountNotAllowed",
                ],
            ),
        ] {
            let observation = Observation { readable: readable(), denial, ..observation() };
            let report = report(&[("Ready", True), ("Serving", True)]);
            assert_eq!(shown(&complete_report(report, &observation)), expected);
        }
    }

    #[test]
    fn message_longer_than_the_schema_allows_is_cut() {
        let mut report = report(&[("Ready", False)]);
        report.conditions[0].message = "x".repeat(100_000);
        let report = complete_report(report, &observation());
        let bytes = report.conditions[0].message.len();
        assert!(bytes <= guest_status::MESSAGE_BYTES_MAX + "...".len(), "{bytes}");
    }

    #[test]
    fn live_status_stays_while_a_restarted_host_loads_and_nothing_else_is_known() {
        let live = [condition("Serving", True)];
        let starting = || Observation { live: &live, ..observation() };
        let loading = report(&[("Loaded", Unknown)]);
        for (report, observation, expected) in [
            (&loading, starting(), true),
            (&report(&[("Loaded", False)]), starting(), false),
            (&loading, Observation { readable: Some(Vec::new()), ..starting() }, false),
            (&loading, Observation { denial: Some(DENIAL), ..starting() }, false),
            (&loading, observation(), false),
        ] {
            assert_eq!(keeps_live_status(report, &observation), expected, "{:?}", shown(report));
        }
    }

    #[test]
    fn live_condition_is_kept_until_the_type_has_been_known() {
        let live = [condition("Healthy", False)];
        let unknown = condition("Healthy", Unknown);
        let mut history = ConditionHistory::default();
        let mut conditions = [unknown.clone(), condition("Serving", True)];
        history.carry_over(&mut conditions, &live);
        assert_eq!(conditions[0], live[0]);
        history.carry_over(&mut [condition("Healthy", True)], &live);
        let mut conditions = [unknown.clone()];
        history.carry_over(&mut conditions, &live);
        assert_eq!(conditions[0], unknown);
    }

    #[test]
    fn only_conditions_that_differ_from_the_last_report_are_logged() {
        let mut history = ConditionHistory::default();
        let (ready, loaded) = (condition("Ready", True), condition("Loaded", True));
        assert_eq!(history.record(&[ready.clone(), loaded.clone()]).len(), 2);
        let not_ready = condition("Ready", False);
        assert_eq!(history.record(&[not_ready.clone(), loaded.clone()]), [not_ready]);
        assert_eq!(history.record(&[ready.clone(), loaded]), [ready]);
    }
}
