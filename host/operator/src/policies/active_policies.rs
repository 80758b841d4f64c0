//! The policies with which a replica reviews, by module.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use arc_swap::ArcSwap;
use tokio::sync::watch;
use tokio::time::Instant;

use super::active_policy::ActivePolicy;
use super::kept_request::KeptRequest;
use super::recent_requests::RecentRequests;

/// How long a replica allows every request for a removed policy: until every API server has learned
/// that its webhook is gone. Without that, the request would fail, and `failurePolicy: Fail` would
/// deny it.
pub const REMOVED_TIME: Duration = Duration::from_mins(1);

/// The policy of a module, or its removal.
#[derive(Clone)]
pub enum Entry {
    /// The active policy of the module.
    Active(Arc<ActivePolicy>),
    /// The policy was removed: every request is allowed for [`REMOVED_TIME`].
    Removed {
        /// When that ends.
        until: Instant,
    },
}

type Table = BTreeMap<Arc<str>, Entry>;

/// The policies with which a replica reviews, by module. A review takes no lock: a swap replaces
/// the whole table, and a review that has begun goes on with the policy that it took.
pub struct ActivePolicies {
    table: ArcSwap<Table>,
    is_complete: AtomicBool,
    changes: watch::Sender<u64>,
    requests: RecentRequests,
}

impl Default for ActivePolicies {
    fn default() -> Self {
        Self {
            table: ArcSwap::default(),
            is_complete: AtomicBool::new(false),
            changes: watch::Sender::new(0),
            requests: RecentRequests::default(),
        }
    }
}

impl ActivePolicies {
    /// The policy of a module, or its removal; `None` if it has neither now.
    pub fn get(&self, module: &str, now: Instant) -> Option<Entry> {
        let entry = self.table.load().get(module)?.clone();
        Some(entry).filter(|entry| !is_over(entry, now))
    }

    /// Makes a policy the one of its module.
    pub fn swap(&self, policy: &Arc<ActivePolicy>) {
        self.change(|table| {
            table.insert(policy.module.clone(), Entry::Active(policy.clone()));
        });
    }

    /// Removes the policy of a module, if it has one; [`REMOVED_TIME`] begins.
    pub fn remove(&self, module: &str, now: Instant) {
        self.change(|table| {
            if let Some(entry @ Entry::Active(_)) = table.get_mut(module) {
                *entry = Entry::Removed { until: now + REMOVED_TIME };
            }
            table.retain(|_, entry| !is_over(entry, now));
        });
        self.requests.forget(module);
    }

    /// Drops all policies at once, without [`REMOVED_TIME`].
    pub fn clear(&self) {
        self.change(BTreeMap::clear);
        self.requests.clear();
    }

    /// Keeps a request that the policy of a module reviewed, unless the policy is gone.
    pub fn keep(&self, module: &Arc<str>, request: KeptRequest) {
        self.requests.keep(module, request);
        // After the request is kept, or a removal just before would leave it in memory.
        if !matches!(self.table.load().get(module), Some(Entry::Active(_))) {
            self.requests.forget(module);
        }
    }

    /// The last requests that the policies reviewed.
    pub fn requests(&self) -> &RecentRequests {
        &self.requests
    }

    /// The active policies, by module.
    pub fn policies(&self) -> Vec<Arc<ActivePolicy>> {
        let table = self.table.load();
        let active = table.values().filter_map(|entry| match entry {
            Entry::Active(policy) => Some(policy.clone()),
            Entry::Removed { .. } => None,
        });
        active.collect()
    }

    /// The [`ActivePolicy::id`] of each active policy, by module.
    pub fn ids(&self) -> BTreeMap<Arc<str>, String> {
        let policies = self.policies();
        policies.iter().map(|policy| (policy.module.clone(), policy.id.clone())).collect()
    }

    /// Whether each policy that was decided before the replica started is active, or has failed to
    /// become so.
    pub fn is_complete(&self) -> bool {
        self.is_complete.load(Ordering::Acquire)
    }

    /// Makes [`Self::is_complete`] true, for good.
    pub fn set_complete(&self) {
        self.is_complete.store(true, Ordering::Release);
        self.changes.send_modify(|changes| *changes += 1);
    }

    /// Changes with each change of the policies, and when they are complete.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    fn change(&self, change: impl Fn(&mut Table)) {
        self.table.rcu(|table| {
            let mut table = Table::clone(table);
            change(&mut table);
            table
        });
        self.changes.send_modify(|changes| *changes += 1);
    }
}

fn is_over(entry: &Entry, now: Instant) -> bool {
    matches!(entry, Entry::Removed { until } if *until <= now)
}
