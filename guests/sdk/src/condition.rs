//! Conditions of the primary. The host adds times and generation.
//!
//! A condition once given should be given every time: say `False` rather than nothing.

use crate::{Condition, ConditionStatus};

/// A condition. `type_` and `reason` are single CamelCase words; `message` is for people,
/// stable text without times.
pub fn condition(
    type_: &str,
    status: ConditionStatus,
    reason: &str,
    message: impl Into<String>,
) -> Condition {
    Condition {
        type_: type_.to_owned(),
        status,
        reason: reason.to_owned(),
        message: message.into(),
    }
}

/// The condition `type_` holds.
pub fn is_true(type_: &str, reason: &str, message: impl Into<String>) -> Condition {
    condition(type_, ConditionStatus::True, reason, message)
}

/// The condition `type_` does not hold.
pub fn is_false(type_: &str, reason: &str, message: impl Into<String>) -> Condition {
    condition(type_, ConditionStatus::False, reason, message)
}

/// Whether the condition `type_` holds cannot be told.
pub fn unknown(type_: &str, reason: &str, message: impl Into<String>) -> Condition {
    condition(type_, ConditionStatus::Unknown, reason, message)
}

/// `Ready` holds.
pub fn ready(reason: &str, message: impl Into<String>) -> Condition {
    is_true("Ready", reason, message)
}

/// `Ready` does not hold.
pub fn not_ready(reason: &str, message: impl Into<String>) -> Condition {
    is_false("Ready", reason, message)
}
