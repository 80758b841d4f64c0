//! Watches: the events that each client still has to read.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Waker;

use bytes::Bytes;
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::state::store::{ChangeType, Event};
use crate::types::crd::conversion;
use crate::types::kind::Kind;
use crate::types::object::partial;
use crate::types::object_key::KindKey;
use crate::types::selector::Selector;

/// Lines on their way to one client.
#[derive(Clone, Debug, Default)]
pub(crate) struct Feed {
    inner: Arc<Mutex<Lines>>,
    /// Converts each line for the client.
    form: Option<fn(&Bytes) -> Bytes>,
}

/// How much may wait for the client of a watch after its beginning, in bytes.
const WAITING_BYTES_MAX: usize = 16 << 20;

#[derive(Debug, Default)]
struct Lines {
    waiting: VecDeque<Bytes>,
    /// The size of `waiting`, and its limit if there is one.
    bytes: usize,
    bytes_max: Option<usize>,
    ended: bool,
    waker: Option<Waker>,
}

/// The next element of a stream.
pub(crate) enum Next {
    Line(Bytes),
    End,
    Nothing,
}

impl Feed {
    fn lock(&self) -> std::sync::MutexGuard<'_, Lines> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends the client a line.
    pub(crate) fn send(&self, line: Bytes) {
        let mut lines = self.lock();
        if lines.ended {
            return;
        }
        lines.bytes += line.len();
        lines.waiting.push_back(line);
        if lines.bytes_max.is_some_and(|max| lines.bytes > max) {
            // As an API server does with a watch whose client does not read.
            (lines.waiting, lines.bytes, lines.ended) = (VecDeque::new(), 0, true);
        }
        let waker = lines.waker.take();
        drop(lines);
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Limits what may wait for the client in addition to what waits now.
    pub(crate) fn limit(&self) {
        let mut lines = self.lock();
        lines.bytes_max = Some(lines.bytes + WAITING_BYTES_MAX);
    }

    /// Ends the stream.
    pub(crate) fn end(&self) {
        let mut lines = self.lock();
        lines.ended = true;
        let waker = lines.waker.take();
        drop(lines);
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// The next line. If there is none, `waker` is woken when one arrives.
    pub(crate) fn next(&self, waker: Option<&Waker>) -> Next {
        let mut lines = self.lock();
        if let Some(line) = lines.waiting.pop_front() {
            lines.bytes -= line.len();
            return Next::Line(self.form.map_or_else(|| line.clone(), |form| form(&line)));
        }
        if lines.ended {
            return Next::End;
        }
        lines.waker = waker.cloned();
        Next::Nothing
    }

    /// The same lines in another form.
    pub(crate) fn in_form(self, form: fn(&Bytes) -> Bytes) -> Self {
        Self { form: Some(form), ..self }
    }

    /// Whether the client has closed the stream.
    fn is_deserted(&self) -> bool {
        Arc::strong_count(&self.inner) == 1
    }
}

/// Makes a table of one object at a point in time.
pub(crate) type RowTable = Box<dyn Fn(Value, Timestamp) -> Value + Send>;

/// The form of the objects in events.
pub(crate) enum ObjectForm {
    Plain,
    /// Their metadata, in this API version.
    Metadata(&'static str),
    /// As tables of one row, by this function.
    Table(RowTable),
}

impl fmt::Debug for ObjectForm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Plain => "Plain",
            Self::Metadata(_) => "Metadata",
            Self::Table(_) => "Table",
        })
    }
}

/// One watch.
#[derive(Debug)]
pub(crate) struct Watcher {
    pub(crate) kind: KindKey,
    /// Empty for all namespaces.
    pub(crate) namespace: String,
    /// The version after which it begins; events up to it are not sent, as by the watch cache of a
    /// real server. It can be in the future after a restored backup.
    pub(crate) since: u64,
    pub(crate) selector: Selector,
    /// An empty object of the kind.
    pub(crate) blank: Arc<Value>,
    pub(crate) bookmarks: bool,
    pub(crate) ends: Timestamp,
    pub(crate) next_bookmark: Timestamp,
    pub(crate) shown: ObjectForm,
    /// The kind in the version that is watched, if it has others.
    pub(crate) version: Option<Arc<Kind>>,
    pub(crate) feed: Feed,
}

