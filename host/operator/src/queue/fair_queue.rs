//! The queue: which reconcile request runs next.
//!
//! # Guarantees
//! - A request waits at most once, and at most one worker has it. A request that is woken while a
//!   worker has it runs once more afterwards.
//! - Modules take turns: a module with many requests does not delay a module with few.
//! - The tenants of a module take turns too ([`crate::queue::module_queue`]): a tenant is a
//!   namespace, or a cluster-scoped primary. The tenant whose last turn is oldest comes first.
//! - Requests that a change woke come before routine ones: requests whose time has come, and
//!   requests that a new revision or new rights woke. At least one turn of
//!   [`ROUTINE_TURN`](crate::queue::module_queue::ROUTINE_TURN) goes to a routine request.
//! - At most [`Bounds::running_per_module`] requests of one module run at once, and at most
//!   [`Bounds::running_per_tenant`] of one tenant.
//! - A module or a tenant that has used up its write rate waits
//!   ([`WriteRateLimiter`](crate::queue::write_rate::WriteRateLimiter)); the others do not wait. A
//!   reconcile that the rate stops continues later, after requests that a change woke.
//! - A failed request waits by [`Backoff`]; a change that concerns it runs it at once. A success
//!   resets its count of failures.
//! - A worker that gets a request learns what has woken it since its last run.
//!
//! # Assumptions
//! The caller gives the time as a duration since some start: the queue reads no clock, so tests and
//! the simulator run it on virtual time.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU32;
use std::ops::Bound;
use std::time::Duration;

use innkeeper_core::ObjectKey;

use crate::queue::backoff::Backoff;
use crate::queue::module_queue::{ModuleQueue, Priority, Ticket};
use crate::queue::request::{ReconcileRequest, ReconcileResult};
use crate::queue::trigger::{Trigger, Triggers};

/// Limits of the queue.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// Requests that run at once, of all modules.
    pub running: usize,
    /// Requests that run at once, of one module.
    pub running_per_module: usize,
    /// Requests that run at once, of one tenant of a module.
    pub running_per_tenant: usize,
}

#[derive(Debug, Default)]
struct QueuedModule {
    queue: ModuleQueue,
    entries: BTreeMap<ObjectKey, Entry>,
}

#[derive(Debug, Default)]
struct Entry {
    /// Its place in the module's queue, if it is ready.
    ready: Option<Ticket>,
    /// Whether a worker has it.
    running: bool,
    /// Set when it is woken while a worker has it.
    rerun: Option<Priority>,
    /// Its time in [`Queue::due`].
    due: Option<Duration>,
    /// Failures in a row.
    failures: u32,
    /// What has woken it since its last run.
    triggers: Option<Triggers>,
}

/// The queue. See the [module's documentation](self) for what it guarantees.
#[derive(Debug)]
pub struct Queue {
    bounds: Bounds,
    backoff: Backoff,
    modules: BTreeMap<std::sync::Arc<str>, QueuedModule>,
    /// The module that had the last turn: the next turn is that of the module after it.
    last: Option<std::sync::Arc<str>>,
    due: BTreeSet<(Duration, ReconcileRequest)>,
    running: usize,
    closed: bool,
}

impl Queue {
    /// An empty queue.
    pub fn new(bounds: Bounds, backoff: Backoff) -> Self {
        Self {
            bounds,
            backoff,
            modules: BTreeMap::new(),
            last: None,
            due: BTreeSet::new(),
            running: 0,
            closed: false,
        }
    }

    /// Has a request run as soon as a worker is free.
    pub fn wake(&mut self, request: &ReconcileRequest, trigger: &Trigger) {
        let class = Priority::of(trigger);
        let QueuedModule { queue: module_queue, entries } =
            self.modules.entry(request.module.clone()).or_default();
        let entry = entries.entry(request.key.clone()).or_default();
        Triggers::note(&mut entry.triggers, trigger);
        if let Some(due) = entry.due.take() {
            self.due.remove(&(due, request.clone()));
        }
        if entry.running {
            entry.rerun = entry.rerun.max(Some(class));
            return;
        }
        match entry.ready {
            Some(ticket) if ticket.class >= class => return,
            Some(ticket) => module_queue.remove(&request.key, ticket),
            None => {}
        }
        entry.ready = Some(module_queue.push(&request.key, class));
    }

