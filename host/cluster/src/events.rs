//! Events (`events.k8s.io/v1`): what happened to an object, for `kubectl describe`.
//!
//! An Event is written when something begins to be so. While it stays so it is counted, not
//! written again: each Event costs a request and a place in the server's store.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use innkeeper_contract::{Event, EventType, Kind};
use innkeeper_core::{Key, Object, foreign};
use serde_json::json;
use tokio::time::Instant;

use crate::{ApiError, Env, Session};

/// An Event that comes again within this time after the last time is counted, not written.
pub const QUIET: Duration = Duration::from_mins(30);

/// How many different Events are remembered; the oldest are forgotten first.
pub const REMEMBERED_MAX: usize = 4096;

/// How many Events about one object are written at once; then one each [`SPARE`]. The rule of
/// Kubernetes' own recorder, so that one object cannot fill the server's store.
pub const AT_ONCE_MAX: u32 = 25;

/// After which time one more may be written about an object that has had [`AT_ONCE_MAX`].
pub const SPARE: Duration = Duration::from_mins(5);

/// The longest note, in bytes: Kubernetes' limit.
pub const NOTE_BYTES_MAX: usize = 1024;

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
    pub key: &'a Key,
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
    seen: Mutex<Remembered>,
}

/// Uid, reason and note.
type Signature = (Box<str>, Box<str>, Box<str>);

#[derive(Debug, Default)]
struct Remembered {
    last: BTreeMap<Signature, (Instant, u32)>,
    /// In the order in which they were written first.
    order: VecDeque<Signature>,
    /// By uid: what was written about an object.
    spent: BTreeMap<Box<str>, Spent>,
    /// How many of these there may be before those that no longer count are dropped.
    sweep_at: usize,
}

/// How many Events an object has had, as far as they still count.
#[derive(Debug)]
struct Spent {
    count: u32,
    /// From here on, one of them counts no longer after each [`SPARE`].
    since: Instant,
}

impl Spent {
    /// How many still count.
    fn left(&mut self, now: Instant) -> u32 {
        while self.count > 0 && now.saturating_duration_since(self.since) >= SPARE {
            self.count -= 1;
            self.since += SPARE;
        }
        self.count
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

    /// Writes an Event as the session's identity, unless the same was written about the
    /// same object not long ago. `action` says what the host was doing (`Reconcile`).
    ///
    /// It goes into the object's namespace, `default` for a cluster-scoped one. An Event that
    /// could not be written is forgotten, so that the next time tries again.
    pub async fn publish(
        &self,
        session: &Session,
        regarding: &Regarding<'_>,
        action: &str,
        event: &Event,
    ) -> Result<Published, ApiError> {
        let signature: Signature =
            (regarding.uid.into(), event.reason.as_str().into(), event.message.as_str().into());
        if let Some(count) = self.count(&signature) {
            return Ok(Published::Counted(count));
        }
        if !self.spend(regarding.uid) {
            self.forget(&signature);
            return Ok(Published::TooMany);
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
        let written = session.create(&kind, namespace, &body).await;
        if written.is_err() {
            self.forget(&signature);
        }
        written.map(|()| Published::Written)
    }

    /// Counts an Event that was written not long ago; else remembers it, and gives `None`.
    fn count(&self, signature: &Signature) -> Option<u32> {
        let now = self.env.instant();
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((last, count)) = seen.last.get_mut(signature) {
            let recent = now.saturating_duration_since(*last) < QUIET;
            *last = now;
            *count = if recent { *count + 1 } else { 0 };
            return recent.then_some(*count);
        }
        seen.last.insert(signature.clone(), (now, 0));
        seen.order.push_back(signature.clone());
        while seen.order.len() > REMEMBERED_MAX
            && let Some(oldest) = seen.order.pop_front()
        {
            seen.last.remove(&oldest);
        }
        None
    }

    /// Whether one more may be written about an object; counts it.
    fn spend(&self, uid: &str) -> bool {
        let now = self.env.instant();
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if seen.spent.len() >= seen.sweep_at.max(REMEMBERED_MAX) {
            seen.spent.retain(|_, spent| spent.left(now) > 0);
            seen.sweep_at = 2 * seen.spent.len();
        }
        let spent = seen.spent.entry(uid.into()).or_insert(Spent { count: 0, since: now });
        if spent.left(now) >= AT_ONCE_MAX {
            return false;
        }
        if spent.count == 0 {
            spent.since = now;
        }
        spent.count += 1;
        true
    }

    fn forget(&self, signature: &Signature) {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.last.remove(signature);
        seen.order.retain(|other| other != signature);
    }
}

fn cut(text: &str, bytes: usize) -> &str {
    &text[..text.floor_char_boundary(bytes)]
}
