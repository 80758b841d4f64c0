//! The ready requests of one module, and which of its tenants has the next turn.
//!
//! A tenant is a namespace. A cluster-scoped primary has no namespace, so it is a tenant of its
//! own: one that changes all the time does not delay one that seldom does.
//!
//! The tenant whose last turn is oldest comes first, so a tenant with one request waits for at most
//! one request of each other tenant. Requests that a change made ready come before routine ones
//! (see [`ROUTINE_TURN`]). Every operation is `O(log n)`, amortized. A key is the primary's key of
//! a request.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use innkeeper_core::ObjectKey;

use crate::queue::trigger::Trigger;
use crate::queue::write_rate::{BURST, MODULE_BURST, WriteRateLimiter, turn_writes};

/// One of this many turns of a module goes to a routine request, if one waits.
pub const ROUTINE_TURN: u32 = 4;

/// The number of known tenants before the first search for tenants to forget.
const TENANTS_MIN: usize = 64;

/// How urgent a ready request is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Priority {
    /// Its time has come, or all requests of the module run.
    Routine,
    /// The primary, or an object that its last run read, changed.
    Changed,
}

impl Priority {
    /// The priority of a request that this trigger wakes.
    pub(crate) fn of(trigger: &Trigger) -> Self {
        match trigger {
            Trigger::Object { .. } | Trigger::ReadChanged => Self::Changed,
            Trigger::RevisionActive
            | Trigger::ReadabilityChanged(_)
            | Trigger::StatusWritable
            | Trigger::Scheduled
            | Trigger::Resumed
            | Trigger::Retry(_) => Self::Routine,
        }
    }
}

/// The place of a ready request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ticket {
    pub(crate) class: Priority,
    number: u64,
}

/// Why a tenant has no turn although it has ready requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WaitReason {
    /// As many of its requests run as may.
    Running,
    /// It has used up its write rate until this time.
    Writes(Duration),
}

/// The state of a tenant, with or without ready requests.
#[derive(Debug, Default)]
struct Tenant {
    running: usize,
    writes: WriteRateLimiter,
    hold: Option<WaitReason>,
}

/// The ready requests of one module. See the [module's documentation](self).
#[derive(Debug, Default)]
pub(crate) struct ModuleQueue {
    changed: Rotation,
    routine: Rotation,
    tenants: BTreeMap<Arc<str>, Tenant>,
    /// The number of tenants after the last search for tenants to forget.
    tenants_left: usize,
    /// Until when tenants wait for their write rate.
    waiting: BTreeSet<(Duration, Arc<str>)>,
    /// The running requests, and how many writes each has reserved.
    turns: BTreeMap<ObjectKey, u32>,
    writes: WriteRateLimiter,
    rate: Option<NonZeroU32>,
    tickets: u64,
    /// Turns of changed requests since the last routine turn, while a routine request waited.
    changed_turns: u32,
}

/// The tenant of a primary.
pub(crate) fn tenant_of(key: &ObjectKey) -> &str {
    if key.namespace().is_empty() { key.name() } else { key.namespace() }
}

impl ModuleQueue {
    /// The number of ready requests.
    pub(crate) fn ready(&self) -> usize {
        self.changed.keys + self.routine.keys
    }

    /// The number of running requests.
    pub(crate) fn running(&self) -> usize {
        self.turns.len()
    }

    /// Adds a ready request.
    pub(crate) fn push(&mut self, key: &ObjectKey, class: Priority) -> Ticket {
        self.tickets += 1;
        let ticket = Ticket { class, number: self.tickets };
        let name = tenant_of(key);
        let is_held = self.tenants.get(name).is_some_and(|tenant| tenant.hold.is_some());
        self.rotation(class).push(name, key.clone(), ticket.number, is_held);
        ticket
    }

    /// Removes a ready request.
    pub(crate) fn remove(&mut self, key: &ObjectKey, ticket: Ticket) {
        self.rotation(ticket.class).remove(tenant_of(key), ticket.number);
    }

    /// Removes all ready requests.
    pub(crate) fn clear(&mut self) {
        self.changed = Rotation::default();
        self.routine = Rotation::default();
        self.waiting.clear();
        for tenant in self.tenants.values_mut() {
            tenant.hold = None;
        }
    }