    /// Has a request run at `when`, unless something wakes it before. If it has an earlier time
    /// already, that time stays.
    pub fn wake_at(&mut self, request: &ReconcileRequest, when: Duration) {
        let entries = &mut self.modules.entry(request.module.clone()).or_default().entries;
        let entry = entries.entry(request.key.clone()).or_default();
        if entry.ready.is_some()
            || entry.rerun.is_some()
            || entry.due.is_some_and(|due| due <= when)
        {
            return;
        }
        if let Some(due) = entry.due.replace(when) {
            self.due.remove(&(due, request.clone()));
        }
        self.due.insert((when, request.clone()));
    }

    /// The next request and its triggers, if one is ready and a worker is free. The caller must
    /// call [`Queue::done`] afterwards.
    pub fn next(&mut self, now: Duration) -> Option<(ReconcileRequest, Triggers)> {
        while let Some((when, request)) = self.due.first() {
            if *when > now {
                break;
            }
            let request = request.clone();
            let module = self.modules.get(&request.module);
            let entry = module.and_then(|module| module.entries.get(&request.key));
            let trigger = match entry.map(|entry| entry.failures) {
                None | Some(0) => Trigger::Scheduled,
                Some(failures) => Trigger::Retry(failures),
            };
            self.wake(&request, &trigger);
        }
        if self.closed || self.running >= self.bounds.running {
            return None;
        }
        let (after, until) = match &self.last {
            Some(last) => (Bound::Excluded(last.clone()), Bound::Included(last.clone())),
            None => (Bound::Unbounded, Bound::Unbounded),
        };
        let (request, entry) = match self.take(now, (after, Bound::Unbounded)) {
            Some(taken) => Some(taken),
            None => self.take(now, (Bound::Unbounded, until)),
        }?;
        self.last = Some(request.module.clone());
        self.running += 1;
        Some((request, entry))
    }

    /// The next request of the first module within a range that has one.
    fn take(
        &mut self,
        now: Duration,
        range: (Bound<std::sync::Arc<str>>, Bound<std::sync::Arc<str>>),
    ) -> Option<(ReconcileRequest, Triggers)> {
        let Bounds { running_per_module, running_per_tenant, .. } = self.bounds;
        self.modules.range_mut(range).find_map(|(module, of_module)| {
            let QueuedModule { queue: module_queue, entries } = of_module;
            if module_queue.running() >= running_per_module {
                return None;
            }
            let key = module_queue.take(now, running_per_tenant)?;
            let entry = entries.entry(key.clone()).or_default();
            entry.ready = None;
            entry.running = true;
            // Every call that makes a request ready notes a trigger.
            let triggers =
                entry.triggers.take().unwrap_or(Triggers { first: Trigger::Scheduled, more: 0 });
            Some((ReconcileRequest { module: module.clone(), key }, triggers))
        })
    }

    /// Ends the run of a request. `jitter` in 0..1 varies a backoff.
    pub fn done(
        &mut self,
        request: &ReconcileRequest,
        done: ReconcileResult,
        now: Duration,
        jitter: f64,
    ) {
        let Some(QueuedModule { queue: module_queue, entries }) =
            self.modules.get_mut(&request.module)
        else {
            return;
        };
        let Some(entry) = entries.get_mut(&request.key) else { return };
        if !entry.running {
            return;
        }
        entry.running = false;
        module_queue.finished(&request.key);
        self.running -= 1;
        let mut again = entry.rerun.take();
        let when = match done {
            ReconcileResult::Ok(after) => {
                entry.failures = 0;
                after
            }
            ReconcileResult::AwaitChange(after) => after,
            ReconcileResult::Failed => {
                entry.failures = entry.failures.saturating_add(1);
                Some(self.backoff.delay(entry.failures, jitter))
            }
            ReconcileResult::Requeue => {
                Triggers::note(&mut entry.triggers, &Trigger::Resumed);
                again = again.max(Some(Priority::of(&Trigger::Resumed)));
                None
            }
            ReconcileResult::Forget => None,
        };
        if let Some(class) = again {
            entry.ready = Some(module_queue.push(&request.key, class));
        } else if let Some(when) = when {
            self.wake_at(request, now.saturating_add(when));
        } else if done == ReconcileResult::Forget || (entry.failures == 0 && entry.due.is_none()) {
            entries.remove(&request.key);
        }
    }

