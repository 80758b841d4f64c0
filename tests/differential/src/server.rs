//! What the two servers, a real one and the simulator, have in common, and the simulator as one.

use bytes::Bytes;
use http::{Request, header};
use innkeeper_simulator::Simulator;
use jiff::Timestamp;
use serde_json::Value;

/// Whatever goes wrong with the connection.
pub type Failure = Box<dyn std::error::Error + Send + Sync>;

/// What a server answered.
#[derive(Clone, Debug, PartialEq)]
pub struct Reply {
    /// The HTTP status.
    pub code: u16,
    /// The document, or the text.
    pub body: Value,
    /// Its warnings, as in the headers.
    pub warnings: Vec<String>,
}

impl Reply {
    /// The latest time that the document tells of a write: when it was answered, to the second.
    pub fn latest(&self) -> Option<Timestamp> {
        let metadata = &self.body["metadata"];
        let entries = metadata["managedFields"].as_array().into_iter().flatten();
        let times = entries.map(|entry| &entry["time"]).chain([&metadata["creationTimestamp"]]);
        times.filter_map(|time| time.as_str()?.parse().ok()).max()
    }

    pub(crate) fn read(head: &http::response::Parts, bytes: &[u8]) -> Self {
        let warnings = head.headers.get_all(header::WARNING).iter();
        let warnings = warnings.filter_map(|value| value.to_str().ok()).map(str::to_owned);
        let text = String::from_utf8_lossy(bytes);
        let body = serde_json::from_slice(bytes).unwrap_or_else(|_| {
            // A watch is a line for each event.
            let lines: Result<Vec<Value>, _> = text.lines().map(serde_json::from_str).collect();
            lines.map_or_else(|_| Value::from(text.as_ref()), Value::from)
        });
        Self { code: head.status.as_u16(), body, warnings: warnings.collect() }
    }
}

/// Which controllers a case waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// Nothing works by itself but who decides what roles allow.
    Roles,
    /// Objects that lose their owners.
    Owners,
    /// Namespaces too, which the real controller leaves alone for five seconds.
    Namespaces,
}

/// Something that answers requests.
pub trait Server {
    /// One request.
    ///
    /// # Errors
    /// If there is no answer at all.
    fn send(&self, request: Request<Bytes>) -> Result<Reply, Failure>;

    /// A watch, until an event in whose text this stands, or its end. By default all events that
    /// there are.
    ///
    /// # Errors
    /// If there is no answer at all.
    fn send_until(&self, request: Request<Bytes>, _until: &str) -> Result<Reply, Failure> {
        self.send(request)
    }

    /// Waits until those who read a collection in no certain version find what was written to it.
    ///
    /// # Errors
    /// If there is no answer at all.
    fn refresh(&self, _collection: &str) -> Result<(), Failure> {
        Ok(())
    }

    /// Brings its clock to this time, if it has one of its own and is behind.
    fn reach(&self, _time: Timestamp) {}

    /// Waits until what was written shows to all who read, at this path in this version, if it does
    /// not at once.
    ///
    /// # Errors
    /// If there is no answer at all.
    fn catch_up(&self, _path: &str, _version: &str) -> Result<(), Failure> {
        Ok(())
    }

    /// Lets its controllers work, if they do so only on request; else waits until they have worked
    /// on what was written before.
    ///
    /// # Errors
    /// If they do not in time.
    fn settle(&self, wait: Wait) -> Result<(), Failure>;
}

impl Server for Simulator {
    fn send(&self, request: Request<Bytes>) -> Result<Reply, Failure> {
        let response = self.request(request);
        let (head, mut body) = response.into_parts();
        let parts: Vec<Bytes> = std::iter::from_fn(|| body.try_next()).collect();
        Ok(Reply::read(&head, &parts.concat()))
    }

    fn settle(&self, _: Wait) -> Result<(), Failure> {
        Simulator::settle(self);
        Ok(())
    }

    fn reach(&self, time: Timestamp) {
        let ahead = time.duration_since(self.now());
        if ahead.is_positive() {
            self.advance(ahead);
        }
    }
}
