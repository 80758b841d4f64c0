//! What the host writes into a Module's status: given the driver's report and what the supervisor
//! knows, which conditions. Nothing here writes.

use std::collections::BTreeSet;

use innkeeper_contract::{Condition, ConditionStatus};
use innkeeper_core::{foreign, guest_status};
use innkeeper_modules::Report;
use innkeeper_modules::machine::condition::{
    HELD_CONDITION, LOADED_CONDITION, READY_CONDITION, SERVING_CONDITION,
};
use innkeeper_modules::module::{HeldSettings, PolicyMode};
use serde_json::{Value, json};

use super::account_access::Denial;
use super::policy_conditions::{
    ObservedPolicy, replace_healthy, replace_serving, replace_unreviewed,
};
use super::readable::AUTHORIZED_CONDITION;
use crate::policies::{AuditState, PolicyProblem, PolicyState};

/// The reason of a revision whose policy no replica can learn.
const POLICY_RECORD_NOT_WRITTEN: &str = "PolicyRecordNotWritten";

/// What the supervisor knows of a module, in addition to the driver's report.
pub(super) struct Observation<'a> {
    /// Conditions of what the active revision may and can read; `None` if no revision is active.
    pub(super) readable: Option<Vec<Condition>>,
    /// Why the module may not act as its account, if it may not.
    pub(super) denial: Option<Denial<'a>>,
    /// Whether the active revision only reviews requests.
    pub(super) is_policy_only: bool,
    /// Why the policy record of the active revision is not written, if it is not.
    pub(super) policy_problem: Option<&'a str>,
    /// Settings of the policy that need an approval, and the mode with which it reviews meanwhile,
    /// if it does.
    pub(super) held_settings: Option<(&'a HeldSettings, Option<PolicyMode>)>,
    /// Whether this host leads policies.
    pub(super) is_leading_policies: bool,
    /// What the leader knows of the decided policy; `None` before its first round, and if this host
    /// leads no policies.
    pub(super) policy_state: Option<PolicyState>,
    /// What the audit of the policy has found, if there is an audit.
    pub(super) audit: Option<AuditState>,
    /// The conditions of the live Module.
    pub(super) live: &'a [Condition],
}

