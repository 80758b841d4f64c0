//! The queue of keys: which primary is reconciled next.
//!
//! # Guarantees
//! - A key waits at most once, and is worked on by at most one worker: a wake during the work
//!   runs it once more afterwards.
//! - Modules take turns: one with many keys cannot hold up one with few.
//! - At most [`Bounds::running_per_module`] keys of one module are worked on at once.
//! - A module that has written more than it may waits ([`Rate`]); the others do not.
//! - A key that failed waits by [`Backoff`]; a change that concerns it runs it at once. Its
//!   failures are forgotten when it succeeds.
//! - Whoever gets a key learns what has woken it since it was worked on last.
//!
//! # Assumptions
//! Time is given by the caller as a duration since some start: the queue reads no clock, so
//! tests and the simulator run it on virtual time.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::num::NonZeroU32;
use std::time::Duration;

use innkeeper_core::Key;

use crate::backoff::Backoff;
use crate::cause::{Cause, Causes};
use crate::rate::Rate;

/// Limits of the queue.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// Keys worked on at once, of all modules.
    pub running: usize,
    /// Keys worked on at once, of one module.
    pub running_per_module: usize,
}

/// How the work on a key ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Done {
    /// As it should be; come again after a time, if one is given.
    Ok(Option<Duration>),
    /// It failed: come again after a backoff.
    Failed,
    /// It failed, and only a change helps: no backoff. Come again after a time, if one is given.
    Stuck(Option<Duration>),
    /// The primary is gone.
    Forget,
}

/// A key of the queue: a module's name and a primary's key.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Work {
    /// The module's name.
    pub module: std::sync::Arc<str>,
    /// The primary.
    pub key: Key,
}

#[derive(Debug, Default)]
struct Lane {
    ready: VecDeque<Key>,
    entries: BTreeMap<Key, Entry>,
    running: usize,
    writes: Rate,
}

#[derive(Debug, Default)]
struct Entry {
    /// It is in `ready`.
    ready: bool,
    /// A worker has it.
    running: bool,
    /// It was woken while a worker has it.
    again: bool,
    /// It is in `due` for this time.
    due: Option<Duration>,
    /// Failures in a row.
    failures: u32,
    /// What has woken it since it was worked on last.
    causes: Option<Causes>,
}

/// The queue. See the [module's documentation](self) for what it guarantees.
#[derive(Debug)]
pub struct Queue {
    bounds: Bounds,
    backoff: Backoff,
    lanes: BTreeMap<std::sync::Arc<str>, Lane>,
    /// Whose turn it is: the lane after this one.
    last: Option<std::sync::Arc<str>>,
    due: BTreeSet<(Duration, Work)>,
    running: usize,
    closed: bool,
}

impl Queue {
    /// An empty queue.
    pub fn new(bounds: Bounds, backoff: Backoff) -> Self {
        Self {
            bounds,
            backoff,
            lanes: BTreeMap::new(),
            last: None,
            due: BTreeSet::new(),
            running: 0,
            closed: false,
        }
    }

    /// Something that concerns a key changed: it is worked on as soon as there is room.
    pub fn wake(&mut self, work: &Work, cause: &Cause) {
        let lane = self.lanes.entry(work.module.clone()).or_default();
        let entry = lane.entries.entry(work.key.clone()).or_default();
        Causes::note(&mut entry.causes, cause);
        if let Some(due) = entry.due.take() {
            self.due.remove(&(due, work.clone()));
        }
        if entry.running {
            entry.again = true;
        } else if !entry.ready {
            entry.ready = true;
            lane.ready.push_back(work.key.clone());
        }
    }

    /// A key is worked on at `when`, unless something wakes it before. An earlier time that
    /// it already has stays.
    pub fn wake_at(&mut self, work: &Work, when: Duration) {
        let entry = self
            .lanes
            .entry(work.module.clone())
            .or_default()
            .entries
            .entry(work.key.clone())
            .or_default();
        if entry.ready || entry.again || entry.due.is_some_and(|due| due <= when) {
            return;
        }
        if let Some(due) = entry.due.replace(when) {
            self.due.remove(&(due, work.clone()));
        }
        self.due.insert((when, work.clone()));
    }

