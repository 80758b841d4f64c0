//! An object that does not pass, and why.

use std::sync::Arc;

use innkeeper_contract::Kind;

use super::result::AuditResult;
use crate::review::CheckedDenial;
use crate::{ObjectKey, foreign};

/// The longest message, in bytes. It is shorter than that of a denial, since a host keeps many.
pub const MESSAGE_BYTES_MAX: usize = 1_024;

/// The longest reason, in bytes.
const REASON_BYTES_MAX: usize = 63;

/// The size of a result in a report without its texts, in bytes.
const RESULT_BYTES: usize = 512;

/// An object that does not pass, and why. Its texts are bounded and visible.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The kind of the object.
    pub kind: Arc<Kind>,
    /// Its namespace and name.
    pub key: ObjectKey,
    /// Its uid; empty if it has none, as in a file.
    pub uid: Box<str>,
    /// The result of the review.
    pub result: AuditResult,
    /// A CamelCase word.
    pub reason: Box<str>,
    /// One line for people.
    pub message: Box<str>,
}

impl Finding {
    /// A finding about the object of this kind and key. Bounds the texts, and shows invisible
    /// characters as codes.
    pub fn new(
        (kind, key, uid): (&Arc<Kind>, &ObjectKey, &str),
        result: AuditResult,
        reason: &str,
        message: &str,
    ) -> Self {
        Self {
            kind: kind.clone(),
            key: key.clone(),
            uid: uid.into(),
            result,
            reason: foreign::one_line(reason, REASON_BYTES_MAX).into(),
            message: foreign::one_line(message, MESSAGE_BYTES_MAX).into(),
        }
    }

    /// The message of a denial with its causes.
    pub fn message_of(denial: &CheckedDenial) -> String {
        denial.lines().join("; ")
    }

    /// The most bytes that the finding takes in a report. JSON escapes a character of a visible
    /// text by at most one more.
    pub fn report_bytes(&self) -> usize {
        let texts = [
            self.message.len(),
            self.reason.len(),
            self.key.name().len(),
            self.key.namespace().len(),
            self.uid.len(),
            self.kind.kind.len(),
            self.kind.api_version.len(),
        ];
        RESULT_BYTES + 2 * texts.iter().sum::<usize>()
    }

    /// The namespace, API version, kind and name of the object. They order findings, and choose the
    /// report of a finding.
    pub fn identity(&self) -> (&str, &str, &str, &str) {
        let Kind { api_version, kind, .. } = &*self.kind;
        (self.key.namespace(), api_version, kind, self.key.name())
    }
}
