//! The result of one check, as text and JSON.

use serde_json::{Value, json};

use super::field_values::FieldValues;
use crate::out::Page;

/// What a check found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Status {
    /// The rules hold.
    Ok,
    /// A policy breaks a rule.
    Found,
    /// The check has no result.
    Failed,
}

impl Status {
    fn word(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Found => "FAIL",
            Self::Failed => "ERROR",
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Found => "found",
            Self::Failed => "failed",
        }
    }
}

/// What breaks a rule.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Finding {
    /// A word for programs.
    pub(super) reason: &'static str,
    pub(super) message: String,
    /// The policies that are involved.
    pub(super) policies: Vec<String>,
    /// The reconcilers that are involved.
    pub(super) reconcilers: Vec<String>,
    /// The fields that differ.
    pub(super) fields: Vec<FieldValues>,
}

/// One check.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct CheckResult {
    /// What is checked, as in `CREATE Deployment web/shop`.
    pub(super) subject: String,
    pub(super) status: Status,
    /// What was done, or why there is no result.
    pub(super) message: String,
    pub(super) findings: Vec<Finding>,
}

impl CheckResult {
    /// A check whose status follows from its findings.
    pub(super) fn new(subject: String, message: String, findings: Vec<Finding>) -> Self {
        let status = if findings.is_empty() { Status::Ok } else { Status::Found };
        Self { subject, status, message, findings }
    }

    /// A check without a result.
    pub(super) fn failed(subject: String, why: String) -> Self {
        Self { subject, status: Status::Failed, message: why, findings: Vec::new() }
    }

    /// Adds the check in one line, and what it found.
    pub(super) fn add_to(&self, page: &mut Page) {
        page.line(format_args!("{:<5} {}: {}", self.status.word(), self.subject, self.message));
        for finding in &self.findings {
            page.line(format_args!("      {}", finding.message));
            for field in &finding.fields {
                field.add_to(page);
            }
        }
    }

    /// The check for programs.
    pub(super) fn json(&self) -> Value {
        let findings = self.findings.iter().map(|finding| {
            json!({
                "reason": finding.reason, "message": finding.message,
                "policies": finding.policies, "reconcilers": finding.reconcilers,
                "fields": finding.fields.iter().map(FieldValues::json).collect::<Vec<_>>(),
            })
        });
        json!({
            "subject": self.subject, "result": self.status.name(), "message": self.message,
            "findings": findings.collect::<Vec<_>>(),
        })
    }
}