    /// The next key to work on and why, if there is one and there is room; [`Queue::done`] must follow.
    pub fn next(&mut self, now: Duration) -> Option<(Work, Causes)> {
        while let Some((when, work)) = self.due.first() {
            if *when > now {
                break;
            }
            let work = work.clone();
            let entry = self.lanes.get(&work.module).and_then(|lane| lane.entries.get(&work.key));
            let cause = match entry.map(|entry| entry.failures) {
                None | Some(0) => Cause::Due,
                Some(failures) => Cause::Failed(failures),
            };
            self.wake(&work, &cause);
        }
        if self.closed || self.running >= self.bounds.running {
            return None;
        }
        let per_module = self.bounds.running_per_module;
        let has_turn = |lane: &Lane| {
            !lane.ready.is_empty() && lane.running < per_module && lane.writes.ready_at() <= now
        };
        let after = match &self.last {
            Some(last) => std::ops::Bound::Excluded(last.clone()),
            None => std::ops::Bound::Unbounded,
        };
        let module = self
            .lanes
            .range((after, std::ops::Bound::Unbounded))
            .chain(self.lanes.iter())
            .find(|(_, lane)| has_turn(lane))
            .map(|(module, _)| module.clone())?;
        let lane = self.lanes.get_mut(&module)?;
        let key = lane.ready.pop_front()?;
        let entry = lane.entries.get_mut(&key)?;
        entry.ready = false;
        entry.running = true;
        // Whatever made it ready said why.
        let causes = entry.causes.take().unwrap_or(Causes { first: Cause::Due, more: 0 });
        lane.running += 1;
        self.running += 1;
        self.last = Some(module.clone());
        Some((Work { module, key }, causes))
    }

    /// The work on a key ended. `jitter` in 0..1 spreads backoffs.
    pub fn done(&mut self, work: &Work, done: Done, now: Duration, jitter: f64) {
        let Some(lane) = self.lanes.get_mut(&work.module) else { return };
        let Some(entry) = lane.entries.get_mut(&work.key) else { return };
        if !entry.running {
            return;
        }
        entry.running = false;
        lane.running -= 1;
        self.running -= 1;
        let again = std::mem::take(&mut entry.again);
        let when = match done {
            Done::Ok(after) => {
                entry.failures = 0;
                after
            }
            Done::Stuck(after) => after,
            Done::Failed => {
                entry.failures = entry.failures.saturating_add(1);
                Some(self.backoff.delay(entry.failures, jitter))
            }
            Done::Forget => None,
        };
        if again {
            entry.ready = true;
            lane.ready.push_back(work.key.clone());
        } else if let Some(when) = when {
            self.wake_at(work, now.saturating_add(when));
        } else if done == Done::Forget || (entry.failures == 0 && entry.due.is_none()) {
            lane.entries.remove(&work.key);
        }
    }

    /// So many writes a second may a module make.
    pub fn set_rate(&mut self, module: &std::sync::Arc<str>, writes_per_second: NonZeroU32) {
        self.lanes.entry(module.clone()).or_default().writes.set(writes_per_second);
    }

    /// A module has written something.
    pub fn wrote(&mut self, module: &str, now: Duration) {
        if let Some(lane) = self.lanes.get_mut(module) {
            lane.writes.spend(now);
        }
    }

    /// Forgets all keys of a module that no worker has.
    pub fn forget_module(&mut self, module: &str) {
        let Some(lane) = self.lanes.get_mut(module) else { return };
        lane.ready.clear();
        lane.entries.retain(|_, entry| {
            entry.ready = false;
            entry.again = false;
            entry.due = None;
            entry.causes = None;
            entry.running
        });
        self.due.retain(|(_, work)| &*work.module != module);
        if lane.entries.is_empty() {
            self.lanes.remove(module);
        }
    }

    /// Gives out no more keys: work in flight finishes, nothing new starts.
    pub fn close(&mut self) {
        self.closed = true;
    }

    /// When the next key becomes due, if one waits for a time; also for its module's writes, if
    /// these have to wait at `now`.
    pub fn next_due(&self, now: Duration) -> Option<Duration> {
        let written = self
            .lanes
            .values()
            .filter(|lane| !lane.ready.is_empty())
            .map(|lane| lane.writes.ready_at())
            .filter(|ready_at| *ready_at > now);
        self.due.first().map(|(when, _)| *when).into_iter().chain(written).min()
    }

    /// Whether no key of a module is ready or worked on.
    pub fn is_idle(&self, module: &str) -> bool {
        self.lanes.get(module).is_none_or(|lane| lane.running == 0 && lane.ready.is_empty())
    }

    /// Keys that are worked on now.
    pub fn running(&self) -> usize {
        self.running
    }

