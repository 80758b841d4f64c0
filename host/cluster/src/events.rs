//! Events (`events.k8s.io/v1`): what happened to an object, for `kubectl describe`.
//!
//! An Event is written when something begins to be so. While it stays so it is counted, not
//! written again: each Event costs a request and a place in the server's store.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use innkeeper_contract::{Event, EventType, Kind};
use innkeeper_core::{Object, ObjectKey, foreign, guest_status};
use serde_json::json;
use sha2::{Digest as _, Sha256};
use tokio::time::Instant;

use crate::{ApiClient, ApiError, Env};

/// An Event that comes again within this time after the last time is counted, not written.
pub const EVENT_DEDUP: Duration = Duration::from_mins(30);

/// How many different Events of one reporter about one object are remembered; the oldest are
/// forgotten first. More than [`BURST`] and what is spared within [`EVENT_DEDUP`].
pub const REMEMBERED_MAX: usize = 64;

/// How many objects may be remembered before those are forgotten about which nothing counts any
/// more.
const OBJECTS_BEFORE_SWEEP: usize = 4096;

/// Bytes kept of the SHA-256 of an Event: its texts may be long, and a guest chooses them.
const HASH_BYTES: usize = 16;

/// How many Events about one object are written at once; then one each [`REFILL`]. The rule of
/// Kubernetes' own recorder, so that one object cannot fill the server's store.
pub const BURST: u32 = 25;

/// After which time one more may be written about an object that has had [`BURST`].
pub const REFILL: Duration = Duration::from_mins(5);

/// The longest note, in bytes: Kubernetes' limit.
pub const NOTE_BYTES_MAX: usize = guest_status::NOTE_BYTES_MAX;

/// The longest reason and action, in bytes: Kubernetes' limit.
const REASON_BYTES_MAX: usize = 128;

/// Who writes the Events, as `kubectl describe` shows it.
const CONTROLLER: &str = "innkeeper.dev/host";

/// What an Event is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Regarding<'a> {
    /// The object's kind.
    pub kind: &'a Kind,
    /// Namespace and name.
    pub key: &'a ObjectKey,
    /// The uid; `kubectl describe` finds Events by it.
    pub uid: &'a str,
}

impl<'a> Regarding<'a> {
    /// About an object.
    pub fn object(kind: &'a Kind, object: &'a Object) -> Self {
        Self { kind, key: &object.key, uid: &object.uid }
    }
}

/// What became of an Event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Published {
    /// It was written.
    Written,
    /// It was written not long ago, and came so many times since.
    Counted(u32),
    /// There were too many about this object; it is dropped.
    TooMany,
}

/// Writes Events, each once.
#[derive(Debug)]
pub struct Events {
    env: Env,
    /// The instance that reports: the host's name or that of its pod.
    instance: String,
    seen: Mutex<EventHistory>,
}

/// The hash of an Event's type, reason and note.
type Signature = [u8; HASH_BYTES];

fn signature(event: &Event) -> Signature {
    let mut hash = Sha256::new();
    let type_ = match event.type_ {
        EventType::Normal => "Normal",
        EventType::Warning => "Warning",
    };
    // What is written of the two texts is what tells Events apart.
    let note = cut(&event.message, NOTE_BYTES_MAX);
    for part in [type_, cut(&event.reason, REASON_BYTES_MAX), note] {
        hash.update(part);
        hash.update([0]);
    }
    let mut signature = [0; HASH_BYTES];
    signature.copy_from_slice(&hash.finalize()[..HASH_BYTES]);
    signature
}

/// What is remembered: of each reporter, by the uid of the object.
#[derive(Debug, Default)]
struct EventHistory {
    reporters: BTreeMap<Box<str>, BTreeMap<Box<str>, ObjectEvents>>,
    /// How many objects there may be before those that no longer count are dropped.
    sweep_at: usize,
}

/// What is remembered of the Events of one reporter about one object.
#[derive(Debug)]
struct ObjectEvents {
    /// When each was heard last, and how often since it was written.
    last: BTreeMap<Signature, (Instant, u32)>,
    spent: Budget,
}

impl ObjectEvents {
    /// Whether it still makes a difference.
    fn counts(&mut self, now: Instant) -> bool {
        self.last.retain(|_, (last, _)| is_recent(*last, now));
        !self.last.is_empty() || self.spent.left(now) > 0
    }

    /// Forgets the oldest, if there are more than [`REMEMBERED_MAX`].
    fn bound(&mut self) {
        while self.last.len() > REMEMBERED_MAX
            && let Some(oldest) =
                self.last.iter().min_by_key(|(_, (last, _))| *last).map(|(hash, _)| *hash)
        {
            self.last.remove(&oldest);
        }
    }
}

impl EventHistory {
    fn objects(&self) -> usize {
        self.reporters.values().map(BTreeMap::len).sum()
    }

    /// What is remembered about an object, made if there is nothing.
    fn object_events(&mut self, reporter: &str, uid: &str, now: Instant) -> &mut ObjectEvents {
        let is_new = self.reporters.get(reporter).is_none_or(|objects| !objects.contains_key(uid));
        if is_new && self.objects() >= self.sweep_at.max(OBJECTS_BEFORE_SWEEP) {
            for objects in self.reporters.values_mut() {
                objects.retain(|_, about| about.counts(now));
            }
            self.reporters.retain(|_, objects| !objects.is_empty());
            self.sweep_at = 2 * self.objects();
        }
        let objects = self.reporters.entry(reporter.into()).or_default();
        let empty =
            || ObjectEvents { last: BTreeMap::new(), spent: Budget { count: 0, since: now } };
        objects.entry(uid.into()).or_insert_with(empty)
    }
}

