//! Builders for conditions of the primary. The host adds `lastTransitionTime` and
//! `observedGeneration`.
//!
//! Return each condition type in every run: report `False` instead of leaving the condition out.

use crate::{Condition, ConditionStatus};

/// Builds a condition.
///
/// `type_` and `reason` are single CamelCase words (Kubernetes API conventions); `message` is
/// for people: the same state gives the same text, without times.
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

/// Builds the condition `type_` with the status `True`. Arguments as for [`condition`].
pub fn is_true(type_: &str, reason: &str, message: impl Into<String>) -> Condition {
    condition(type_, ConditionStatus::True, reason, message)
}

/// Builds the condition `type_` with the status `False`. Arguments as for [`condition`].
pub fn is_false(type_: &str, reason: &str, message: impl Into<String>) -> Condition {
    condition(type_, ConditionStatus::False, reason, message)
}

/// Builds the condition `type_` with the status `Unknown`. Arguments as for [`condition`].
pub fn unknown(type_: &str, reason: &str, message: impl Into<String>) -> Condition {
    condition(type_, ConditionStatus::Unknown, reason, message)
}

/// Builds the condition `Ready` with the status `True`.
pub fn ready(reason: &str, message: impl Into<String>) -> Condition {
    is_true("Ready", reason, message)
}

/// Builds the condition `Ready` with the status `False`.
pub fn not_ready(reason: &str, message: impl Into<String>) -> Condition {
    is_false("Ready", reason, message)
}