    /// Takes the next request to run. The caller must call [`ModuleQueue::finished`] afterwards. At
    /// most `running_max` requests of one tenant run at once.
    pub(crate) fn take(&mut self, now: Duration, running_max: usize) -> Option<ObjectKey> {
        if self.ready() == 0 || self.writes.ready_after(MODULE_BURST, now) > now {
            return None;
        }
        self.release_paid(now);
        let reserved = self.rate.map_or(0, turn_writes);
        loop {
            let routine_waits = self.routine.has_turn();
            let class = if self.changed.has_turn()
                && (!routine_waits || self.changed_turns + 1 < ROUTINE_TURN)
            {
                Priority::Changed
            } else if routine_waits {
                Priority::Routine
            } else {
                return None;
            };
            let name = self.rotation(class).first()?.clone();
            let tenant = self.tenants.entry(name.clone()).or_default();
            if let Some(rate) = self.rate {
                tenant.writes.set(rate);
            }
            if tenant.running >= running_max {
                self.hold(&name, WaitReason::Running);
                continue;
            }
            let paid = tenant.writes.ready_after(BURST, now);
            if paid > now {
                self.hold(&name, WaitReason::Writes(paid));
                continue;
            }
            tenant.running += 1;
            tenant.writes.reserve(reserved);
            self.writes.reserve(reserved);
            self.changed_turns = match class {
                Priority::Changed if routine_waits => self.changed_turns + 1,
                Priority::Changed | Priority::Routine => 0,
            };
            self.forget_idle(now);
            let key = self.rotation(class).take_first()?;
            self.turns.insert(key.clone(), reserved);
            return Some(key);
        }
    }

    /// Ends the run of a request.
    pub(crate) fn finished(&mut self, key: &ObjectKey) {
        let Some(reserved) = self.turns.remove(key) else { return };
        self.writes.release(reserved);
        let name = tenant_of(key);
        let Some(tenant) = self.tenants.get_mut(name) else { return };
        tenant.running = tenant.running.saturating_sub(1);
        tenant.writes.release(reserved);
        // The end may let the tenant have turns again; the next search decides that.
        match tenant.hold {
            None => return,
            Some(WaitReason::Running) => {}
            Some(WaitReason::Writes(until)) => {
                self.waiting.remove(&(until, name.into()));
            }
        }
        self.release(&name.into());
    }

    /// Whether a running request may make one more write: its turn has a reserved one left, or the
    /// bursts of its module and of its tenant have one.
    pub(crate) fn may_write(&mut self, key: &ObjectKey, now: Duration) -> bool {
        let Some(reserved) = self.turns.get_mut(key).filter(|reserved| **reserved == 0) else {
            return true;
        };
        let Some(tenant) = self.tenants.get_mut(tenant_of(key)) else { return true };
        if self.writes.ready_after(MODULE_BURST, now) > now
            || tenant.writes.ready_after(BURST, now) > now
        {
            return false;
        }
        *reserved = 1;
        tenant.writes.reserve(1);
        self.writes.reserve(1);
        true
    }

    /// Sets the write rate.
    pub(crate) fn set_rate(&mut self, per_second: NonZeroU32) {
        self.rate = Some(per_second);
        self.writes.set(per_second);
        for tenant in self.tenants.values_mut() {
            tenant.writes.set(per_second);
        }
    }

    /// Counts a write for a running request.
    pub(crate) fn wrote(&mut self, key: &ObjectKey, now: Duration) {
        let Some(rate) = self.rate else { return };
        let reserved = self.turns.get_mut(key).filter(|reserved| **reserved > 0);
        let released = u32::from(reserved.is_some());
        if let Some(reserved) = reserved {
            *reserved -= 1;
        }
        self.writes.release(released);
        self.writes.spend(now);
        let name = tenant_of(key);
        if !self.tenants.contains_key(name) {
            self.tenants.insert(name.into(), Tenant::default());
        }
        if let Some(tenant) = self.tenants.get_mut(name) {
            tenant.writes.set(rate);
            tenant.writes.release(released);
            tenant.writes.spend(now);
        }
    }

    /// When a ready request gets its turn that waits for the write rate at `now`.
    pub(crate) fn next_paid(&self, now: Duration) -> Option<Duration> {
        if self.ready() == 0 {
            return None;
        }
        let module = self.writes.ready_after(MODULE_BURST, now);
        if module > now {
            return Some(module);
        }
        self.waiting.first().map(|(paid, _)| *paid).filter(|paid| *paid > now)
    }

    fn rotation(&mut self, class: Priority) -> &mut Rotation {
        match class {
            Priority::Changed => &mut self.changed,
            Priority::Routine => &mut self.routine,
        }
    }

    fn hold(&mut self, name: &Arc<str>, hold: WaitReason) {
        if let Some(tenant) = self.tenants.get_mut(name) {
            tenant.hold = Some(hold);
        }
        if let WaitReason::Writes(until) = hold {
            self.waiting.insert((until, name.clone()));
        }
        self.changed.hold(name);
        self.routine.hold(name);
    }

    fn release(&mut self, name: &Arc<str>) {
        if let Some(tenant) = self.tenants.get_mut(name) {
            tenant.hold = None;
        }
        self.changed.release(name);
        self.routine.release(name);
    }

    fn release_paid(&mut self, now: Duration) {
        while self.waiting.first().is_some_and(|(paid, _)| *paid <= now) {
            if let Some((_, name)) = self.waiting.pop_first() {
                self.release(&name);
            }
        }
    }

