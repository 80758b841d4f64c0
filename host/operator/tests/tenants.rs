//! How long a quiet namespace waits when another one of its module is noisy: the queue, with
//! workers whose runs take a given time, on virtual time.

#![allow(clippy::unwrap_used, reason = "a test may fail by it")]

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use innkeeper_contract::Kind;
use innkeeper_core::{ObjectKey, ObjectRef};
use innkeeper_operator::queue::backoff::Backoff;
use innkeeper_operator::queue::trigger::{ChangeKind, Trigger};
use innkeeper_operator::queue::{Bounds, Queue, ReconcileRequest, ReconcileResult};

/// How long a run takes: 3,000 of them on five workers take 27 s.
const RUN: Duration = Duration::from_millis(46);
/// The longest wait of a quiet namespace.
const SOON: Duration = Duration::from_secs(1);
/// When the quiet namespace changes its primary.
const LATER: Duration = Duration::from_secs(10);

/// Workers on virtual time.
struct Host {
    queue: Queue,
    now: Duration,
    running: BTreeSet<(Duration, ReconcileRequest)>,
    /// When each key had its first turn.
    first: BTreeMap<ReconcileRequest, Duration>,
    /// How the runs of the noisy namespaces end.
    noisy: Noise,
}

#[derive(Clone, Copy)]
enum Noise {
    /// They succeed.
    Calm,
    /// They succeed, and the primary changes again at once.
    Flips,
    /// They fail.
    Fails,
    /// They succeed, and are to be run again after a second.
    Resyncs,
    /// Each takes ten seconds.
    Slow,
}

impl Host {
    fn new(noisy: Noise) -> Self {
        let bounds = Bounds { running: 8, running_per_module: 6, running_per_tenant: 5 };
        let queue = Queue::new(bounds, Backoff::default());
        let (running, first) = (BTreeSet::new(), BTreeMap::new());
        Self { queue, now: Duration::ZERO, running, first, noisy }
    }

    /// Works on keys until then.
    fn run_until(&mut self, until: Duration) {
        loop {
            while let Some((request, _)) = self.queue.next(self.now) {
                self.first.entry(request.clone()).or_insert(self.now);
                let is_slow = matches!(self.noisy, Noise::Slow) && is_noisy(&request);
                let time = if is_slow { Duration::from_secs(10) } else { RUN };
                self.running.insert((self.now + time, request));
            }
            let end = self.running.first().map(|(end, _)| *end);
            let due = self.queue.next_due(self.now).filter(|due| *due > self.now);
            match end.into_iter().chain(due).min().filter(|next| *next <= until) {
                Some(next) => self.now = next,
                None => break,
            }
            while self.running.first().is_some_and(|(end, _)| *end <= self.now) {
                let (_, request) = self.running.pop_first().unwrap();
                self.end(&request);
            }
        }
        self.now = until;
    }

    fn end(&mut self, request: &ReconcileRequest) {
        let done = match self.noisy {
            Noise::Fails if is_noisy(request) => ReconcileResult::Failed,
            Noise::Resyncs if is_noisy(request) => {
                ReconcileResult::Ok(Some(Duration::from_secs(1)))
            }
            Noise::Flips if is_noisy(request) => {
                self.queue.wake(request, &changed(request));
                ReconcileResult::Ok(None)
            }
            _ => ReconcileResult::Ok(None),
        };
        self.queue.done(request, done, self.now, 0.5);
    }

    fn change(&mut self, request: &ReconcileRequest) {
        self.queue.wake(request, &changed(request));
    }

    fn flood(&mut self, namespace: &str, count: usize) {
        for number in 0..count {
            self.change(&primary(namespace, number));
        }
    }

    /// How long a change of a primary waits for its first turn.
    fn wait_of(&mut self, request: &ReconcileRequest) -> Duration {
        self.run_until(LATER);
        self.first.remove(request);
        let began = self.now;
        self.change(request);
        self.run_until(began + Duration::from_mins(1));
        self.first.get(request).map_or(Duration::MAX, |first| first.saturating_sub(began))
    }
}

fn is_noisy(request: &ReconcileRequest) -> bool {
    request.key.namespace().starts_with("noisy")
}

fn primary(namespace: &str, number: usize) -> ReconcileRequest {
    ReconcileRequest {
        module: "m".into(),
        key: ObjectKey::new(namespace, &format!("p{number:04}")),
    }
}

