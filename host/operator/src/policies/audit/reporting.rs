//! The reports of the audit: when they are due, and the part of a Module's status.

use std::sync::Arc;
use std::time::Duration;

use innkeeper_core::audit::ReportOwner;
use innkeeper_core::foreign;
use innkeeper_modules::module;
use tokio::time::Instant;

use super::audit_state::AuditState;
use super::auditor::{AuditedPolicy, PolicyAudit};

/// The shortest time between two reports of one policy.
const REPORT_PERIOD: Duration = Duration::from_secs(10);

/// The same while reviews of the policy wait: their results change the reports soon.
const BUSY_REPORT_PERIOD: Duration = Duration::from_mins(1);

/// The longest wait after reports that could not be written.
const RETRY_MAX: Duration = Duration::from_mins(5);

/// The wait before the audit deletes reports again, after that failed.
const SWEEP_RETRY: Duration = Duration::from_mins(1);

/// The longest reason in the log and in a status, in bytes.
const REASON_BYTES_MAX: usize = 500;

impl AuditedPolicy {
    /// When the next report is due; `None` if nothing has changed.
    fn next_report(&self) -> Option<Instant> {
        let knows = self.is_listed() || self.policy.access.is_none();
        if !self.results.needs_report(self.is_listed()) || !knows {
            return None;
        }
        let period = if self.results.pending() > 0 && self.policy.access.is_some() {
            BUSY_REPORT_PERIOD
        } else {
            REPORT_PERIOD
        };
        let factor = 1 << self.failures.min(10);
        Some(self.reported + period.max((REPORT_PERIOD * factor).min(RETRY_MAX)))
    }

    /// The state of the audit for the status of the Module.
    fn audit_state(&self) -> AuditState {
        let of_account = self.policy.access.is_none().then(|| {
            "the ServiceAccount of the Module lets it read nothing, so no object is reviewed"
                .to_owned()
        });
        let problems = [of_account, self.results.problem(), self.report_problem.clone()];
        let problems: Vec<String> = problems.into_iter().flatten().collect();
        AuditState {
            counts: *self.results.total(),
            completed: self.results.completed(),
            problem: (!problems.is_empty())
                .then(|| foreign::one_line(problems.join("; "), REASON_BYTES_MAX)),
        }
    }
}

impl PolicyAudit {
    /// The time until the next report, if one is to be written.
    pub(super) fn next_report(&self, now: Instant) -> Option<Duration> {
        let due = self.audited.values().filter_map(AuditedPolicy::next_report).min()?;
        Some(due.saturating_duration_since(now))
    }

    /// Reports the results that are due.
    pub(super) async fn report_due(&mut self) {
        let env = self.host.env().clone();
        let now = env.instant();
        let is_due = |audited: &AuditedPolicy| audited.next_report().is_some_and(|at| at <= now);
        let due = self.audited.iter().filter(|(_, audited)| is_due(audited));
        let due: Vec<Arc<str>> = due.map(|(module, _)| module.clone()).collect();
        for module in due {
            if let Some(audited) = self.audited.get_mut(&module)
                && audited.is_listed()
            {
                audited.results.note_complete(env.now());
            }
            self.report(&module).await;
        }
        for (module, audited) in &self.audited {
            let (total, pending) = (audited.results.total(), audited.results.pending());
            self.policies.audit_metrics().show(module, total, pending);
        }
        self.sweep().await;
    }

    async fn report(&mut self, module: &Arc<str>) {
        let Some(audited) = self.audited.get_mut(module) else { return };
        audited.results.take_change();
        let owner = ReportOwner {
            api_version: module::API_VERSION,
            module,
            uid: &audited.policy.module_uid,
        };
        let written = self.writer.write(&owner, audited.results.reports()).await;
        audited.reported = self.host.env().instant();
        match written {
            Ok(is_complete) => {
                audited.failures = 0;
                audited.report_problem = None;
                if !is_complete {
                    audited.results.mark_changed();
                }
            }
            Err(error) => {
                let why = format!("reports not written: {error}");
                let why = foreign::one_line(why, REASON_BYTES_MAX);
                if audited.report_problem.as_ref() != Some(&why) {
                    tracing::warn!(module = &**module, "{why}; the host tries again");
                }
                audited.failures = audited.failures.saturating_add(1);
                audited.report_problem = Some(why);
                audited.results.mark_changed();
            }
        }
        let state = audited.audit_state();
        if audited.published.as_ref() != Some(&state) {
            (self.publish)(module, Some(state.clone()));
            audited.published = Some(state);
        }
    }

    /// The time until the audit deletes reports again, after that failed.
    pub(super) fn next_sweep(&self, now: Instant) -> Option<Duration> {
        Some(self.sweep_retry?.saturating_duration_since(now))
    }

    /// Deletes the reports of modules that have no audit any more, once the active policies are
    /// known.
    async fn sweep(&mut self) {
        let now = self.host.env().instant();
        if self.sweep_retry.take_if(|at| *at <= now).is_some() {
            self.needs_sweep = true;
        }
        if !self.needs_sweep || !self.writer.is_served() || !self.policies.active().is_complete() {
            return;
        }
        self.needs_sweep = false;
        // A policy whose record cannot be opened is still decided.
        let problems = self.policies.problems().borrow().clone();
        let is_audited =
            |module: &str| self.audited.contains_key(module) || problems.contains_key(module);
        if let Err(error) = self.writer.sweep(is_audited).await {
            tracing::warn!(
                "reports of modules without an audit not deleted: {error}; the host tries again"
            );
            self.sweep_retry = Some(now + SWEEP_RETRY);
        }
    }
}
