use serde::{Deserialize, Serialize};

/// A condition of the primary, as a guest gives it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Condition {
    /// CamelCase (`Ready`), at most 316 characters, unique in its list.
    #[serde(rename = "type")]
    pub type_: String,
    /// Whether it holds.
    pub status: ConditionStatus,
    /// One CamelCase word, at most 1,024 characters.
    pub reason: String,
    /// For people; stable text, at most 32,768 characters.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
}

/// Whether a condition holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum ConditionStatus {
    /// It holds.
    True,
    /// It does not.
    False,
    /// It cannot be told.
    Unknown,
}

impl ConditionStatus {
    /// As Kubernetes writes it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::True => "True",
            Self::False => "False",
            Self::Unknown => "Unknown",
        }
    }
}

/// An event about the primary.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Event {
    /// Normal or Warning.
    #[serde(rename = "type", default)]
    pub type_: EventType,
    /// One CamelCase word, at most 128 characters.
    pub reason: String,
    /// For people, at most 1,024 bytes.
    pub message: String,
}

/// How much an event matters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum EventType {
    /// As expected.
    #[default]
    Normal,
    /// Somebody should look.
    Warning,
}
