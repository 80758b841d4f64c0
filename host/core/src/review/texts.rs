//! The verdict of a policy with texts that are bounded and visible. Bad texts never turn a denial
//! into a failed review, which could allow the request.

use std::collections::BTreeMap;

use innkeeper_contract::{Cause, Operation, PolicyKind, Verdict};
use serde_json::Value;

use super::invalid_verdict::InvalidVerdict;
use crate::{foreign, names};

/// The longest message of a denial, in bytes.
pub const MESSAGE_BYTES_MAX: usize = 4_096;

/// The most fields at fault.
pub const CAUSES_MAX: usize = 32;

/// The longest field of a cause, and the longest message of one, in bytes.
const CAUSE_BYTES_MAX: (usize, usize) = (256, 1_024);

/// The most warnings.
pub const WARNINGS_MAX: usize = 16;

/// The longest warning, in bytes. With [`WARNINGS_MAX`], all warnings take 4 KiB, which the API
/// server passes on; it cuts longer ones.
pub const WARNING_BYTES_MAX: usize = 256;

/// The most annotations of the audit event.
pub const AUDIT_ANNOTATIONS_MAX: usize = 16;

/// The longest annotation of the audit event, in bytes.
pub const AUDIT_ANNOTATION_BYTES_MAX: usize = 1_024;

/// The most bytes of all texts, as JSON.
pub const TEXTS_BYTES_MAX: usize = 60 << 10;

/// The longest reason for programs, in bytes.
const REASON_BYTES_MAX: usize = 63;

/// A verdict with bounded, visible texts.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CheckedVerdict {
    /// The denial; `None` if the request is allowed.
    pub denial: Option<CheckedDenial>,
    /// Lines for the user of the client.
    pub warnings: Vec<String>,
    /// Annotations of the audit event; each key is a name without prefix.
    pub audit_annotations: BTreeMap<String, String>,
    /// The changed object, to be checked by [`check_change`](super::check_change).
    pub object: Option<Value>,
    /// How many causes, warnings and annotations were left out.
    pub left_out: usize,
}

/// The reasons of a denial.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckedDenial {
    /// A text for the user; never empty.
    pub message: String,
    /// A CamelCase word.
    pub reason: String,
    /// An HTTP status, 400 to 599.
    pub code: u16,
    /// The fields at fault.
    pub causes: Vec<Cause>,
}

impl CheckedDenial {
    /// Returns the message and the fields at fault, each as a text of its own, without repetitions:
    /// a message that only lists the messages of the fields is left out.
    pub fn lines(&self) -> Vec<String> {
        let of_fields = self.causes.iter().filter(|cause| !cause.field.is_empty());
        let rest = of_fields
            .clone()
            .fold(self.message.clone(), |rest, cause| rest.replacen(&cause.message, "", 1));
        let is_list = of_fields.count() > 0 && !rest.chars().any(char::is_alphanumeric);
        let mut lines = if is_list { Vec::new() } else { vec![self.message.clone()] };
        for Cause { field, message, .. } in &self.causes {
            let line = match field.as_str() {
                "" if self.message.contains(message) => continue,
                "" => message.clone(),
                field => format!("{field}: {message}"),
            };
            if !lines.contains(&line) {
                lines.push(line);
            }
        }
        lines
    }
}

/// Checks the verdict of a policy of this kind about this operation, and bounds its texts.
///
/// # Errors
/// If a verdict that allows has an object that the policy may not return. An object of a denial is
/// left out.
pub fn check(
    verdict: Verdict,
    kind: PolicyKind,
    operation: Operation,
) -> Result<CheckedVerdict, InvalidVerdict> {
    let given = verdict.warnings.len() + verdict.audit_annotations.len() + verdict.causes.len();
    let mut room = Room(TEXTS_BYTES_MAX);
    let (object, denial) = if verdict.allowed {
        (expected_object(verdict.object, kind, operation)?, None)
    } else {
        (None, Some(denial(&verdict.message, &verdict.reason, verdict.code, &mut room)))
    };
    let mut checked = CheckedVerdict {
        denial,
        warnings: warnings(&verdict.warnings, &mut room),
        audit_annotations: audit_annotations(&verdict.audit_annotations, &mut room),
        object,
        left_out: 0,
    };
    let mut kept = checked.warnings.len() + checked.audit_annotations.len();
    // Causes come last: the message of the denial matters more.
    if let Some(denial) = &mut checked.denial {
        denial.causes = causes(&verdict.causes, &mut room);
        kept += denial.causes.len();
    }
    checked.left_out = given - kept;
    Ok(checked)
}

