//! One policy as a replica follows it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use innkeeper_cluster::{Backoff, Env, Revocation, Task};
use innkeeper_core::Object;
use tokio::time::Instant;

use super::active_policy::ActivePolicy;
use super::load::Access;
use super::record::PolicyRecord;
use crate::modules::account_access::AccountAccess;

/// The first wait before a record that could not become active is tried again, and the longest one.
const RETRY: (Duration, Duration) = (Duration::from_secs(2), Duration::from_mins(5));

/// How often a record may fail before the start of the replica no longer waits for it.
const FAILURES_AT_START: u32 = 2;

/// One policy of a replica: its newest record, its active record, and the record being opened.
pub(super) struct FollowedPolicy {
    /// The uid and the resource version of the ConfigMap as it was last read.
    version: (Box<str>, Box<str>),
    /// The newest record; `None` if it cannot be read.
    newest: Option<Arc<PolicyRecord>>,
    /// The record with which the replica reviews.
    active: Option<ActiveRecord>,
    /// The record being opened. Dropping it ends its task.
    opening: Option<Opening>,
    /// The revocation of each account that clients of the policy act as.
    revocations: BTreeMap<String, Revocation>,
    failures: u32,
    backoff: Backoff,
    /// When the newest record is tried again, after it failed.
    retry: Option<Instant>,
    /// Why the newest record is not active.
    problem: Option<String>,
}

/// A record with the policy that the replica opened for it.
struct ActiveRecord {
    record: Arc<PolicyRecord>,
    policy: Arc<ActivePolicy>,
    /// Whether the policy acts as its account.
    acts_as_account: bool,
}

/// A record that the replica opens next.
#[derive(Clone)]
pub(super) struct RecordToOpen {
    /// The record.
    pub(super) record: Arc<PolicyRecord>,
    /// Whether the policy acts as its account.
    pub(super) acts_as_account: bool,
}

impl PartialEq for RecordToOpen {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.record, &other.record) && self.acts_as_account == other.acts_as_account
    }
}

struct Opening {
    number: u64,
    record: RecordToOpen,
    _task: Task<()>,
}

impl FollowedPolicy {
    /// A policy of which no record was read yet.
    pub(super) fn new(env: &Env) -> Self {
        Self {
            version: Default::default(),
            newest: None,
            active: None,
            opening: None,
            revocations: BTreeMap::new(),
            failures: 0,
            backoff: Backoff::new(env, RETRY.0, RETRY.1),
            retry: None,
            problem: None,
        }
    }

    /// Reads the record in its ConfigMap, if that has changed. A record that cannot be read leaves
    /// the active one as it is.
    pub(super) fn read(&mut self, object: &Object) {
        let version = (object.uid.clone(), object.resource_version.clone());
        if self.version == version {
            return;
        }
        self.version = version;
        match PolicyRecord::read(object) {
            // The ConfigMap has changed, and the record in it has not.
            Ok(record) if self.newest.as_deref() == Some(&record) => {}
            Ok(record) => {
                let same = self.active.as_ref().filter(|active| *active.record == record);
                self.newest =
                    Some(same.map_or_else(|| Arc::new(record), |active| active.record.clone()));
                self.reset_retries();
                self.problem = None;
            }
            Err(error) => {
                self.newest = None;
                self.reset_retries();
                self.problem = Some(format!("the policy record cannot be read: {error}"));
            }
        }
    }

    fn reset_retries(&mut self) {
        (self.failures, self.retry) = (0, None);
        self.backoff.reset();
    }

    /// The record to open now, if any: the newest one, or the active one again once its account
    /// lets the module act as it.
    pub(super) fn record_to_open(
        &self,
        now: Instant,
        access: impl Fn(&PolicyRecord) -> AccountAccess,
    ) -> Option<RecordToOpen> {
        let newest = self.newest.as_ref().filter(|newest| {
            let is_active =
                self.active.as_ref().is_some_and(|one| Arc::ptr_eq(&one.record, newest));
            !is_active && self.retry.is_none_or(|retry| retry <= now)
        });
        if let Some(record) = newest {
            let acts_as_account = match access(record) {
                AccountAccess::Allowed => true,
                AccountAccess::Denied(_) => false,
                AccountAccess::Unknown => self.acts_as_account_of(record),
            };
            return Some(RecordToOpen { record: record.clone(), acts_as_account });
        }
        let active = self.active.as_ref().filter(|active| !active.acts_as_account)?;
        (access(&active.record) == AccountAccess::Allowed)
            .then(|| RecordToOpen { record: active.record.clone(), acts_as_account: true })
    }