/// Adds to a report what the active revision may and can read, and why the account denies it.
pub(super) fn complete_report(mut report: Report, observation: &Observation<'_>) -> Report {
    report.conditions.extend(observation.readable.iter().flatten().cloned());
    if let Some(state) = &observation.policy_state {
        state.complete(&mut report.members);
    }
    if let Some(audit) = &observation.audit {
        audit.complete(&mut report.members);
    }
    if let Some(held) = observation.held_settings {
        hold_settings(&mut report, held);
    }
    if observation.is_policy_only {
        let conditions = &mut report.conditions;
        let policy = ObservedPolicy {
            is_leading: observation.is_leading_policies,
            state: observation.policy_state.as_ref(),
            live: observation.live,
        };
        replace_serving(conditions, &policy);
        replace_healthy(conditions, &policy);
    }
    let of_leader = observation.policy_state.as_ref().and_then(|state| state.problem.as_ref());
    if let Some(problem) = of_leader {
        let PolicyProblem { reason, message } = problem;
        replace_unreviewed(&mut report.conditions, (reason, message), observation.is_policy_only);
    }
    if let Some(problem) = observation.policy_problem {
        let problem = (POLICY_RECORD_NOT_WRITTEN, problem);
        replace_unreviewed(&mut report.conditions, problem, observation.is_policy_only);
    }
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

/// Shows settings of a policy that need an approval. A held candidate needs one first.
fn hold_settings(report: &mut Report, (held, mode): (&HeldSettings, Option<PolicyMode>)) {
    let policy = report.members.get_mut("policy").and_then(Value::as_object_mut);
    let Some(policy) = policy.filter(|_| !held.message.is_empty()) else { return };
    policy.insert("mode".to_owned(), mode.map_or("", PolicyMode::as_str).into());
    policy.insert("heldSettings".to_owned(), json!(held));
    let meanwhile = if mode.is_some() { "with the settings before" } else { "nothing" };
    let message = format!(
        "Other settings of the policy are held: {}. `innkeeper modules approve` with the digest {} approves them; until then the policy reviews {meanwhile}.",
        held.message, held.digest
    );
    for condition in &mut report.conditions {
        let (is_held, is_ready) =
            (condition.type_ == HELD_CONDITION, condition.type_ == READY_CONDITION);
        if (is_held && condition.status != ConditionStatus::True)
            || (is_ready && condition.status == ConditionStatus::True)
        {
            condition.status = if is_held { ConditionStatus::True } else { ConditionStatus::False };
            condition.reason.clone_from(&held.reason);
            condition.message.clone_from(&message);
        }
    }
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
/// until a revision is active again. A status that this process has reported is its own.
pub(super) fn keeps_live_status(
    report: &Report,
    observation: &Observation<'_>,
    history: Option<&ConditionHistory>,
) -> bool {
    let is_loading = report.conditions.iter().any(|condition| {
        condition.type_ == LOADED_CONDITION && condition.status == ConditionStatus::Unknown
    });
    is_loading
        && history.is_none_or(ConditionHistory::is_empty)
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
    /// Whether nothing has been reported yet.
    fn is_empty(&self) -> bool {
        self.reported.is_empty()
    }

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
        Observation {
            readable: None,
            denial: None,
            is_policy_only: false,
            policy_problem: None,
            held_settings: None,
            is_leading_policies: false,
            policy_state: None,
            audit: None,
            live: &[],
        }
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
    fn revision_that_only_reviews_requests_is_neither_serving_nor_ready_without_requests() {
        let observation = Observation { is_policy_only: true, ..observation() };
        let active = report(&[("Ready", True), ("Serving", True)]);
        let shown_active = shown(&complete_report(active, &observation));
        assert_eq!(shown_active, ["Ready=False PolicyNotActive", "Serving=False PolicyNotActive"]);
        let none = report(&[("Serving", False)]);
        assert_eq!(shown(&complete_report(none, &observation)), ["Serving=False Because"]);
    }

    #[test]
    fn revision_that_only_reviews_requests_is_healthy_as_its_reviews_are() {
        let failing = |example: &str| PolicyState {
            failed_reviews: 3,
            failure_example: Some(example.to_owned()),
            ..policy_state()
        };
        let named = |record: &str| Condition {
            reason: "SomeReviewsFailed".to_owned(),
            message: format!(
                "Reviews with the record {record} have ended without a verdict: the first."
            ),
            ..condition("Healthy", True)
        };
        let (own, other) = ([named("0011")], [named("2233")]);
        let unreviewed = PolicyState { reviewing: 0, ..policy_state() };
        for (policy_state, live, expected, message) in [
            (None, &[][..], "Healthy=Unknown PolicyNotActive", "the host has no admission port"),
            (Some(unreviewed), &[], "Healthy=Unknown NoReplicaReviews", "the record 0011"),
            (
                Some(policy_state()),
                &[],
                "Healthy=True ReviewsSucceed",
                "No review with the record 0011 has failed since the present replicas started.",
            ),
            (
                Some(failing("it traps")),
                &[],
                "Healthy=True SomeReviewsFailed",
                "verdict: it traps.",
            ),
            (Some(failing("again")), &own, "Healthy=True SomeReviewsFailed", "the first"),
            (Some(failing("again")), &other, "Healthy=True SomeReviewsFailed", "verdict: again."),
        ] {
            let observation =
                Observation { is_policy_only: true, policy_state, live, ..observation() };
            let report = complete_report(report(&[("Healthy", Unknown)]), &observation);
            assert_eq!(shown(&report), [expected]);
            assert!(report.conditions[0].message.contains(message), "{report:?}");
        }
    }

    #[test]
    fn policy_of_a_leader_that_has_just_started_keeps_its_live_conditions() {
        let observation =
            Observation { is_policy_only: true, is_leading_policies: true, ..observation() };
        let active = report(&[("Ready", True), ("Serving", True), ("Healthy", Unknown)]);
        let mut report = complete_report(active, &observation);
        assert_eq!(
            shown(&report),
            ["Ready", "Serving", "Healthy"].map(|one| format!("{one}=Unknown PolicyStateUnknown"))
        );
        let live = ["Ready", "Serving", "Healthy"].map(|one| condition(one, True));
        ConditionHistory::default().carry_over(&mut report.conditions, &live);
        assert_eq!(report.conditions, live);
    }

    fn policy_state() -> PolicyState {
        PolicyState {
            record: "0011".to_owned(),
            reviewing: 1,
            replicas: 2,
            not_reviewing: None,
            failure_policy: None,
            webhooks: None,
            problem: None,
            failed_reviews: 0,
            failure_example: None,
        }
    }

    #[test]
    fn policy_serves_as_the_leader_says_and_its_status_has_the_figures() {
        for (is_policy_only, serving) in [(true, "PolicyActive"), (false, "Because")] {
            let policy_state = Some(policy_state());
            let observation = Observation { is_policy_only, policy_state, ..observation() };
            let mut report = report(&[("Serving", True)]);
            report.members.insert("policy".to_owned(), serde_json::json!({"kind": "Validate"}));
            let report = complete_report(report, &observation);
            assert_eq!(shown(&report), [format!("Serving=True {serving}")]);
            assert_eq!(report.members["policy"]["replicas"], "1/2");
        }
    }

    #[test]
    fn policy_without_webhooks_is_shown_by_ready_and_of_a_pure_policy_by_serving() {
        for (is_policy_only, expected) in [
            (false, ["Ready=False BreakGlass", "Serving=True Because"]),
            (true, ["Ready=False BreakGlass", "Serving=False BreakGlass"]),
        ] {
            let problem = PolicyProblem { reason: "BreakGlass", message: "it is off".to_owned() };
            let policy_state = Some(PolicyState { problem: Some(problem), ..policy_state() });
            let observation = Observation { is_policy_only, policy_state, ..observation() };
            let report =
                complete_report(report(&[("Ready", True), ("Serving", True)]), &observation);
            assert_eq!(shown(&report), expected);
            assert_eq!(report.conditions[0].message, "it is off");
        }
    }

    #[test]
    fn policy_record_that_is_not_written_is_shown_by_ready_and_of_a_pure_policy_by_serving() {
        for (is_policy_only, expected) in [
            (false, ["Ready=False PolicyRecordNotWritten", "Serving=True Because"]),
            (true, ["Ready=False PolicyRecordNotWritten", "Serving=False PolicyRecordNotWritten"]),
        ] {
            let policy_problem = Some("it is too large");
            let observation = Observation { is_policy_only, policy_problem, ..observation() };
            let report =
                complete_report(report(&[("Ready", True), ("Serving", True)]), &observation);
            assert_eq!(shown(&report), expected);
            assert_eq!(report.conditions[0].message, "it is too large");
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
            let keeps = keeps_live_status(report, &observation, None);
            assert_eq!(keeps, expected, "{:?}", shown(report));
        }
    }

    #[test]
    fn live_status_that_this_process_reported_does_not_stay_while_it_loads() {
        let live = [condition("Loaded", False)];
        let observation = Observation { live: &live, ..observation() };
        let loading = report(&[("Loaded", Unknown)]);
        let mut history = ConditionHistory::default();
        assert!(keeps_live_status(&loading, &observation, Some(&history)));
        history.record(&live);
        assert!(!keeps_live_status(&loading, &observation, Some(&history)));
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
