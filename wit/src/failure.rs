use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{Condition, Event};

/// Why nothing can be said: the text of `failed`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Failure {
    /// One CamelCase word, stable, for machines: the reason of the condition.
    pub reason: String,
    /// What is wrong and what to do, for people. Stable text: no times, no random order.
    pub message: String,
    /// Trying again does not help until something changes: no backoff, the next change runs the
    /// guest again.
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
    /// Run again after this many seconds, instead of the host's backoff.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requeue_after_seconds: Option<u32>,
}