    /// Whether the active policy acts as the account of a record.
    fn acts_as_account_of(&self, record: &PolicyRecord) -> bool {
        self.active.as_ref().is_some_and(|active| {
            let account = &active.record.settings.service_account;
            active.acts_as_account && *account == record.settings.service_account
        })
    }

    /// Whether a task opens this record.
    pub(super) fn is_opening(&self, next: &RecordToOpen) -> bool {
        self.opening.as_ref().is_some_and(|opening| opening.record == *next)
    }

    /// The access with which a record is opened.
    pub(super) fn access(&mut self, next: &RecordToOpen) -> Access {
        let Some(account) = next.record.settings.service_account.as_deref() else {
            return Access::Closed;
        };
        if !next.acts_as_account {
            return Access::Closed;
        }
        // One revocation for all policies of an account, so that it also stops replaced ones.
        Access::Open(self.revocations.entry(account.to_owned()).or_default().clone())
    }

    /// Records that a task opens a record; an earlier task ends.
    pub(super) fn start_opening(&mut self, number: u64, record: RecordToOpen, task: Task<()>) {
        self.retry = None;
        self.opening = Some(Opening { number, record, _task: task });
    }

    /// Ends the task that opens a record.
    pub(super) fn stop_opening(&mut self) {
        self.opening = None;
    }

    /// The record that the task of this number has opened; `None` if another task has replaced it.
    pub(super) fn finish_opening(&mut self, number: u64) -> Option<RecordToOpen> {
        self.opening.take_if(|opening| opening.number == number).map(|opening| opening.record)
    }

    /// The policy that the replica reviews with.
    pub(super) fn active(&self) -> Option<&Arc<ActivePolicy>> {
        self.active.as_ref().map(|active| &active.policy)
    }

    /// The active record, if its policy acts as its account.
    pub(super) fn record_with_account(&self) -> Option<&Arc<PolicyRecord>> {
        self.active.as_ref().filter(|active| active.acts_as_account).map(|active| &active.record)
    }

    /// Records that the replica reviews with a policy.
    pub(super) fn activate(&mut self, opened: RecordToOpen, policy: Arc<ActivePolicy>) {
        let RecordToOpen { record, acts_as_account } = opened;
        if self.newest.as_ref().is_some_and(|newest| Arc::ptr_eq(newest, &record)) {
            self.reset_retries();
            self.problem = None;
        }
        self.active = Some(ActiveRecord { record, policy, acts_as_account });
    }

    /// Records why the newest record did not become active. Returns whether that is another reason
    /// than before.
    pub(super) fn record_failure(&mut self, now: Instant, why: String) -> bool {
        self.failures += 1;
        self.retry = Some(now + self.backoff.advance());
        let why = Some(why);
        let is_other = self.problem != why;
        self.problem = why;
        is_other
    }

    /// Stops all requests as accounts that do not let the module act as them.
    pub(super) fn revoke_denied(&mut self, is_denied: impl Fn(&str) -> bool) {
        self.revocations.retain(|account, revocation| {
            let is_denied = is_denied(account);
            if is_denied {
                revocation.revoke();
            }
            !is_denied
        });
    }

    /// Stops all requests as any account.
    pub(super) fn revoke_all(&mut self) {
        for revocation in std::mem::take(&mut self.revocations).into_values() {
            revocation.revoke();
        }
    }

    /// When the newest record is tried again.
    pub(super) fn retry(&self) -> Option<Instant> {
        self.retry
    }

    /// Why the newest record is not active.
    pub(super) fn problem(&self) -> Option<&str> {
        self.problem.as_deref()
    }

    /// Whether the newest record is active, cannot be read, or has failed [`FAILURES_AT_START`]
    /// times.
    pub(super) fn is_settled(&self) -> bool {
        let is_active = |newest: &Arc<PolicyRecord>| {
            self.active.as_ref().is_some_and(|active| Arc::ptr_eq(&active.record, newest))
        };
        self.failures >= FAILURES_AT_START || self.newest.as_ref().is_none_or(is_active)
    }
}
