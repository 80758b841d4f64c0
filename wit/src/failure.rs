use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{Condition, Event};

/// Why the guest cannot compute the desired state: the document of the outcome `failed`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Failure {
    /// Reason of the condition: one CamelCase word for programs, which does not change between
    /// versions.
    pub reason: String,
    /// What failed, why, and what to do, for people. The same state gives the same text: no times,
    /// no random order.
    pub message: String,
    /// Whether a retry cannot help until something changes: the host does not retry with backoff,
    /// but runs the guest at the next change.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub permanent: bool,
    /// As in `desired`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<Map<String, Value>>,
    /// As in `desired`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
    /// As in `desired`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<Event>,
    /// Seconds after which the host runs the guest again, instead of its backoff.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requeue_after_seconds: Option<u32>,
}
