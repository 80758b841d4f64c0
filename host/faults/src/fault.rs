//! What can go wrong with a request, and with a watch.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What happens to a request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Fault {
    /// The server refuses the request and changes nothing.
    Refuse(Refusal),
    /// The server carries out the request; the connection breaks before the answer.
    LoseAnswer {},
    /// The server never receives the request, and no answer comes.
    Hang {},
    /// The server carries out the request; its answer comes this much later.
    #[serde(rename_all = "camelCase")]
    DelayAnswer {
        /// How much later.
        milliseconds: u64,
    },
    /// The connection breaks, and the server carries out the request this much later.
    #[serde(rename_all = "camelCase")]
    DelayRequest {
        /// How much later.
        milliseconds: u64,
    },
    /// The server carries out the request twice, as after a retry by a proxy; the client gets the
    /// second answer.
    Duplicate {},
    /// The process of the client ends.
    #[serde(rename_all = "camelCase")]
    Crash {
        /// Before or after the server carries out the request.
        point: CrashPoint,
    },
    /// Another client sends a request at this moment; the affected request goes on.
    #[serde(rename = "otherWriter")]
    ConcurrentWriter(ConcurrentWrite),
    /// The request is a watch, and its events come late or not at all.
    Watch(WatchFault),
}

/// When the process of a client ends. To end it after an answer is to end it before its next
/// request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum CrashPoint {
    /// The server never receives the request.
    BeforeRequest,
    /// The server carries out the request; the client does not see the answer.
    BeforeAnswer,
}

/// A refusal by the server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Refusal {
    /// The HTTP status: 403, 409, 422, 429, 500, 503, 504.
    pub code: u16,
    /// After how many seconds the client may try again (header `Retry-After`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after_seconds: Option<u32>,
}

impl Refusal {
    /// Whether the code is that of an error, from 400 to 599.
    pub fn is_error(&self) -> bool {
        (400..=599).contains(&self.code)
    }

    /// The reason of a `Status` with this code, as `k8s.io/apimachinery` defines them.
    pub fn reason(&self) -> &'static str {
        match self.code {
            400 => "BadRequest",
            401 => "Unauthorized",
            403 => "Forbidden",
            404 => "NotFound",
            409 => "Conflict",
            410 => "Expired",
            422 => "Invalid",
            429 => "TooManyRequests",
            503 => "ServiceUnavailable",
            504 => "Timeout",
            _ => "InternalError",
        }
    }
}

/// A request of another client.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "OtherWrite", rename_all = "camelCase", deny_unknown_fields)]
pub struct ConcurrentWrite {
    /// Whether the affected request is carried out first.
    #[serde(default)]
    pub after_request: bool,
    /// The HTTP method.
    pub method: String,
    /// Path and query.
    pub path: String,
    /// The content type; JSON if it is empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub content_type: String,
    /// The body; null if there is none.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub body: Value,
}

/// What happens to a watch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum WatchFault {
    /// Each event comes only after as many further ones of the same watch, or after the time.
    #[serde(rename_all = "camelCase")]
    Lag {
        /// How many events the client is behind.
        events: u32,
        /// The longest time that an event waits.
        milliseconds: u64,
    },
    /// No event comes for this time; then all come.
    #[serde(rename_all = "camelCase")]
    Freeze {
        /// How long.
        milliseconds: u64,
    },
    /// The server ends the watch after as many events.
    #[serde(rename_all = "camelCase")]
    Close {
        /// After how many events.
        after_events: u32,
    },
    /// The server ends the watch with 410 after as many events: the client has to list again.
    #[serde(rename_all = "camelCase")]
    Expire {
        /// After how many events.
        after_events: u32,
    },
    /// The client does not see as many events, then the watch ends with 410: it sees only what is
    /// there when it lists again.
    #[serde(rename_all = "camelCase")]
    Gap {
        /// How many events it does not see.
        events: u32,
        /// When the watch ends at the latest.
        milliseconds: u64,
    },
    /// Each event comes once more after as many further ones, as to a client that resumed from an
    /// older version.
    #[serde(rename_all = "camelCase")]
    Repeat {
        /// After how many further events.
        events: u32,
    },
    /// A bookmark with its version follows each event.
    Bookmark {},
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refuse(refusal) => {
                write!(f, "the API server answers {} {}", refusal.code, refusal.reason())
            }
            Self::LoseAnswer {} => f.write_str("the API server carries it out, the answer is lost"),
            Self::Hang {} => f.write_str("the request is lost, and no answer comes"),
            Self::DelayAnswer { milliseconds } => {
                write!(f, "the answer comes {milliseconds} ms later")
            }
            Self::DelayRequest { milliseconds } => {
                write!(f, "the connection breaks, and the request arrives {milliseconds} ms later")
            }
            Self::Duplicate {} => f.write_str("the API server carries it out twice"),
            Self::Crash { point: CrashPoint::BeforeRequest } => {
                f.write_str("the client crashes before it")
            }
            Self::Crash { point: CrashPoint::BeforeAnswer } => {
                f.write_str("the client crashes after it, before the answer")
            }
            Self::ConcurrentWriter(other) => {
                let when = if other.after_request { "after" } else { "before" };
                write!(f, "another client sends {} {} {when} it", other.method, other.path)
            }
            Self::Watch(watch) => write!(f, "{watch}"),
        }
    }
}

impl fmt::Display for WatchFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lag { events, milliseconds } => {
                write!(f, "it is {events} events behind, at most for {milliseconds} ms")
            }
            Self::Freeze { milliseconds } => write!(f, "no event comes for {milliseconds} ms"),
            Self::Close { after_events } => write!(f, "it ends after {after_events} events"),
            Self::Expire { after_events } => {
                write!(f, "it ends with 410 after {after_events} events")
            }
            Self::Repeat { events } => {
                write!(f, "each event comes once more after {events} further ones")
            }
            Self::Bookmark {} => f.write_str("a bookmark follows each event"),
            Self::Gap { events, milliseconds } => {
                write!(
                    f,
                    "{events} events are lost, then it ends with 410, after {milliseconds} ms at most"
                )
            }
        }
    }
}
