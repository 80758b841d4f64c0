//! The queue of keys: which primary is reconciled next.
//!
//! # Guarantees
//! - A key waits at most once, and is worked on by at most one worker: a wake during the work
//!   runs it once more afterwards.
//! - Modules take turns: one with many keys cannot hold up one with few.
//! - Tenants of a module take turns too ([`crate::queue::module_queue`]): a tenant is a namespace, or a
//!   cluster-scoped primary. The one that had its turn longest ago comes first.
//! - Keys that a change woke come before keys whose time has come and before those that are woken
//!   because their module, or what it may read, is another; these get one turn of
//!   [`ROUTINE_TURN`](crate::queue::module_queue::ROUTINE_TURN) at least.
//! - At most [`Bounds::running_per_module`] keys of one module are worked on at once, and at most
//!   [`Bounds::running_per_tenant`] of one tenant.
//! - A module that has written as much as it may waits, and so does a tenant
//!   ([`WriteRateLimiter`](crate::queue::write_rate::WriteRateLimiter)); the others do not. A run that has
//!   to stop for that goes on later, after keys that a change woke.
//! - A key that failed waits by [`Backoff`]; a change that concerns it runs it at once. Its
//!   failures are forgotten when it succeeds.
//! - Whoever gets a key learns what has woken it since it was worked on last.
//!
//! # Assumptions
//! Time is given by the caller as a duration since some start: the queue reads no clock, so
//! tests and the simulator run it on virtual time.

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
    /// Keys worked on at once, of all modules.
    pub running: usize,
    /// Keys worked on at once, of one module.
    pub running_per_module: usize,
    /// Keys worked on at once, of one tenant of a module.
    pub running_per_tenant: usize,
}

#[derive(Debug, Default)]
struct QueuedModule {
    queue: ModuleQueue,
    entries: BTreeMap<ObjectKey, Entry>,
}

#[derive(Debug, Default)]
struct Entry {
    /// Where it waits in the lane, if it is ready.
    ready: Option<Ticket>,
    /// A worker has it.
    running: bool,
    /// It was woken while a worker has it.
    rerun: Option<Priority>,
    /// It is in `due` for this time.
    due: Option<Duration>,
    /// Failures in a row.
    failures: u32,
    /// What has woken it since it was worked on last.
    triggers: Option<Triggers>,
}

/// The queue. See the [module's documentation](self) for what it guarantees.
#[derive(Debug)]
pub struct Queue {
    bounds: Bounds,
    backoff: Backoff,
    modules: BTreeMap<std::sync::Arc<str>, QueuedModule>,
    /// Whose turn it is: the module after this one.
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

    /// Something that concerns a key changed: it is worked on as soon as there is room.
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

    /// A key is worked on at `when`, unless something wakes it before. An earlier time that
    /// it already has stays.
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

    /// The next key to work on and why, if there is one and there is room; [`Queue::done`] must
    /// follow.
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

    /// The next key of the first module within a range that has one.
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
            // Whatever made it ready said why.
            let triggers =
                entry.triggers.take().unwrap_or(Triggers { first: Trigger::Scheduled, more: 0 });
            Some((ReconcileRequest { module: module.clone(), key }, triggers))
        })
    }

    /// The work on a key ended. `jitter` in 0..1 spreads backoffs.
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
            ReconcileResult::Continue => {
                Triggers::note(&mut entry.triggers, &Trigger::Continued);
                again = again.max(Some(Priority::of(&Trigger::Continued)));
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

    /// So many writes a second may a module make.
    pub fn set_rate(&mut self, module: &std::sync::Arc<str>, writes_per_second: NonZeroU32) {
        self.modules.entry(module.clone()).or_default().queue.set_rate(writes_per_second);
    }

    /// Whether a module may make a further write for a key that is worked on.
    pub fn may_write(&mut self, request: &ReconcileRequest, now: Duration) -> bool {
        let module = self.modules.get_mut(&request.module);
        module.is_none_or(|module| module.queue.may_write(&request.key, now))
    }

    /// A module has written something for a key.
    pub fn wrote(&mut self, request: &ReconcileRequest, now: Duration) {
        if let Some(module) = self.modules.get_mut(&request.module) {
            module.queue.wrote(&request.key, now);
        }
    }

    /// Forgets all keys of a module that no worker has.
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

    /// Gives out no more keys: work in flight finishes, nothing new starts.
    pub fn close(&mut self) {
        self.closed = true;
    }

    /// When the next key becomes due, if one waits for a time; also for its module's or its
    /// tenant's writes, if these have to wait at `now`.
    pub fn next_due(&self, now: Duration) -> Option<Duration> {
        let written = self.modules.values().filter_map(|module| module.queue.next_paid(now));
        self.due.first().map(|(when, _)| *when).into_iter().chain(written).min()
    }

    /// Whether no key of a module is ready or worked on.
    pub fn is_idle(&self, module: &str) -> bool {
        let module = self.modules.get(module);
        module.is_none_or(|module| module.queue.running() == 0 && module.queue.ready() == 0)
    }

    /// Keys that are worked on now.
    pub fn running(&self) -> usize {
        self.running
    }

    /// Keys of each module that are ready to be worked on.
    pub fn depths(&self) -> impl Iterator<Item = (&str, usize)> {
        self.modules.iter().map(|(module, of_module)| (&**module, of_module.queue.ready()))
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
