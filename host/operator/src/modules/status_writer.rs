//! Writes the status of Modules, and logs the conditions that change.

use std::time::Duration;

use innkeeper_contract::Condition;
use innkeeper_modules::Report;

use super::account_access::Denial;
use super::cluster_source::WriteOutcome;
use super::event::SupervisorEvent;
use super::readable;
use super::status::{Observation, complete_report, keeps_live_status};
use super::supervisor::Supervisor;

/// The wait before a failed write of a status is tried again.
const STATUS_RETRY: Duration = Duration::from_secs(10);

impl Supervisor {
    /// Writes a Module's status; `None` if there is nothing to write yet.
    pub(super) async fn write_status(&mut self, name: &str) -> Option<WriteOutcome> {
        let report = self.driver.report(name)?;
        let live = self.source.live_conditions(name);
        let observation = self.observation(name, &live);
        let report = complete_report(report, &observation);
        if keeps_live_status(&report, &observation, self.history.get(name)) {
            return None;
        }
        Some(self.write_report(name, report, &live).await)
    }

    /// Writes the decision for a revision, also if no revision is active yet.
    pub(super) async fn write_decision(&mut self, name: &str, decision: Report) -> WriteOutcome {
        let live = self.source.live_conditions(name);
        let decision = complete_report(decision, &self.observation(name, &live));
        self.write_report(name, decision, &live).await
    }

    fn observation<'a>(&'a self, name: &str, live: &'a [Condition]) -> Observation<'a> {
        let active = self.shared.module(name);
        let is_policy_only = self
            .driver
            .active_revision(name)
            .is_some_and(|revision| !revision.guest.has_reconciler());
        let denial = self.accounts.denial(name);
        Observation {
            readable: active.map(|active| readable::conditions(&active.view.states())),
            // A policy goes on without its account; only what it reads is forbidden.
            denial: denial.map(|denial| Denial {
                is_stopped: denial.is_stopped && !is_policy_only,
                ..denial
            }),
            is_policy_only,
            policy_problem: self.policies.problem(name),
            held_settings: self.policies.settings.held(name),
            is_leading_policies: self.policies.is_leading,
            policy_state: self.policies.states.get(name),
            audit: self.policies.audits.get(name).cloned(),
            live,
        }
    }

    async fn write_report(
        &mut self,
        name: &str,
        mut report: Report,
        live: &[Condition],
    ) -> WriteOutcome {
        let history = self.history.entry(name.to_owned()).or_default();
        history.carry_over(&mut report.conditions, live);
        for condition in history.record(&report.conditions) {
            let (type_, status) = (&condition.type_, condition.status.as_str());
            tracing::info!(module = name, condition = %type_, status, reason = %condition.reason, "{}", condition.message);
        }
        self.report.set_conditions(name, report.conditions.clone());
        let outcome = self.source.write_status(name, &report, &self.caches).await;
        if matches!(outcome, WriteOutcome::Failed(_)) {
            let event = SupervisorEvent::ReadabilityChanged(name.to_owned());
            self.send_event_after(STATUS_RETRY, event);
        }
        outcome
    }
}