impl Watcher {
    /// Whether the client has closed the stream.
    pub(crate) fn is_gone(&self) -> bool {
        self.feed.is_deserted()
    }

    /// An object in the requested form.
    fn form(&self, object: Value, now: Timestamp) -> Bytes {
        let value = match &self.shown {
            ObjectForm::Plain => object,
            ObjectForm::Metadata(version) => partial(&object, version),
            ObjectForm::Table(row) => row(object, now),
        };
        Bytes::from(value.to_string())
    }

    /// Sends an event, if the watch selects its object.
    pub(crate) fn tell(&self, event: &Event, now: Timestamp) {
        if !self.namespace.is_empty() && event.key.0 != self.namespace {
            return;
        }
        if event.version <= self.since {
            return;
        }
        let as_stored = self.version.is_none() && matches!(self.shown, ObjectForm::Plain);
        if self.selector.is_all() && as_stored {
            let kind = match event.change {
                ChangeType::Added => "ADDED",
                ChangeType::Modified => "MODIFIED",
                ChangeType::Deleted => "DELETED",
            };
            self.feed.send(line(kind, &event.text));
            return;
        }
        let parse = |text: &Bytes| {
            let mut object = serde_json::from_slice::<Value>(text).unwrap_or_default();
            if let Some(kind) = &self.version {
                conversion::convert(kind, &mut object);
            }
            object
        };
        let mut object = parse(&event.text);
        let fits = event.change != ChangeType::Deleted && self.selector.fits(&object);
        let fitted = event.before.as_ref().map(parse).filter(|before| self.selector.fits(before));
        let kind = match (fitted.is_some(), fits) {
            (false, false) => return,
            (false, true) => "ADDED",
            (true, true) => "MODIFIED",
            (true, false) => "DELETED",
        };
        if kind == "DELETED"
            && event.change != ChangeType::Deleted
            && let Some(before) = fitted
        {
            // The last matching object, at the version at which it stopped matching.
            object = before;
            object["metadata"]["resourceVersion"] = event.version.to_string().into();
        }
        self.feed.send(line(kind, &self.form(object, now)));
    }

    /// Sends an existing object as `ADDED`.
    pub(crate) fn show(&self, text: &Bytes, now: Timestamp) {
        if matches!(self.shown, ObjectForm::Plain) {
            self.feed.send(line("ADDED", text));
        } else {
            let object: Value = serde_json::from_slice(text).unwrap_or_default();
            self.feed.send(line("ADDED", &self.form(object, now)));
        }
    }

    /// Sends a bookmark: all events up to this version have been sent. A table has it as its row.
    pub(crate) fn bookmark(&self, version: u64, initial: bool, now: Timestamp) {
        let mut metadata = json!({ "resourceVersion": version.to_string() });
        if initial {
            metadata["annotations"] = json!({ "k8s.io/initial-events-end": "true" });
        }
        let mut object = match self.shown {
            ObjectForm::Metadata(version) => {
                json!({"kind": "PartialObjectMetadata", "apiVersion": version})
            }
            _ => Value::clone(&self.blank),
        };
        object["metadata"] = metadata;
        let shown = match self.shown {
            ObjectForm::Table(_) => self.form(object, now),
            _ => Bytes::from(object.to_string()),
        };
        self.feed.send(line("BOOKMARK", &shown));
    }

    /// Sends the error that the watch begins too far in the past, and ends it.
    pub(crate) fn expire(&self, status: &Value) {
        self.feed.send(line("ERROR", &Bytes::from(status.to_string())));
        self.feed.end();
    }
}

fn line(kind: &str, object: &Bytes) -> Bytes {
    let mut text = Vec::with_capacity(object.len() + 40);
    text.extend_from_slice(format!("{{\"type\":\"{kind}\",\"object\":").as_bytes());
    text.extend_from_slice(object);
    text.extend_from_slice(b"}\n");
    Bytes::from(text)
}
