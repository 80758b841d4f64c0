//! The ready keys of one module, and which of its tenants has the next turn.
//!
//! A tenant is a namespace. Cluster-scoped primaries have none, so each of them is a tenant of its
//! own: one that changes all the time does not delay one that seldom does.
//!
//! The tenant that had its turn longest ago comes first, so a tenant with one key waits for at most
//! one key of each other tenant. Keys that a change made ready come before routine ones
//! (see [`ROUTINE_TURN`]). Every operation is `O(log n)`, amortized.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use innkeeper_core::ObjectKey;

use crate::queue::trigger::Trigger;
use crate::queue::write_rate::{BURST, MODULE_BURST, WriteRateLimiter, turn_writes};

/// Of so many turns of a module one goes to a routine key, if one waits.
pub const ROUTINE_TURN: u32 = 4;

/// Tenants that are remembered before the first search for ones to forget.
const TENANTS_MIN: usize = 64;

/// Why a key is ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Priority {
    /// Its time has come, or all keys of the module are run.
    Routine,
    /// The primary, or an object that its last run read, changed.
    Changed,
}

impl Priority {
    /// The class of a key that this wakes.
    pub(crate) fn of(trigger: &Trigger) -> Self {
        match trigger {
            Trigger::Object { .. } | Trigger::ReadChanged => Self::Changed,
            Trigger::RevisionActive
            | Trigger::ReadabilityChanged(_)
            | Trigger::StatusWritable
            | Trigger::Scheduled
            | Trigger::Continued
            | Trigger::Retry(_) => Self::Routine,
        }
    }
}

/// Where a ready key waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ticket {
    pub(crate) class: Priority,
    number: u64,
}

/// Why a tenant has no turn although its keys are ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WaitReason {
    /// As many of its keys are worked on as may be.
    Running,
    /// It has written more than it may until then.
    Writes(Duration),
}

/// What is known of a tenant whether or not its keys are ready.
#[derive(Debug, Default)]
struct Tenant {
    running: usize,
    writes: WriteRateLimiter,
    hold: Option<WaitReason>,
}

/// The ready keys of one module. See the [module's documentation](self).
#[derive(Debug, Default)]
pub(crate) struct ModuleQueue {
    changed: Rotation,
    routine: Rotation,
    tenants: BTreeMap<Arc<str>, Tenant>,
    /// Tenants that were left when idle ones were forgotten last.
    tenants_left: usize,
    /// Until when tenants are held for their writes.
    waiting: BTreeSet<(Duration, Arc<str>)>,
    /// The keys that are worked on, and how many writes each has reserved.
    turns: BTreeMap<ObjectKey, u32>,
    writes: WriteRateLimiter,
    rate: Option<NonZeroU32>,
    tickets: u64,
    /// Turns of changed keys since the last one of a routine key, while one waited.
    changed_turns: u32,
}

/// The tenant whose turn a key uses up.
pub(crate) fn tenant_of(key: &ObjectKey) -> &str {
    if key.namespace().is_empty() { key.name() } else { key.namespace() }
}

impl ModuleQueue {
    /// Keys that are ready.
    pub(crate) fn ready(&self) -> usize {
        self.changed.keys + self.routine.keys
    }

    /// Keys that are worked on.
    pub(crate) fn running(&self) -> usize {
        self.turns.len()
    }

    /// A key is ready.
    pub(crate) fn push(&mut self, key: &ObjectKey, class: Priority) -> Ticket {
        self.tickets += 1;
        let ticket = Ticket { class, number: self.tickets };
        let name = tenant_of(key);
        let is_held = self.tenants.get(name).is_some_and(|tenant| tenant.hold.is_some());
        self.rotation(class).push(name, key.clone(), ticket.number, is_held);
        ticket
    }

    /// A ready key waits there no more.
    pub(crate) fn remove(&mut self, key: &ObjectKey, ticket: Ticket) {
        self.rotation(ticket.class).remove(tenant_of(key), ticket.number);
    }

    /// No key is ready any more.
    pub(crate) fn clear(&mut self) {
        self.changed = Rotation::default();
        self.routine = Rotation::default();
        self.waiting.clear();
        for tenant in self.tenants.values_mut() {
            tenant.hold = None;
        }
    }

    /// The next key to work on; [`ModuleQueue::finished`] must follow. At most `running_max` keys
    /// of one tenant are worked on at once.
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

    /// The work on a key ended.
    pub(crate) fn finished(&mut self, key: &ObjectKey) {
        let Some(reserved) = self.turns.remove(key) else { return };
        self.writes.release(reserved);
        let name = tenant_of(key);
        let Some(tenant) = self.tenants.get_mut(name) else { return };
        tenant.running = tenant.running.saturating_sub(1);
        tenant.writes.release(reserved);
        // What is released may end either hold; the next search finds out.
        match tenant.hold {
            None => return,
            Some(WaitReason::Running) => {}
            Some(WaitReason::Writes(until)) => {
                self.waiting.remove(&(until, name.into()));
            }
        }
        self.release(&name.into());
    }

    /// Whether a key that is worked on may make a further write: its turn has one left, or the
    /// bursts of its module and of its tenant have.
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

    /// So many writes a second may be made.
    pub(crate) fn set_rate(&mut self, per_second: NonZeroU32) {
        self.rate = Some(per_second);
        self.writes.set(per_second);
        for tenant in self.tenants.values_mut() {
            tenant.writes.set(per_second);
        }
    }

    /// A write was made for a key.
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

    /// When a ready key may have its turn that has to wait for writes at `now`.
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

    /// Forgets tenants of which nothing has to be known, once there are twice as many as were left
    /// the last time: so the search costs little for each turn.
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

/// The ready keys of one class, by tenant.
#[derive(Debug, Default)]
struct Rotation {
    waiting: BTreeMap<Arc<str>, Waiting>,
    /// The tenants that wait and are not held.
    order: BTreeMap<Rank, Arc<str>>,
    /// The number of the last turn of tenants that do not wait, as long as it matters to one that
    /// does.
    served: BTreeMap<Arc<str>, u64>,
    /// How many were left of `served` when old ones were forgotten last.
    served_left: usize,
    turns: u64,
    keys: usize,
}

/// The ready keys of one tenant, by their tickets: at least one.
#[derive(Debug)]
struct Waiting {
    keys: BTreeMap<u64, ObjectKey>,
    /// The number of its last turn; 0 for one that is not known any more.
    served: u64,
    /// Its place in the order; `None` while it is held.
    rank: Option<Rank>,
}

impl Waiting {
    /// Its place in the order, if it takes one now.
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

    /// Takes the first key of the tenant whose turn it is.
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

    /// A tenant has no key that waits any more.
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

    /// A tenant that was held takes its place in the order.
    fn release(&mut self, name: &Arc<str>) {
        let Some(waiting) = self.waiting.get_mut(name) else { return };
        if waiting.rank.is_none() {
            let rank = *waiting.rank.insert(waiting.next_rank());
            self.order.insert(rank, name.clone());
        }
    }

    /// Forgets turns that are older than that of every tenant in the order: whoever had them comes
    /// first in any case. Done when twice as many are known as were left the last time.
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
