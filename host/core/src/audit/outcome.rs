//! The outcome of the review of an existing object, for a report.

use super::finding::Finding;
use super::result::AuditResult;
use crate::review::CheckedVerdict;

/// How many changed fields a message names.
pub const FIELDS_MAX: usize = 5;

/// The paths of changed fields in one text: the first [`FIELDS_MAX`], and whether there are more.
pub fn named_fields(changed: &[String]) -> String {
    let named = changed.get(..FIELDS_MAX).unwrap_or(changed).join(", ");
    let more = if changed.len() > FIELDS_MAX { " and more" } else { "" };
    format!("{named}{more}")
}

/// The reason of a review that took all of its time.
const TIMEOUT: &str = "GuestTimeout";

/// The outcome of the review of an existing object. [`Finding::new`] bounds its texts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditOutcome {
    /// The result.
    pub result: AuditResult,
    /// A CamelCase word; empty for an object that passes.
    pub reason: String,
    /// Why the object does not pass; empty if it does.
    pub message: String,
}

impl AuditOutcome {
    /// The outcome of a verdict of the policy of a module. `changed` has the paths of the fields
    /// that the verdict changes, and is empty if it changes none.
    pub fn of_verdict(module: &str, verdict: &CheckedVerdict, changed: &[String]) -> Self {
        if let Some(denial) = &verdict.denial {
            let message = Finding::message_of(denial);
            return Self { result: AuditResult::Fail, reason: denial.reason.clone(), message };
        }
        let warnings = verdict.warnings.join("; ");
        if changed.is_empty() {
            let (result, reason) = match &*warnings {
                "" => (AuditResult::Pass, ""),
                _ => (AuditResult::Warn, "Warned"),
            };
            return Self { result, reason: reason.to_owned(), message: warnings };
        }
        let mut message = format!("policy {module} would change {}", named_fields(changed));
        if !warnings.is_empty() {
            message = format!("{message}; {warnings}");
        }
        Self { result: AuditResult::Warn, reason: "WouldChange".to_owned(), message }
    }

    /// The outcome of a review without a verdict.
    pub fn failed(reason: &str, message: impl Into<String>) -> Self {
        Self { result: AuditResult::Error, reason: reason.to_owned(), message: message.into() }
    }

    /// Whether the call of the guest took all of its time.
    pub fn is_timeout(&self) -> bool {
        self.result == AuditResult::Error && self.reason == TIMEOUT
    }
}
