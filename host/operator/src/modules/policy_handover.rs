//! Hands the policies of active revisions over to the replicas that review with them.

use std::sync::Arc;

use innkeeper_modules::Revision;
use tokio::sync::watch;

use super::event::SupervisorEvent;
use super::supervisor::Supervisor;
use crate::policies::record_keeper::{Goal, KeepError, RecordKeeper};
use crate::policies::{AuditState, Handover, PolicyRecord, PolicyState};

impl Supervisor {
    /// Hands over the policy of an active revision. If the revision has no policy, or the Module no
    /// longer lets it review, withdraws the previous policy. Settings that do not fit the guest
    /// leave the previous policy active; the status of the Module says why.
    pub(super) fn hand_over(&mut self, revision: &Arc<Revision>) {
        let name = &*revision.module;
        self.policies.observe_revision(revision);
        if revision.policy().is_none() {
            return self.withdraw(name);
        }
        if let Err(rejection) = revision.check_policy() {
            tracing::warn!(module = name, reason = rejection.reason, "{}", rejection.message);
            return;
        }
        let uid = self.source.module_object(name).map(|module| module.uid.to_string());
        if uid.is_none() && self.policies.how == Handover::Records {
            // The Module is being deleted: `withdraw_deleted` follows.
            return;
        }
        let Some(record) = PolicyRecord::of(revision, &uid.unwrap_or_default()) else { return };
        if self.policies.decided.get(name).is_some_and(|decided| **decided == record) {
            return self.policies.settings.forget(name);
        }
        let record = Arc::new(record);
        if self.needs_settings_preview(&record, &revision.spec.rollout) {
            return self.preview_settings(revision, &record);
        }
        self.decide_record(revision, &record);
    }

    /// Has the replicas review with a record.
    pub(super) fn decide_record(&mut self, revision: &Arc<Revision>, record: &Arc<PolicyRecord>) {
        let name = &*revision.module;
        self.policies.settings.forget(name);
        self.policies.forget_held(name);
        tracing::info!(module = name, record = record.id(), "policy decided");
        self.policies.decided.insert(name.to_owned(), record.clone());
        self.policies.recorded.insert(name.to_owned());
        match self.policies.how {
            Handover::Records => self.set_goal(name, Goal::Record(record.clone())),
            Handover::InProcess => self.review_with(revision, record),
        }
    }

    /// Withdraws the policy of a module, if it may have one.
    fn withdraw(&mut self, name: &str) {
        self.policies.decided.remove(name);
        self.policies.settings.forget(name);
        if !self.policies.recorded.remove(name) {
            return;
        }
        tracing::info!(module = name, "policy withdrawn");
        match self.policies.how {
            Handover::Records => self.set_goal(name, Goal::Nothing),
            Handover::InProcess => {
                let now = self.shared.env.instant();
                self.replica.active().remove(name, now);
            }
        }
    }

    /// Notes that the Modules have been listed: a host of a folder waits for no record.
    pub(super) fn policies_are_complete(&self) {
        if self.policies.how == Handover::InProcess {
            self.replica.active().set_complete();
        }
    }

    /// Withdraws the policy of a module that was deleted.
    pub(super) fn withdraw_deleted(&mut self, name: &str) {
        self.withdraw(name);
        self.policies.forget_held(name);
        self.policies.problems.remove(name);
    }

    /// Has the module's task work towards a goal.
    fn set_goal(&mut self, name: &str, goal: Goal) {
        if let Some(before) = self.policies.goals.get(name) {
            before.send_replace(goal);
            return;
        }
        let (sender, receiver) = watch::channel(goal);
        self.policies.goals.insert(name.to_owned(), sender);
        let keeper = RecordKeeper::new(self.cluster.host(), name);
        let (outbox, module) = (self.outbox.clone(), name.to_owned());
        self.spawn("keep policy record", async move {
            let report = |goal: &Goal, result: Result<(), KeepError>| {
                let record = match goal {
                    Goal::Record(record) => Some(record.clone()),
                    Goal::Nothing => None,
                };
                let (module, problem) = (module.clone(), result.err().map(|error| explain(&error)));
                let _ = outbox.send(SupervisorEvent::PolicyRecordKept { module, record, problem });
            };
            keeper.keep(receiver, report).await;
        });
    }

    /// Notes whether the record of a module is written or deleted, and shows in its status why not.
    pub(super) async fn policy_record_kept(
        &mut self,
        name: &str,
        record: Option<Arc<PolicyRecord>>,
        problem: Option<String>,
    ) {
        // The result of an earlier record says nothing about the present one.
        if self.policies.decided.get(name) != record.as_ref() {
            return;
        }
        if self.policies.problem(name) == problem.as_deref() {
            return;
        }
        match problem {
            Some(problem) => {
                tracing::warn!(module = name, "policy record not kept: {problem}");
                self.policies.problems.insert(name.to_owned(), problem);
            }
            None => drop(self.policies.problems.remove(name)),
        }
        self.write_status(name).await;
    }

    /// Shows in the status of a module what the leader knows of its policy.
    pub(super) async fn policy_state_changed(&mut self, name: &str, state: Option<PolicyState>) {
        self.policies.states.set(name, state);
        self.write_status(name).await;
    }

    /// Shows in the status of a module what the audit of its policy has found.
    pub(super) async fn policy_audit_changed(&mut self, name: &str, state: Option<AuditState>) {
        match state {
            Some(state) => drop(self.policies.audits.insert(name.to_owned(), state)),
            None => drop(self.policies.audits.remove(name)),
        }
        self.write_status(name).await;
    }

    /// Reviews in this process with the policy of a revision.
    fn review_with(&mut self, revision: &Arc<Revision>, record: &PolicyRecord) {
        let account = record.settings.service_account.as_deref();
        let opening = self.policy_opening(&revision.module, account);
        if let Some(open) = opening.open(record, &revision.guest) {
            self.replica.active().swap(&open.policy);
        }
    }
}

/// The error, with the consequence and what the host does next.
fn explain(error: &KeepError) -> String {
    match error {
        KeepError::Record(error) => format!("the policy record cannot be written: {error}"),
        KeepError::Api(error) => format!(
            "the policy record cannot be kept: {error}; the replicas review as before, and the host tries again"
        ),
    }
}