    /// Sets the write rate of a module.
    pub fn set_rate(&mut self, module: &std::sync::Arc<str>, writes_per_second: NonZeroU32) {
        self.modules.entry(module.clone()).or_default().queue.set_rate(writes_per_second);
    }

    /// Whether the write rate allows one more write for a running request.
    pub fn may_write(&mut self, request: &ReconcileRequest, now: Duration) -> bool {
        let module = self.modules.get_mut(&request.module);
        module.is_none_or(|module| module.queue.may_write(&request.key, now))
    }

    /// Counts a write for a running request.
    pub fn wrote(&mut self, request: &ReconcileRequest, now: Duration) {
        if let Some(module) = self.modules.get_mut(&request.module) {
            module.queue.wrote(&request.key, now);
        }
    }

    /// Forgets all requests of a module that no worker has.
    pub fn forget_module(&mut self, module: &str) {
        let Some(QueuedModule { queue: module_queue, entries }) = self.modules.get_mut(module)
        else {
            return;
        };
        module_queue.clear();
        entries.retain(|_, entry| {
            entry.ready = None;
            entry.rerun = None;
            entry.due = None;
            entry.triggers = None;
            entry.running
        });
        self.due.retain(|(_, request)| &*request.module != module);
        if entries.is_empty() {
            self.modules.remove(module);
        }
    }

    /// Closes the queue: running requests finish, and no further one starts.
    pub fn close(&mut self) {
        self.closed = true;
    }

    /// When the next request becomes ready: its time comes, or the write rate of its module and
    /// tenant allows a write again. `None` if no request waits for a time.
    pub fn next_due(&self, now: Duration) -> Option<Duration> {
        let written = self.modules.values().filter_map(|module| module.queue.next_paid(now));
        self.due.first().map(|(when, _)| *when).into_iter().chain(written).min()
    }

    /// Whether no request of a module is ready or running.
    pub fn is_idle(&self, module: &str) -> bool {
        let module = self.modules.get(module);
        module.is_none_or(|module| module.queue.running() == 0 && module.queue.ready() == 0)
    }

    /// Whether a request is ready, running, or waits for its next try after a failure.
    pub fn is_pending(&self, request: &ReconcileRequest) -> bool {
        let module = self.modules.get(&request.module);
        let entry = module.and_then(|module| module.entries.get(&request.key));
        entry.is_some_and(|entry| entry.ready.is_some() || entry.running || entry.failures > 0)
    }

    /// The number of running requests.
    pub fn running(&self) -> usize {
        self.running
    }

    /// The number of ready requests of each module.
    pub fn depths(&self) -> impl Iterator<Item = (&str, usize)> {
        self.modules.iter().map(|(module, of_module)| (&**module, of_module.queue.ready()))
    }

    /// Whether a request that failed waits for its next try.
    pub fn waits_for_retry(&self) -> bool {
        let mut entries = self.modules.values().flat_map(|module| module.entries.values());
        entries.any(|entry| entry.failures > 0 && entry.due.is_some())
    }

    /// Whether nothing is ready, running or due by `now`.
    pub fn is_quiet(&self, now: Duration) -> bool {
        self.running == 0
            && self.modules.values().all(|module| module.queue.ready() == 0)
            && self.next_due(now).is_none_or(|due| due > now)
    }
}

#[cfg(test)]
mod tests;
