//! The changes of the objects that a plan names, as the API server has them.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use bytes::BytesMut;
use http_body::Body as _;
use serde_json::Value;

use crate::body::AnswerBody;
use crate::sieve::resource_key::ResourceKey;

/// The maximum number of objects whose state is kept.
const OBJECTS_MAX: usize = 10_000;
/// The maximum length of an event in bytes.
const LINE_BYTES_MAX: usize = 8 * 1024 * 1024;

/// A change of an object.
#[derive(Debug)]
pub(crate) struct Change {
    pub(crate) key: ResourceKey,
    /// The version that it led to.
    pub(crate) version: u64,
    pub(crate) previous: Option<Value>,
    pub(crate) current: Option<Value>,
}

/// The watches of the kinds of a plan, and the states of the objects that it names.
pub(crate) struct Changes {
    keys: Vec<ResourceKey>,
    watches: BTreeMap<String, KindWatch>,
    states: BTreeMap<ResourceKey, Value>,
}

#[derive(Default)]
struct KindWatch {
    /// `None` where it has to be opened.
    body: Option<AnswerBody>,
    partial: BytesMut,
    /// The version of the last event.
    version: Option<String>,
}

impl Changes {
    /// Watches for the objects that these keys name.
    pub(crate) fn new(keys: Vec<ResourceKey>) -> Self {
        let watches = keys.iter().map(|key| (key.kind.clone(), KindWatch::default())).collect();
        Self { keys, watches, states: BTreeMap::new() }
    }

    /// Whether the plan names an object of a kind.
    pub(crate) fn has(&self, kind: &str) -> bool {
        self.watches.contains_key(kind)
    }

    /// The kinds whose watches have to be opened, with the version at which each begins; 0 for one
    /// that begins with the present objects.
    pub(crate) fn unwatched(&self) -> Vec<(String, String)> {
        let unwatched = self.watches.iter().filter(|(_, watch)| watch.body.is_none());
        let version = |watch: &KindWatch| watch.version.clone().unwrap_or_else(|| "0".to_owned());
        unwatched.map(|(kind, watch)| (kind.clone(), version(watch))).collect()
    }

    /// Takes the stream of a watch of a kind.
    pub(crate) fn watch(&mut self, kind: &str, body: AnswerBody) {
        if let Some(watch) = self.watches.get_mut(kind) {
            watch.body = Some(body);
        }
    }

    /// The watch of a kind cannot begin at its version.
    pub(crate) fn forget_version(&mut self, kind: &str) {
        if let Some(watch) = self.watches.get_mut(kind) {
            watch.version = None;
        }
    }

    /// The last state of an object that the plan names.
    pub(crate) fn state(&self, key: &ResourceKey) -> Option<&Value> {
        self.states.get(key)
    }

    /// The changes that have come, in the order of their versions.
    pub(crate) fn take(&mut self) -> Vec<Change> {
        let mut events = Vec::new();
        for watch in self.watches.values_mut() {
            watch.read(&mut events);
        }
        let mut changes: Vec<Change> =
            events.into_iter().filter_map(|event| self.change(event)).collect();
        changes.sort_by_key(|change| change.version);
        changes
    }

    /// The change of an object that the plan names.
    fn change(&mut self, mut event: Value) -> Option<Change> {
        let object = event["object"].take();
        let metadata = &object["metadata"];
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let key = ResourceKey::new(
            &text(&object["kind"]),
            &text(&metadata["namespace"]),
            &text(&metadata["name"]),
        );
        let version = metadata["resourceVersion"].as_str()?.parse().ok()?;
        if !self.keys.iter().any(|named| named.names(&key)) {
            return None;
        }
        let previous = self.states.get(&key).cloned();
        if event["type"] == "DELETED" {
            self.states.remove(&key)?;
            return Some(Change { key, version, previous, current: None });
        }
        let is_known = previous.as_ref().is_some_and(|previous| {
            previous["metadata"]["resourceVersion"] == metadata["resourceVersion"]
        });
        let is_full = previous.is_none() && self.states.len() >= OBJECTS_MAX;
        if is_known || is_full || event["type"] == "BOOKMARK" {
            return None;
        }
        self.states.insert(key.clone(), object.clone());
        Some(Change { key, version, previous, current: Some(object) })
    }
}

impl KindWatch {
    /// Adds the events that have come.
    fn read(&mut self, events: &mut Vec<Value>) {
        // Nobody waits for this watch: it is read before each request and event of a client.
        let mut context = Context::from_waker(Waker::noop());
        while let Some(body) = &mut self.body {
            match Pin::new(body).poll_frame(&mut context) {
                Poll::Pending => return,
                Poll::Ready(Some(Ok(frame))) => {
                    if let Ok(data) = frame.into_data() {
                        self.partial.extend_from_slice(&data);
                    }
                }
                Poll::Ready(Some(Err(_)) | None) => self.end(),
            }
            while let Some(end) = self.partial.iter().position(|byte| *byte == b'\n') {
                let line = self.partial.split_to(end + 1);
                let event: Value = serde_json::from_slice(&line).unwrap_or_default();
                match event["object"]["metadata"]["resourceVersion"].as_str() {
                    Some(version) if event["type"] != "ERROR" => {
                        self.version = Some(version.to_owned());
                        events.push(event);
                    }
                    _ => {
                        self.end();
                        self.version = None;
                    }
                }
            }
            if self.partial.len() > LINE_BYTES_MAX {
                self.end();
            }
        }
    }

    fn end(&mut self) {
        self.body = None;
        self.partial.clear();
    }
}