    /// Forgets idle tenants, once there are twice as many tenants as after the last search: so the
    /// search costs little for each turn.
    fn forget_idle(&mut self, now: Duration) {
        if self.tenants.len() <= self.tenants_left * 2 + TENANTS_MIN {
            return;
        }
        self.tenants.retain(|_, tenant| {
            tenant.running > 0 || tenant.hold.is_some() || !tenant.writes.is_paid(now)
        });
        self.tenants_left = self.tenants.len();
    }
}

/// Orders tenants: the number of the last turn, then the ticket of the first key.
type Rank = (u64, u64);

/// The ready requests of one priority, by tenant.
#[derive(Debug, Default)]
struct Rotation {
    waiting: BTreeMap<Arc<str>, Waiting>,
    /// The tenants that wait for their turn and for nothing else.
    order: BTreeMap<Rank, Arc<str>>,
    /// The number of the last turn of tenants that do not wait, as long as a waiting tenant has an
    /// older one.
    served: BTreeMap<Arc<str>, u64>,
    /// The number of members of `served` after old ones were forgotten the last time.
    served_left: usize,
    turns: u64,
    keys: usize,
}

/// The ready requests of one tenant, by their tickets: at least one.
#[derive(Debug)]
struct Waiting {
    keys: BTreeMap<u64, ObjectKey>,
    /// The number of its last turn; 0 if it is forgotten.
    served: u64,
    /// Its place in the order; `None` while it waits for something else than its turn.
    rank: Option<Rank>,
}

impl Waiting {
    /// The place in the order that it would take now.
    fn next_rank(&self) -> Rank {
        (self.served, self.keys.first_key_value().map_or(0, |(ticket, _)| *ticket))
    }
}

impl Rotation {
    fn has_turn(&self) -> bool {
        !self.order.is_empty()
    }

    /// The tenant whose turn is next.
    fn first(&self) -> Option<&Arc<str>> {
        self.order.first_key_value().map(|(_, name)| name)
    }

    fn push(&mut self, name: &str, key: ObjectKey, ticket: u64, is_held: bool) {
        self.keys += 1;
        if let Some(waiting) = self.waiting.get_mut(name) {
            waiting.keys.insert(ticket, key);
            return;
        }
        let (name, served) = self.served.remove_entry(name).unwrap_or_else(|| (name.into(), 0));
        let mut waiting = Waiting { keys: BTreeMap::from([(ticket, key)]), served, rank: None };
        if !is_held {
            let rank = *waiting.rank.insert(waiting.next_rank());
            self.order.insert(rank, name.clone());
        }
        self.waiting.insert(name, waiting);
    }

    fn remove(&mut self, name: &str, ticket: u64) {
        let Some(waiting) = self.waiting.get_mut(name) else { return };
        if waiting.keys.remove(&ticket).is_none() {
            return;
        }
        self.keys -= 1;
        if waiting.keys.is_empty() {
            if let Some(rank) = waiting.rank {
                self.order.remove(&rank);
            }
            self.end_wait(name);
        }
    }

    /// Takes the first request of the tenant whose turn it is.
    fn take_first(&mut self) -> Option<ObjectKey> {
        let (_, name) = self.order.pop_first()?;
        let waiting = self.waiting.get_mut(&name)?;
        let (_, key) = waiting.keys.pop_first()?;
        self.keys -= 1;
        self.turns += 1;
        waiting.served = self.turns;
        if waiting.keys.is_empty() {
            self.end_wait(&name);
        } else {
            let rank = waiting.next_rank();
            waiting.rank = Some(rank);
            self.order.insert(rank, name);
        }
        Some(key)
    }

    /// Removes a tenant without waiting requests.
    fn end_wait(&mut self, name: &str) {
        if let Some((name, waiting)) = self.waiting.remove_entry(name) {
            self.served.insert(name, waiting.served);
            self.forget_old();
        }
    }

    fn hold(&mut self, name: &str) {
        let rank = self.waiting.get_mut(name).and_then(|waiting| waiting.rank.take());
        if let Some(rank) = rank {
            self.order.remove(&rank);
        }
    }

    /// Puts a tenant that waited for something else back in the order.
    fn release(&mut self, name: &Arc<str>) {
        let Some(waiting) = self.waiting.get_mut(name) else { return };
        if waiting.rank.is_none() {
            let rank = *waiting.rank.insert(waiting.next_rank());
            self.order.insert(rank, name.clone());
        }
    }

    /// Forgets turns that are older than the last turn of every tenant in the order: their tenants
    /// come first in any case. Does so when twice as many are known as after the last time.
    fn forget_old(&mut self) {
        if self.served.len() <= self.served_left * 2 + TENANTS_MIN {
            return;
        }
        let oldest = self.order.first_key_value().map_or(self.turns, |((served, _), _)| *served);
        self.served.retain(|_, served| *served >= oldest);
        self.served_left = self.served.len();
    }
}

#[cfg(test)]
mod tests;