fn is_recent(last: Instant, now: Instant) -> bool {
    now.saturating_duration_since(last) < EVENT_DEDUP
}

/// How many Events an object has had, as far as they still count.
#[derive(Debug)]
struct Budget {
    count: u32,
    /// From here on, one of them counts no longer after each [`REFILL`].
    since: Instant,
}

impl Budget {
    /// How many still count.
    fn left(&mut self, now: Instant) -> u32 {
        while self.count > 0 && now.saturating_duration_since(self.since) >= REFILL {
            self.count -= 1;
            self.since += REFILL;
        }
        self.count
    }

    /// Whether one more may be written; counts it.
    fn spend(&mut self, now: Instant) -> bool {
        if self.left(now) >= BURST {
            return false;
        }
        if self.count == 0 {
            self.since = now;
        }
        self.count += 1;
        true
    }
}

/// A message that a terminal shows as it is, within the limit.
fn note(message: &str) -> String {
    cut(&foreign::message(message, NOTE_BYTES_MAX), NOTE_BYTES_MAX).to_owned()
}

impl Events {
    /// `instance` tells several hosts apart: the name of the pod or of the machine.
    pub fn new(env: Env, instance: &str) -> Self {
        Self { env, instance: instance.to_owned(), seen: Mutex::default() }
    }

    /// Writes an Event as the session's identity, unless the same reporter wrote the same about the
    /// same object not long ago. `reporter` is the module, so that no module uses up the Events of
    /// another; `action` says what the host was doing (`Reconcile`).
    ///
    /// It goes into the object's namespace, `default` for a cluster-scoped one. An Event that
    /// could not be written is forgotten, so that the next time tries again.
    pub async fn publish(
        &self,
        client: &ApiClient,
        reporter: &str,
        regarding: &Regarding<'_>,
        action: &str,
        event: &Event,
    ) -> Result<Published, ApiError> {
        let signature = signature(event);
        if let Some(without_a_write) = self.note(reporter, regarding.uid, signature) {
            return Ok(without_a_write);
        }
        let kind = Kind::namespaced("events.k8s.io/v1", "Event", "events");
        let namespace = match regarding.key.namespace() {
            "" => "default",
            namespace => namespace,
        };
        // At most 253 bytes: a name is a DNS subdomain.
        let name = cut(regarding.key.name(), 230).trim_end_matches(['.', '-']);
        let body = json!({
            "apiVersion": kind.api_version,
            "kind": kind.kind,
            "metadata": {
                "name": format!("{name}.{:016x}", self.env.random()),
                "namespace": namespace,
            },
            "eventTime": format!("{:.6}", self.env.now()),
            "reportingController": CONTROLLER,
            "reportingInstance": cut(&self.instance, REASON_BYTES_MAX),
            "action": cut(action, REASON_BYTES_MAX),
            "reason": cut(&event.reason, REASON_BYTES_MAX),
            "note": note(&event.message),
            "type": match event.type_ {
                EventType::Normal => "Normal",
                EventType::Warning => "Warning",
            },
            "regarding": {
                "apiVersion": regarding.kind.api_version,
                "kind": regarding.kind.kind,
                "namespace": regarding.key.namespace(),
                "name": regarding.key.name(),
                "uid": regarding.uid,
            },
        });
        let written = client.create(&kind, namespace, &body).await;
        if written.is_err() {
            self.unnote(reporter, regarding.uid, &signature);
        }
        written.map(|()| Published::Written)
    }

    /// Forgets what a reporter wrote about an object: it is gone.
    pub fn forget(&self, reporter: &str, uid: &str) {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(objects) = seen.reporters.get_mut(reporter) {
            objects.remove(uid);
            if objects.is_empty() {
                seen.reporters.remove(reporter);
            }
        }
    }

    /// Forgets all that a reporter wrote: its module is gone.
    pub fn forget_reporter(&self, reporter: &str) {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.reporters.remove(reporter);
    }

    /// How many objects something is remembered about, of all reporters.
    pub fn remembered_objects(&self) -> usize {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).objects()
    }

    /// Notes an Event: `None` if it is to be written; else what became of it.
    fn note(&self, reporter: &str, uid: &str, signature: Signature) -> Option<Published> {
        let now = self.env.instant();
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let about = seen.object_events(reporter, uid, now);
        let known = about.last.get_mut(&signature);
        if let Some((last, count)) = known.filter(|(last, _)| is_recent(*last, now)) {
            (*last, *count) = (now, *count + 1);
            return Some(Published::Counted(*count));
        }
        if !about.spent.spend(now) {
            about.last.remove(&signature);
            return Some(Published::TooMany);
        }
        about.last.insert(signature, (now, 0));
        about.bound();
        None
    }

    fn unnote(&self, reporter: &str, uid: &str, signature: &Signature) {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let objects = seen.reporters.get_mut(reporter);
        if let Some(about) = objects.and_then(|objects| objects.get_mut(uid)) {
            about.last.remove(signature);
        }
    }
}

fn cut(text: &str, bytes: usize) -> &str {
    &text[..text.floor_char_boundary(bytes)]
}
