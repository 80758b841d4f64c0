use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{Condition, Event};

/// Why the guest cannot compute the desired state: the document of the outcome `failed`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Failure {
    /// Reason of the condition `Synced`: one CamelCase word for programs, which does not change
    /// between versions of the guest. Limits: at most 1,024 characters.
    pub reason: String,
    /// Message of the condition `Synced`, for people: what failed, why, and what to do. The same
    /// state gives the same text: no times, no random order. Limits: the host cuts it after 4,096
    /// bytes.
    pub message: String,
    /// Whether a retry cannot help until something changes. If true, the host does not retry with
    /// backoff, but runs the guest at the next change.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub permanent: bool,
    /// Status of the primary, as in the document `desired`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<Map<String, Value>>,
    /// Conditions of the primary, as in the document `desired`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
    /// Events about the primary, as in the document `desired`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<Event>,
    /// Seconds after which the host runs the guest again. 0 counts as left out. Default: a backoff,
    /// which grows with each failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requeue_after_seconds: Option<u32>,
}
