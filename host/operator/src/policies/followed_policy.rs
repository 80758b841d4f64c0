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

/// A record that failed so often at the start is not waited for any longer.
const FAILURES_AT_START: u32 = 2;

/// One policy: its newest record, what the replica reviews with, and what it opens.
pub(super) struct FollowedPolicy {
    /// The uid and the resource version of the ConfigMap as it was last read.
    version: (Box<str>, Box<str>),
    /// The newest record; `None` if it cannot be read.
    newest: Option<Arc<PolicyRecord>>,
    /// What the replica reviews with.
    active: Option<ActiveRecord>,
    /// What is being opened. Dropping it ends that.
    opening: Option<Opening>,
    /// The accounts that clients act as, until their revocation.
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
    is_open: bool,
}

/// What is to be opened.
#[derive(Clone)]
pub(super) struct Target {
    /// The record.
    pub(super) record: Arc<PolicyRecord>,
    /// Whether the policy acts as its account.
    pub(super) is_open: bool,
}

impl PartialEq for Target {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.record, &other.record) && self.is_open == other.is_open
    }
}

struct Opening {
    number: u64,
    target: Target,
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

    /// Reads the record in its ConfigMap, if that is another one than before. A record that cannot
    /// be read changes nothing of what the replica reviews with.
    pub(super) fn take(&mut self, object: &Object) {
        let version = (object.uid.clone(), object.resource_version.clone());
        if self.version == version {
            return;
        }
        self.version = version;
        match PolicyRecord::read(object) {
            // Only the ConfigMap has changed.
            Ok(record) if self.newest.as_deref() == Some(&record) => {}
            Ok(record) => {
                let same = self.active.as_ref().filter(|active| *active.record == record);
                self.newest =
                    Some(same.map_or_else(|| Arc::new(record), |active| active.record.clone()));
                self.begin_again();
                self.problem = None;
            }
            Err(error) => {
                self.newest = None;
                self.begin_again();
                self.problem = Some(format!("the policy record cannot be read: {error}"));
            }
        }
    }

    fn begin_again(&mut self) {
        (self.failures, self.retry) = (0, None);
        self.backoff.reset();
    }

    /// What is to be opened now, if anything: the newest record, or the active one whose account
    /// lets the module act as it again.
    pub(super) fn target(
        &self,
        now: Instant,
        access: impl Fn(&PolicyRecord) -> AccountAccess,
    ) -> Option<Target> {
        let newest = self.newest.as_ref().filter(|newest| {
            let is_active =
                self.active.as_ref().is_some_and(|one| Arc::ptr_eq(&one.record, newest));
            !is_active && self.retry.is_none_or(|retry| retry <= now)
        });
        if let Some(record) = newest {
            let is_open = match access(record) {
                AccountAccess::Allowed => true,
                AccountAccess::Denied(_) => false,
                AccountAccess::Unknown => self.is_open_as(record),
            };
            return Some(Target { record: record.clone(), is_open });
        }
        let active = self.active.as_ref().filter(|active| !active.is_open)?;
        (access(&active.record) == AccountAccess::Allowed)
            .then(|| Target { record: active.record.clone(), is_open: true })
    }

    /// Whether the active policy acts as the account of a record.
    fn is_open_as(&self, record: &PolicyRecord) -> bool {
        self.active.as_ref().is_some_and(|active| {
            let account = &active.record.settings.service_account;
            active.is_open && *account == record.settings.service_account
        })
    }

    /// Whether the policy that is being opened is this one.
    pub(super) fn is_opening(&self, target: &Target) -> bool {
        self.opening.as_ref().is_some_and(|opening| opening.target == *target)
    }

    /// The access of a policy that is opened.
    pub(super) fn access(&mut self, target: &Target) -> Access {
        let Some(account) = target.record.settings.service_account.as_deref() else {
            return Access::Closed;
        };
        if !target.is_open {
            return Access::Closed;
        }
        // Policies of one account have one revocation, also those that were replaced.
        Access::Open(self.revocations.entry(account.to_owned()).or_default().clone())
    }

    /// Notes that a task opens a policy; an earlier one ends.
    pub(super) fn begin(&mut self, number: u64, target: Target, task: Task<()>) {
        self.retry = None;
        self.opening = Some(Opening { number, target, _task: task });
    }

    /// Ends what is being opened.
    pub(super) fn stop_opening(&mut self) {
        self.opening = None;
    }

    /// What the task of this number was to open; `None` if that is outdated.
    pub(super) fn opened(&mut self, number: u64) -> Option<Target> {
        self.opening.take_if(|opening| opening.number == number).map(|opening| opening.target)
    }

    /// The policy that the replica reviews with.
    pub(super) fn active(&self) -> Option<&Arc<ActivePolicy>> {
        self.active.as_ref().map(|active| &active.policy)
    }

    /// The active record, if its policy acts as its account.
    pub(super) fn open_record(&self) -> Option<&Arc<PolicyRecord>> {
        self.active.as_ref().filter(|active| active.is_open).map(|active| &active.record)
    }

    /// Notes that the replica reviews with a policy.
    pub(super) fn activate(&mut self, target: Target, policy: Arc<ActivePolicy>) {
        let Target { record, is_open } = target;
        if self.newest.as_ref().is_some_and(|newest| Arc::ptr_eq(newest, &record)) {
            self.begin_again();
            self.problem = None;
        }
        self.active = Some(ActiveRecord { record, policy, is_open });
    }

    /// Notes why the newest record did not become active. Returns whether that is news.
    pub(super) fn fail(&mut self, now: Instant, why: String) -> bool {
        self.failures += 1;
        self.retry = Some(now + self.backoff.advance());
        let why = Some(why);
        let is_news = self.problem != why;
        self.problem = why;
        is_news
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

    /// Whether the newest record is active, or it is known why it is not.
    pub(super) fn is_settled(&self) -> bool {
        let is_active = |newest: &Arc<PolicyRecord>| {
            self.active.as_ref().is_some_and(|active| Arc::ptr_eq(&active.record, newest))
        };
        self.failures >= FAILURES_AT_START || self.newest.as_ref().is_none_or(is_active)
    }
}
