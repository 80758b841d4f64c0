use serde::{Deserialize, Serialize};

/// A condition of the primary, as a guest returns it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Condition {
    /// Type of the condition, CamelCase, unique in its list. Limits: at most 316 characters.
    #[serde(rename = "type")]
    pub type_: String,
    /// Whether the condition holds.
    pub status: ConditionStatus,
    /// Reason for programs, one CamelCase word. Limits: at most 1,024 characters.
    pub reason: String,
    /// Message for people. The same state gives the same text. Limits: at most 32,768 bytes.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
}

/// The status of a condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum ConditionStatus {
    /// The condition is true.
    True,
    /// The condition is false.
    False,
    /// The guest cannot determine the condition.
    Unknown,
}

impl ConditionStatus {
    /// Returns the status as Kubernetes writes it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::True => "True",
            Self::False => "False",
            Self::Unknown => "Unknown",
        }
    }
}

/// An Event about the primary.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Event {
    /// Type of the Event.
    #[serde(rename = "type", default)]
    pub type_: EventType,
    /// Reason for programs, one CamelCase word. Limits: at most 128 bytes.
    pub reason: String,
    /// Message for people. The host cuts what is beyond the limit. Limits: at most 1,024 bytes.
    pub message: String,
}

/// The type of an Event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum EventType {
    /// Something happened as expected.
    #[default]
    Normal,
    /// Something needs attention.
    Warning,
}