    /// Keys of each module that are ready to be worked on.
    pub fn depths(&self) -> impl Iterator<Item = (&str, usize)> {
        self.lanes.iter().map(|(module, lane)| (&**module, lane.ready.len()))
    }

    /// Whether nothing is ready, running or due by `now`.
    pub fn is_quiet(&self, now: Duration) -> bool {
        self.running == 0
            && self.lanes.values().all(|lane| lane.ready.is_empty())
            && self.next_due(now).is_none_or(|due| due > now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn queue(running: usize, running_per_module: usize) -> Queue {
        Queue::new(Bounds { running, running_per_module }, Backoff::default())
    }

    fn work(module: &str, name: &str) -> Work {
        Work { module: module.into(), key: Key::new("n", name) }
    }

    fn wake(queue: &mut Queue, work: &Work) {
        queue.wake(work, &Cause::Meanwhile);
    }

    /// Takes keys until there are none, each done at once.
    fn drain(queue: &mut Queue, now: Duration) -> Vec<String> {
        std::iter::from_fn(|| {
            let (work, _) = queue.next(now)?;
            queue.done(&work, Done::Ok(None), now, 0.5);
            Some(format!("{}/{}", work.module, work.key.name()))
        })
        .collect()
    }

    #[test]
    fn a_key_waits_once() {
        let mut queue = queue(4, 4);
        for _ in 0..3 {
            wake(&mut queue, &work("m", "a"));
        }
        assert_eq!(drain(&mut queue, SECOND), ["m/a"]);
    }

    #[test]
    fn one_worker_a_key_and_a_wake_during_the_work_runs_it_again() {
        let mut queue = queue(4, 4);
        wake(&mut queue, &work("m", "a"));
        let (first, _) = queue.next(SECOND).unwrap();
        wake(&mut queue, &work("m", "a"));
        wake(&mut queue, &work("m", "a"));
        assert_eq!(queue.next(SECOND), None);
        queue.done(&first, Done::Ok(None), SECOND, 0.5);
        assert_eq!(drain(&mut queue, SECOND), ["m/a"]);
    }

    #[test]
    fn modules_take_turns() {
        let mut queue = queue(1, 1);
        for name in ["a", "b", "c", "d"] {
            wake(&mut queue, &work("busy", name));
        }
        wake(&mut queue, &work("calm", "x"));
        wake(&mut queue, &work("quiet", "y"));
        assert_eq!(
            drain(&mut queue, SECOND),
            ["busy/a", "calm/x", "quiet/y", "busy/b", "busy/c", "busy/d"]
        );
    }

    #[test]
    fn a_module_cannot_take_all_workers() {
        let mut queue = queue(4, 2);
        for name in ["a", "b", "c"] {
            wake(&mut queue, &work("busy", name));
        }
        assert!(queue.next(SECOND).is_some());
        assert!(queue.next(SECOND).is_some());
        assert_eq!(queue.next(SECOND), None);
        wake(&mut queue, &work("calm", "x"));
        assert_eq!(queue.next(SECOND).unwrap().0, work("calm", "x"));
    }

    #[test]
    fn failures_wait_longer_each_time_until_a_success() {
        let mut queue = queue(1, 1);
        let a = work("m", "a");
        wake(&mut queue, &a);
        let mut now = Duration::ZERO;
        let mut delays = Vec::new();
        for _ in 0..10 {
            let (work, _) = queue.next(now).expect("it is due");
            // Jitter 0.5 is the middle of its range, which adds nothing.
            queue.done(&work, Done::Failed, now, 0.5);
            let due = queue.next_due(now).unwrap();
            assert_eq!(queue.next(due.saturating_sub(Duration::from_millis(1))), None);
            delays.push(due.saturating_sub(now).as_secs());
            now = due;
        }
        assert_eq!(delays, [1, 2, 4, 8, 16, 32, 64, 128, 256, 300]);
        let (again, _) = queue.next(now).unwrap();
        queue.done(&again, Done::Ok(None), now, 0.5);
        wake(&mut queue, &a);
        let (again, _) = queue.next(now).unwrap();
        queue.done(&again, Done::Failed, now, 0.5);
        assert_eq!(queue.next_due(now), Some(now + SECOND));
    }

    #[test]
    fn a_module_that_has_written_too_much_waits_and_the_others_do_not() {
        let mut queue = queue(4, 4);
        let noisy: std::sync::Arc<str> = "noisy".into();
        queue.set_rate(&noisy, NonZeroU32::new(1).unwrap());
        let now = Duration::from_mins(1);
        for _ in 0..25 {
            queue.wrote("noisy", now);
        }
        wake(&mut queue, &work("noisy", "a"));
        wake(&mut queue, &work("calm", "x"));
        assert_eq!(drain(&mut queue, now), ["calm/x"]);
        assert_eq!(queue.next_due(now), Some(now + SECOND * 5));
        assert!(!queue.is_quiet(now), "a change is not worked on for longer, not forgotten");
        assert_eq!(drain(&mut queue, now + SECOND * 5), ["noisy/a"]);
    }

    #[test]
    fn a_change_does_not_wait_for_the_backoff() {
        let mut queue = queue(1, 1);
        wake(&mut queue, &work("m", "a"));
        let (first, _) = queue.next(SECOND).unwrap();
        queue.done(&first, Done::Failed, SECOND, 0.5);
        assert_eq!(queue.next(SECOND), None);
        wake(&mut queue, &work("m", "a"));
        assert_eq!(queue.next(SECOND).unwrap().0, work("m", "a"));
        assert_eq!(queue.next_due(SECOND), None);
    }

    #[test]
    fn a_stuck_key_waits_for_a_change() {
        let mut queue = queue(1, 1);
        wake(&mut queue, &work("m", "a"));
        let (first, _) = queue.next(SECOND).unwrap();
        queue.done(&first, Done::Stuck(None), SECOND, 0.5);
        assert_eq!((queue.next(SECOND * 10_000), queue.next_due(SECOND)), (None, None));
        wake(&mut queue, &work("m", "a"));
        assert!(queue.next(SECOND).is_some());
    }

    #[test]
    fn the_earlier_of_two_times_counts() {
        let mut queue = queue(1, 1);
        queue.wake_at(&work("m", "a"), SECOND * 9);
        queue.wake_at(&work("m", "a"), SECOND * 3);
        queue.wake_at(&work("m", "a"), SECOND * 6);
        assert_eq!(queue.next_due(SECOND), Some(SECOND * 3));
        assert_eq!(drain(&mut queue, SECOND * 3), ["m/a"]);
        assert!(queue.is_quiet(SECOND * 100));
    }

    #[test]
    fn a_closed_queue_gives_out_nothing_and_lets_work_finish() {
        let mut queue = queue(2, 2);
        wake(&mut queue, &work("m", "a"));
        wake(&mut queue, &work("m", "b"));
        let (first, _) = queue.next(SECOND).unwrap();
        queue.close();
        assert_eq!(queue.next(SECOND), None);
        assert_eq!(queue.running(), 1);
        queue.done(&first, Done::Ok(None), SECOND, 0.5);
        assert_eq!(queue.running(), 0);
    }

    #[test]
    fn a_forgotten_module_leaves_nothing_behind() {
        let mut queue = queue(2, 2);
        wake(&mut queue, &work("m", "a"));
        wake(&mut queue, &work("m", "b"));
        queue.wake_at(&work("m", "c"), SECOND);
        let (first, _) = queue.next(Duration::ZERO).unwrap();
        queue.forget_module("m");
        queue.done(&first, Done::Failed, Duration::ZERO, 0.5);
        queue.forget_module("m");
        assert_eq!(queue.next(SECOND * 100), None);
        assert_eq!(queue.next_due(SECOND), None);
    }

    #[test]
    fn whoever_gets_a_key_learns_what_has_woken_it_since_the_last_time() {
        let mut queue = queue(1, 1);
        let a = work("m", "a");
        let next = |queue: &mut Queue, now| queue.next(now).unwrap().1.to_string();
        queue.wake(&a, &Cause::Serves);
        queue.wake(&a, &Cause::Meanwhile);
        assert_eq!(next(&mut queue, SECOND), "its module serves, and 1 more");
        // A wake during the work is why it is worked on once more.
        queue.wake(&a, &Cause::Meanwhile);
        queue.done(&a, Done::Ok(None), SECOND, 0.5);
        assert_eq!(next(&mut queue, SECOND), "what it read changed meanwhile");
        queue.done(&a, Done::Ok(Some(SECOND)), SECOND, 0.5);
        assert_eq!(next(&mut queue, SECOND * 2), "its time has come");
        queue.done(&a, Done::Failed, SECOND * 2, 0.5);
        assert_eq!(next(&mut queue, SECOND * 3), "again after a failure");
    }
}