/// The denial of a verdict, without its causes.
fn denial(message: &str, reason: &str, code: Option<i64>, room: &mut Room) -> CheckedDenial {
    let message = match cut(message, MESSAGE_BYTES_MAX, foreign::message) {
        message if message.trim().is_empty() => "the policy gives no reason".to_owned(),
        message => message,
    };
    // The first text always fits.
    room.takes(&[&message]);
    let reason = if is_reason(reason) { reason } else { "Forbidden" };
    CheckedDenial {
        message,
        reason: reason.to_owned(),
        code: code.and_then(status).unwrap_or(403),
        causes: Vec::new(),
    }
}

fn warnings(given: &[String], room: &mut Room) -> Vec<String> {
    given
        .iter()
        .take(WARNINGS_MAX)
        .map(|warning| cut(warning, WARNING_BYTES_MAX, foreign::one_line))
        .filter(|warning| !warning.is_empty() && room.takes(&[warning]))
        .collect()
}

fn audit_annotations(
    given: &BTreeMap<String, String>,
    room: &mut Room,
) -> BTreeMap<String, String> {
    given
        .iter()
        .filter(|(key, _)| is_annotation_key(key))
        .map(|(key, value)| (key, cut(value, AUDIT_ANNOTATION_BYTES_MAX, foreign::one_line)))
        .filter(|(key, value)| room.takes(&[key, value]))
        .take(AUDIT_ANNOTATIONS_MAX)
        .map(|(key, value)| (key.clone(), value))
        .collect()
}

fn causes(given: &[Cause], room: &mut Room) -> Vec<Cause> {
    given
        .iter()
        .take(CAUSES_MAX)
        .map(cause)
        .filter(|cause| room.takes(&[&cause.field, &cause.message, &cause.reason]))
        .collect()
}

fn expected_object(
    object: Option<Value>,
    kind: PolicyKind,
    operation: Operation,
) -> Result<Option<Value>, InvalidVerdict> {
    let why = match (kind, operation) {
        _ if object.is_none() => return Ok(None),
        (PolicyKind::Validate, _) => "and the policy is of the kind `Validate`, which only decides",
        (_, Operation::Delete) => "for DELETE, which stores no object",
        (PolicyKind::Mutate, _) => return Ok(object),
    };
    Err(InvalidVerdict::UnexpectedObject { why })
}

/// The number of bytes left for texts.
struct Room(usize);

impl Room {
    /// Takes the bytes of these texts as JSON, of all or none. Returns whether there was room.
    fn takes(&mut self, texts: &[&str]) -> bool {
        let escaped = |text: &&str| {
            let escapes = |byte: &u8| matches!(byte, b'"' | b'\\' | b'\n' | b'\t');
            text.len() + text.bytes().filter(escapes).count()
        };
        let bytes: usize = texts.iter().map(escaped).sum();
        let left = self.0.checked_sub(bytes);
        self.0 = left.unwrap_or(self.0);
        left.is_some()
    }
}

/// A text of at most `bytes_max` bytes: one that is cut ends with three dots.
fn cut<'t>(text: &'t str, bytes_max: usize, visible: impl Fn(&'t str, usize) -> String) -> String {
    let shown = visible(text, bytes_max);
    if shown.len() <= bytes_max { shown } else { visible(text, bytes_max - "...".len()) }
}

fn cause(cause: &Cause) -> Cause {
    let (field, message) = CAUSE_BYTES_MAX;
    Cause {
        field: cut(&cause.field, field, foreign::one_line),
        message: cut(&cause.message, message, foreign::one_line),
        reason: if is_reason(&cause.reason) { cause.reason.clone() } else { String::new() },
    }
}

/// Whether a text is a word such as `Forbidden`.
fn is_reason(text: &str) -> bool {
    text.len() <= REASON_BYTES_MAX
        && text.starts_with(|first: char| first.is_ascii_uppercase())
        && text.bytes().all(|byte| byte.is_ascii_alphabetic())
}

/// The HTTP status of a refusal.
fn status(code: i64) -> Option<u16> {
    u16::try_from(code).ok().filter(|code| (400..600).contains(code))
}

/// Whether the API server takes a key: it puts the name of the webhook and a slash before it.
fn is_annotation_key(key: &str) -> bool {
    names::is_qualified(key) && !key.contains('/')
}

#[cfg(test)]
mod tests;