fn changed(request: &ReconcileRequest) -> Trigger {
    let kind = Arc::new(Kind::namespaced("example.com/v1", "Primary", "primaries"));
    Trigger::Object {
        object: ObjectRef::new(kind, request.key.clone()),
        change_kind: ChangeKind::Changed,
    }
}

#[test]
fn primary_runs_soon_when_another_namespace_has_three_thousand_new_ones() {
    let mut host = Host::new(Noise::Calm);
    host.flood("noisy", 3_000);
    let wait = host.wait_of(&primary("quiet", 0));
    assert!(wait < SOON, "{wait:?}");
    let last = host.first.values().max().unwrap();
    assert!(*last > Duration::from_secs(20), "the flood ended too early to delay anything");
}

#[test]
fn primary_runs_soon_when_three_thousand_others_change_forever() {
    let mut host = Host::new(Noise::Flips);
    host.flood("noisy", 3_000);
    let wait = host.wait_of(&primary("quiet", 0));
    assert!(wait < SOON, "{wait:?}");
}

#[test]
fn primary_runs_soon_when_three_thousand_others_fail() {
    let mut host = Host::new(Noise::Fails);
    host.flood("noisy", 3_000);
    let wait = host.wait_of(&primary("quiet", 0));
    assert!(wait < SOON, "{wait:?}");
}

#[test]
fn primary_runs_soon_when_three_thousand_others_resync_each_second() {
    let mut host = Host::new(Noise::Resyncs);
    host.flood("noisy", 3_000);
    let wait = host.wait_of(&primary("quiet", 0));
    assert!(wait < SOON, "{wait:?}");
}

#[test]
fn changed_primary_runs_soon_when_its_own_namespace_resyncs() {
    let mut host = Host::new(Noise::Resyncs);
    host.flood("noisy", 3_000);
    // By then each has run for its change, and all wait for their resyncs.
    host.run_until(Duration::from_mins(1));
    let began = host.now;
    let fresh = primary("noisy", 9_999);
    host.change(&fresh);
    host.run_until(began + Duration::from_secs(30));
    assert!(host.first[&fresh] < began + SOON);
}

#[test]
fn primary_runs_soon_among_a_thousand_namespaces_when_one_floods() {
    let mut host = Host::new(Noise::Flips);
    host.flood("noisy", 3_000);
    for number in 0..1_000 {
        host.flood(&format!("noisy-{number:04}"), 1);
    }
    let wait = host.wait_of(&primary("quiet", 0));
    assert!(wait < SOON, "{wait:?}");
}

#[test]
fn primary_runs_soon_when_other_runs_take_ten_seconds() {
    let mut host = Host::new(Noise::Slow);
    host.flood("noisy", 3_000);
    let wait = host.wait_of(&primary("quiet", 0));
    assert!(wait < SOON, "{wait:?}");
}

#[test]
fn a_primary_runs_soon_when_all_primaries_are_run_for_a_new_version() {
    let mut host = Host::new(Noise::Calm);
    for number in 0..3_000 {
        host.queue.wake(&primary("noisy", number), &Trigger::RevisionActive);
        host.queue.wake(&primary("quiet", number), &Trigger::RevisionActive);
    }
    let wait = host.wait_of(&primary("quiet", 2_999));
    assert!(wait < SOON, "{wait:?}");
}

#[test]
fn noisy_namespace_has_its_turns_among_a_thousand_busy_ones() {
    let mut host = Host::new(Noise::Flips);
    for number in 0..1_000 {
        host.flood(&format!("noisy-{number:04}"), 3);
    }
    host.flood("noisy", 3_000);
    host.run_until(Duration::from_mins(1));
    let of_noisy = host.first.keys().filter(|request| request.key.namespace() == "noisy").count();
    // 1,001 namespaces take turns: in a minute some 7,800 runs, so each has seven or eight.
    assert!((6..=9).contains(&of_noisy), "{of_noisy}");
}

#[test]
fn resync_runs_when_three_thousand_others_change_forever() {
    let mut host = Host::new(Noise::Flips);
    host.flood("noisy", 3_000);
    host.run_until(LATER);
    let quiet = primary("quiet", 0);
    host.queue.wake_at(&quiet, LATER + Duration::from_secs(1));
    host.run_until(LATER + Duration::from_secs(30));
    assert!(host.first[&quiet] < LATER + Duration::from_secs(2), "{:?}", host.first[&quiet]);
}
