//! Events (`events.k8s.io/v1`) about objects, for `kubectl describe`.
//!
//! The host writes an Event when a state begins. While the state lasts the host counts the Event
//! instead of writing it again: each Event costs a request and space in the server's store.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use innkeeper_contract::{Event, EventType, Kind};
use innkeeper_core::{Object, ObjectKey, foreign, guest_status};
use serde_json::json;
use sha2::{Digest as _, Sha256};
use tokio::time::Instant;

use crate::{ApiClient, ApiError, Env};

/// The host counts an Event, and does not write it, within this time after its last occurrence.
pub const EVENT_DEDUP: Duration = Duration::from_mins(30);

/// The most different Events of one reporter about one object in memory; the oldest go first. More
/// than [`BURST`] and the refills within [`EVENT_DEDUP`].
pub const REMEMBERED_MAX: usize = 64;

/// The number of objects in memory at which the host removes those without a recent Event.
const OBJECTS_BEFORE_SWEEP: usize = 4096;

/// The bytes of the SHA-256 of an Event that the host keeps: a guest chooses the texts, which may
/// be long.
const HASH_BYTES: usize = 16;

/// How many Events about one object the host writes at once; then one per [`REFILL`]. Kubernetes'
/// own recorder has this rule, so that one object cannot fill the server's store.
pub const BURST: u32 = 25;

/// The time after which the host may write one more Event about an object that has had [`BURST`].
pub const REFILL: Duration = Duration::from_mins(5);

/// The longest note, in bytes: Kubernetes' limit.
pub const NOTE_BYTES_MAX: usize = guest_status::NOTE_BYTES_MAX;

/// The longest reason and action, in bytes: Kubernetes' limit.
const REASON_BYTES_MAX: usize = 128;

/// The reporting controller, as `kubectl describe` shows it.
const CONTROLLER: &str = "innkeeper.dev/host";

/// The object of an Event.
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
    /// The reference to an object.
    pub fn object(kind: &'a Kind, object: &'a Object) -> Self {
        Self { kind, key: &object.key, uid: &object.uid }
    }
}

/// The result of a publication.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Published {
    /// The host wrote the Event.
    Written,
    /// The host wrote the Event recently, and has counted it so many times since.
    Counted(u32),
    /// The host dropped the Event: there were too many about this object.
    TooMany,
}

/// The writer of Events, which writes each once.
#[derive(Debug)]
pub struct Events {
    env: Env,
    /// The reporting instance: the name of the host or of its pod.
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
    // Two Events with the same written parts are the same.
    let note = cut(&event.message, NOTE_BYTES_MAX);
    for part in [type_, cut(&event.reason, REASON_BYTES_MAX), note] {
        hash.update(part);
        hash.update([0]);
    }
    let mut signature = [0; HASH_BYTES];
    signature.copy_from_slice(&hash.finalize()[..HASH_BYTES]);
    signature
}

/// The Events in memory, by reporter and by the uid of the object.
#[derive(Debug, Default)]
struct EventHistory {
    reporters: BTreeMap<Box<str>, BTreeMap<Box<str>, ObjectEvents>>,
    /// The number of objects at which the next sweep runs.
    sweep_at: usize,
}

/// The Events of one reporter about one object.
#[derive(Debug)]
struct ObjectEvents {
    /// The last occurrence of each Event, and the count since its write.
    last: BTreeMap<Signature, (Instant, u32)>,
    spent: Budget,
}

impl ObjectEvents {
    /// Whether an Event is recent, or still counts against the limit.
    fn counts(&mut self, now: Instant) -> bool {
        self.last.retain(|_, (last, _)| is_recent(*last, now));
        !self.last.is_empty() || self.spent.left(now) > 0
    }

    /// Removes the oldest Events beyond [`REMEMBERED_MAX`].
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

    /// The Events about an object; empty for a new one.
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

/// The Events of an object that still count against [`BURST`].
#[derive(Debug)]
struct Budget {
    count: u32,
    /// From this time on, the count falls by one per [`REFILL`].
    since: Instant,
}

impl Budget {
    /// The count.
    fn left(&mut self, now: Instant) -> u32 {
        while self.count > 0 && now.saturating_duration_since(self.since) >= REFILL {
            self.count -= 1;
            self.since += REFILL;
        }
        self.count
    }

    /// Adds an Event to the count, unless the limit is reached; whether it did.
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

/// A message without invisible characters, within the limit.
fn note(message: &str) -> String {
    cut(&foreign::message(message, NOTE_BYTES_MAX), NOTE_BYTES_MAX).to_owned()
}

impl Events {
    /// Makes a writer. `instance` is the name of the pod or of the machine.
    pub fn new(env: Env, instance: &str) -> Self {
        Self { env, instance: instance.to_owned(), seen: Mutex::default() }
    }

    /// Writes an Event with the client's identity, unless the same reporter recently wrote the same
    /// Event about the same object. `reporter` is the module, so that no module uses up the limit
    /// of another; `action` is the action of the host (`Reconcile`).
    ///
    /// The Event is in the object's namespace, in `default` for a cluster-scoped object. The host
    /// forgets an Event whose write failed, so the next occurrence writes it.
    ///
    /// # Errors
    /// The error of the write.
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

    /// Forgets the Events of a reporter about an object, after its deletion.
    pub fn forget(&self, reporter: &str, uid: &str) {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(objects) = seen.reporters.get_mut(reporter) {
            objects.remove(uid);
            if objects.is_empty() {
                seen.reporters.remove(reporter);
            }
        }
    }

    /// Forgets all Events of a reporter, after the deletion of its module.
    pub fn forget_reporter(&self, reporter: &str) {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.reporters.remove(reporter);
    }

    /// The number of objects with Events in memory, over all reporters.
    pub fn remembered_objects(&self) -> usize {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).objects()
    }

    /// Records an Event: `None` if the caller has to write it, otherwise the result.
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
