//! From a response that is not a success to an [`ApiError`].
//!
//! Code, reason, details and causes of the `Status` decide, together with the request: the same 409
//! answers a name that is taken, a deleted object and an old version. Where the server gives
//! nothing but text, this file matches the text, and no other file does: for immutable fields, and
//! for a malformed object.

use std::fmt;
use std::time::Duration;

use innkeeper_contract::Kind;
use kube::core::Status;

use super::missing_right::denied_verb;
use super::{ApiError, Denial, FieldConflict, MESSAGE_BYTES_MAX};
use crate::Identity;
use crate::transport::NoAnswer;

/// The state of the object that a request requires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Guard {
    /// Any state.
    None,
    /// There is no object of this name: `resourceVersion: "1"`.
    Absent,
    /// The object has this version.
    Version,
    /// The object has this uid.
    Uid,
}

/// The parts of a request by which its response is classified.
#[derive(Clone, Debug)]
pub(crate) struct RequestContext<'a> {
    pub(crate) identity: &'a Identity,
    pub(crate) verb: &'a str,
    pub(crate) kind: &'a Kind,
    pub(crate) subresource: &'a str,
    pub(crate) namespace: &'a str,
    pub(crate) guard: Guard,
}

/// The end of etcd's message about an object beyond its limit, 1.5 MiB unless configured otherwise.
const ETCD_TOO_LARGE: &str = "etcdserver: request is too large";

impl RequestContext<'_> {
    fn denial(&self) -> Denial {
        let mut resource = self.kind.resource();
        if !self.subresource.is_empty() {
            resource.push('/');
            resource.push_str(self.subresource);
        }
        Denial {
            identity: self.identity.clone(),
            verb: self.verb.into(),
            resource: resource.into(),
            namespace: (!self.namespace.is_empty()).then(|| self.namespace.into()),
        }
    }

    /// The error of a response that is not a success.
    pub(crate) fn refused(&self, code: u16, body: &[u8]) -> ApiError {
        match serde_json::from_slice::<Status>(body) {
            Ok(mut status) if !status.reason.is_empty() || status.code != 0 => {
                status.code = code;
                self.status(&status)
            }
            _ => {
                // Not every response is a Status: the server answers a request for an unknown
                // group by a text, and proxies have pages of their own.
                let text = String::from_utf8_lossy(body);
                self.status(&Status { code, message: text.trim().to_owned(), ..Status::default() })
            }
        }
    }

    /// The error of a `Status` that is not a success.
    pub(crate) fn status(&self, status: &Status) -> ApiError {
        let message = shortened(&status.message);
        let details = status.details.as_ref();
        let causes = details.map_or(&[][..], |details| &details.causes);
        match status.code {
            400 => ApiError::Malformed { message },
            401 => ApiError::Unauthorized { identity: self.identity.clone(), message },
            403 => self.forbidden(status, message),
            404 => match details {
                // A text, or a Status without a name: there is no such resource.
                None => ApiError::NotServed { kind: self.kind.to_string() },
                Some(details) if details.name.is_empty() => {
                    ApiError::NotServed { kind: self.kind.to_string() }
                }
                Some(details)
                    if details.kind == "namespaces" && self.kind.plural != "namespaces" =>
                {
                    ApiError::NamespaceNotFound { namespace: details.name.clone() }
                }
                Some(_) => ApiError::NotFound { message },
            },
            405 => ApiError::Invalid { message },
            413 => ApiError::TooLarge { message },
            409 => self.conflict(status, message),
            422 => {
                if self.guard != Guard::None
                    && causes.iter().any(|cause| cause.field == "metadata.uid")
                {
                    ApiError::UidMismatch { message }
                } else if let Some(cause) = causes.iter().find(|cause| is_immutable(&cause.message))
                {
                    ApiError::Immutable { field: cause.field.clone(), message }
                } else {
                    ApiError::Invalid { message }
                }
            }
            429 => ApiError::TooManyRequests {
                retry_after: details
                    .map(|details| details.retry_after_seconds)
                    .filter(|seconds| *seconds > 0)
                    .map(|seconds| Duration::from_secs(seconds.into())),
                message,
            },
            500 if status.message.ends_with(ETCD_TOO_LARGE) => ApiError::TooLarge { message },
            500 if status.message.starts_with("failed to create typed patch object") => {
                ApiError::Malformed { message }
            }
            503 => ApiError::Unavailable { message },
            504 if is_read(self.verb) => ApiError::Timeout { message },
            504 => ApiError::OutcomeUnknown { message },
            code => ApiError::Other { code, message },
        }
    }

    /// The error of a response that came, but cannot be read. The server has done the write then,
    /// with an unknown result.
    pub(crate) fn unreadable(&self, error: &dyn fmt::Display) -> ApiError {
        let message = format!("the answer cannot be read: {error}");
        if is_read(self.verb) {
            ApiError::Other { code: 0, message }
        } else {
            ApiError::OutcomeUnknown { message }
        }
    }

    /// The error of a request without a response.
    pub(crate) fn unanswered(&self, error: NoAnswer) -> ApiError {
        let NoAnswer { message, late, may_have_arrived, .. } = error;
        match (is_read(self.verb), may_have_arrived, late) {
            (false, true, _) => ApiError::OutcomeUnknown { message },
            (true, _, true) => ApiError::Timeout { message },
            _ => ApiError::Unavailable { message },
        }
    }

    fn forbidden(&self, status: &Status, message: String) -> ApiError {
        let details = status.details.as_ref();
        let terminating = details.is_some_and(|details| {
            details.causes.iter().any(|cause| cause.reason == "NamespaceTerminating")
        });
        if terminating {
            return ApiError::NamespaceTerminating { namespace: self.namespace.to_owned() };
        }
        let mut denial = self.denial();
        if let Some(verb) = denied_verb(&message) {
            denial.verb = verb.into();
        }
        // The host itself may not impersonate: the details then name the account, not the
        // requested resource.
        if let (Identity::Account(account), Some(details)) = (self.identity, details)
            && details.kind == "serviceaccounts"
            && self.kind.plural != "serviceaccounts"
        {
            denial = Denial {
                identity: Identity::Host,
                verb: "impersonate".into(),
                resource: "serviceaccounts".into(),
                namespace: Some(account.namespace.clone()),
            };
        }
        ApiError::Forbidden { denial: Box::new(denial), message }
    }

    fn conflict(&self, status: &Status, message: String) -> ApiError {
        let causes = status.details.as_ref().map_or(&[][..], |details| &details.causes);
        let mut conflicts: Vec<_> = causes
            .iter()
            .filter(|cause| cause.reason == "FieldManagerConflict")
            .map(|cause| FieldConflict {
                manager: manager_of(&cause.message),
                field: cause.field.clone(),
            })
            .collect();
        if !conflicts.is_empty() {
            conflicts.sort();
            return ApiError::FieldConflict { conflicts, message };
        }
        if status.reason == "AlreadyExists" {
            return ApiError::AlreadyExists { message };
        }
        match self.guard {
            Guard::Absent => ApiError::AlreadyExists { message },
            Guard::Uid if self.verb == "delete" => ApiError::UidMismatch { message },
            Guard::Uid => ApiError::ObjectDeleted { message },
            Guard::Version | Guard::None => ApiError::Conflict { message },
        }
    }
}

/// The manager in a cause's `conflict with "kubectl" using apps/v1`.
fn manager_of(message: &str) -> String {
    let rest = message.strip_prefix("conflict with ").unwrap_or(message);
    match rest.strip_prefix('"').and_then(|rest| rest.split_once('"')) {
        Some((name, more)) => match more.split_once(" using ").map_or(more, |(before, _)| before) {
            "" => name.to_owned(),
            subresource => format!("{name}{subresource}"),
        },
        None => rest.to_owned(),
    }
}

/// Whether a cause of a 422 means that a field is immutable. Kubernetes has no reason for it:
/// these are words of the validations of built-in kinds, and of most `x-kubernetes-validations`.
fn is_immutable(message: &str) -> bool {
    [
        "immutable",
        "may not change once set",
        "may not change fields other than",
        "updates to statefulset spec for fields other than",
        "cannot change roleRef",
    ]
    .iter()
    .any(|text| message.contains(text))
}

fn is_read(verb: &str) -> bool {
    matches!(verb, "get" | "list" | "watch")
}

/// At most [`MESSAGE_BYTES_MAX`] bytes of a message, cut where a character ends.
fn shortened(message: &str) -> String {
    if message.len() <= MESSAGE_BYTES_MAX {
        return message.to_owned();
    }
    format!("{}...", &message[..message.floor_char_boundary(MESSAGE_BYTES_MAX)])
}

#[cfg(test)]
mod tests;
