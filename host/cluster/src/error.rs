//! What the API server answered when it did not do what was asked, told apart so that a
//! caller can act on it.
//!
//! Told apart by code, reason, details and causes of the `Status`, and by what was asked
//! (the same 409 answers a name that is taken, an object that is gone and a version that
//! is old). Where the server gives nothing but text, the text is matched in this file
//! and nowhere else: which fields are immutable, and a malformed object.

use std::fmt;
use std::time::Duration;

use kube::core::Status;

use crate::Identity;
use crate::discovery::Mismatch;

/// The longest message kept of an answer, in bytes: the server quotes whole pod templates.
pub const MESSAGE_BYTES_MAX: usize = 1024;

/// The reason of a kind that the API server serves otherwise than a manifest declares it.
pub const KIND_MISMATCH: &str = "KindMismatch";

/// A right that is missing.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Denial {
    /// Who lacks it.
    pub identity: Identity,
    /// The verb, as in RBAC: `list`.
    pub verb: Box<str>,
    /// The resource with its group and subresource: `deployments.apps`, `podroutes.quay.io/status`.
    pub resource: Box<str>,
    /// The namespace; `None` for all namespaces, and for what is in none.
    pub namespace: Option<Box<str>>,
}

impl fmt::Display for Denial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { identity, verb, resource, namespace } = self;
        write!(f, "{identity} may not {verb} {resource} ")?;
        match namespace {
            Some(namespace) => write!(f, "in namespace {namespace}"),
            None => f.write_str("in the whole cluster"),
        }
    }
}

/// A field that another manager holds.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FieldConflict {
    /// The other manager, as the server names it (`kubectl`, or `x with subresource "status"`).
    pub manager: String,
    /// The field's path: `.spec.replicas`.
    pub field: String,
}

impl fmt::Display for FieldConflict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} holds {}", self.manager, self.field)
    }
}

/// Why a request failed. Messages are stable: the same cause gives the same text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ApiError {
    /// The object is not there.
    #[error("{message}")]
    NotFound {
        /// What the server said.
        message: String,
    },
    /// The API server does not serve the kind (now).
    #[error("the API server does not serve {kind}")]
    NotServed {
        /// Group, version and kind.
        kind: String,
    },
    /// The API server serves the kind otherwise than the request takes it.
    #[error("{mismatch}")]
    KindMismatch {
        /// Declared and served.
        mismatch: Box<Mismatch>,
    },
    /// The namespace is not there.
    #[error("namespace {namespace} is not there")]
    NamespaceNotFound {
        /// The namespace.
        namespace: String,
    },
    /// The namespace is being deleted: nothing can be created in it.
    #[error("namespace {namespace} is being deleted")]
    NamespaceTerminating {
        /// The namespace.
        namespace: String,
    },
    /// A right is missing, or admission (a quota, a policy) refused.
    #[error("{denial}: {message}")]
    Forbidden {
        /// What was refused to whom.
        denial: Box<Denial>,
        /// What the server said; it names quota or policy if it was not a matter of rights.
        message: String,
    },
    /// An apply without force met fields of other managers.
    #[error("{message}")]
    FieldConflict {
        /// Who holds which field.
        conflicts: Vec<FieldConflict>,
        /// What the server said.
        message: String,
    },
    /// A create found something of that name already there.
    #[error("{message}")]
    AlreadyExists {
        /// What the server said.
        message: String,
    },
    /// The object is no longer at the version that the request named.
    #[error("{message}")]
    Conflict {
        /// What the server said.
        message: String,
    },
    /// The object that the request named by uid is gone.
    #[error("{message}")]
    ObjectDeleted {
        /// What the server said.
        message: String,
    },
    /// Another object has taken the name of the one that the request named by uid.
    #[error("{message}")]
    UidMismatch {
        /// What the server said.
        message: String,
    },
    /// A field that cannot be changed would have to change.
    #[error("{message}")]
    Immutable {
        /// The field's path: `spec.selector`.
        field: String,
        /// What the server said.
        message: String,
    },
    /// The object breaks a rule of its kind, or a webhook refused it.
    #[error("{message}")]
    Invalid {
        /// What the server said.
        message: String,
    },
    /// The object is not of its kind's shape: an unknown field, a wrong type. Permanent.
    #[error("{message}")]
    Malformed {
        /// What the server said.
        message: String,
    },
    /// The credentials are not accepted.
    #[error("the API server does not accept the credentials of {identity}: {message}")]
    Unauthorized {
        /// Whose.
        identity: Identity,
        /// What the server said.
        message: String,
    },
    /// The server is busy and asked to wait.
    #[error("the API server is busy: {message}")]
    TooManyRequests {
        /// How long it asked to wait.
        retry_after: Option<Duration>,
        /// What the server said.
        message: String,
    },
    /// The server is not there, or cannot serve now.
    #[error("the API server is unavailable: {message}")]
    Unavailable {
        /// What happened.
        message: String,
    },
    /// A read was not answered in time.
    #[error("the API server did not answer in time: {message}")]
    Timeout {
        /// What happened.
        message: String,
    },
    /// The answer to a write was lost: it may have been done or not. What is there
    /// is unknown until it is looked up.
    #[error("the answer to a write was lost, it may have been done: {message}")]
    OutcomeUnknown {
        /// What happened.
        message: String,
    },
    /// Another answer: a server error, or something that is no Kubernetes answer.
    #[error("the API server answered {code}: {message}")]
    Other {
        /// The HTTP status; 0 if there was none.
        code: u16,
        /// What the server said.
        message: String,
    },
}

impl ApiError {
    /// One CamelCase word for conditions and metrics.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::NotFound { .. } => "NotFound",
            Self::NotServed { .. } => "NotServed",
            Self::KindMismatch { .. } => KIND_MISMATCH,
            Self::NamespaceNotFound { .. } => "NamespaceNotFound",
            Self::NamespaceTerminating { .. } => "NamespaceTerminating",
            Self::Forbidden { .. } => "Forbidden",
            Self::FieldConflict { .. } => "FieldConflict",
            Self::AlreadyExists { .. } => "AlreadyExists",
            Self::Conflict { .. } => "VersionConflict",
            Self::ObjectDeleted { .. } => "ObjectDeleted",
            Self::UidMismatch { .. } => "UidMismatch",
            Self::Immutable { .. } => "Immutable",
            Self::Invalid { .. } => "Invalid",
            Self::Malformed { .. } => "Malformed",
            Self::Unauthorized { .. } => "Unauthorized",
            Self::TooManyRequests { .. } => "TooManyRequests",
            Self::Unavailable { .. } => "Unavailable",
            Self::Timeout { .. } => "Timeout",
            Self::OutcomeUnknown { .. } => "OutcomeUnknown",
            Self::Other { .. } => "ServerError",
        }
    }

    /// Whether the same request may succeed later although nobody changes anything: worth
    /// a backoff, not worth a person's attention yet.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::TooManyRequests { .. }
            | Self::Unavailable { .. }
            | Self::Timeout { .. }
            | Self::OutcomeUnknown { .. } => true,
            Self::Other { code, .. } => *code == 0 || *code >= 500,
            _ => false,
        }
    }

    /// Whether what is cached of the object is proven wrong or doubtful, so that it
    /// has to be looked up before the next run.
    pub fn makes_unknown(&self) -> bool {
        matches!(
            self,
            Self::AlreadyExists { .. }
                | Self::Conflict { .. }
                | Self::ObjectDeleted { .. }
                | Self::UidMismatch { .. }
                | Self::NotFound { .. }
                | Self::OutcomeUnknown { .. }
        )
    }
}

/// What the request said about what it expects to be there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Guard {
    /// Nothing.
    None,
    /// Nothing is there: `resourceVersion: "1"`.
    Absent,
    /// A version is there.
    Version,
    /// An object with this uid is there.
    Uid,
}

/// What was asked, as far as it tells answers apart.
#[derive(Clone, Debug)]
pub(crate) struct RequestContext<'a> {
    pub(crate) identity: &'a Identity,
    pub(crate) verb: &'a str,
    pub(crate) kind: &'a innkeeper_contract::Kind,
    pub(crate) subresource: &'a str,
    pub(crate) namespace: &'a str,
    pub(crate) guard: Guard,
}

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

    /// Reads an answer that is not a success.
    pub(crate) fn refused(&self, code: u16, body: &[u8]) -> ApiError {
        match serde_json::from_slice::<Status>(body) {
            Ok(mut status) if !status.reason.is_empty() || status.code != 0 => {
                status.code = code;
                self.status(&status)
            }
            _ => {
                // Not every answer is a Status: an unknown group is answered by a text, and
                // proxies on the way have pages of their own.
                let text = String::from_utf8_lossy(body);
                self.status(&Status { code, message: text.trim().to_owned(), ..Status::default() })
            }
        }
    }

    /// Reads a `Status` that is not a success.
    pub(crate) fn status(&self, status: &Status) -> ApiError {
        let message = shortened(&status.message);
        let details = status.details.as_ref();
        let causes = details.map_or(&[][..], |details| &details.causes);
        match status.code {
            400 => ApiError::Malformed { message },
            401 => ApiError::Unauthorized { identity: self.identity.clone(), message },
            403 => self.forbidden(status, message),
            404 => match details {
                // A text, or a Status that names nothing: there is no such resource.
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
            405 | 413 => ApiError::Invalid { message },
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
            500 if status.message.starts_with("failed to create typed patch object") => {
                ApiError::Malformed { message }
            }
            503 => ApiError::Unavailable { message },
            504 if is_read(self.verb) => ApiError::Timeout { message },
            504 => ApiError::OutcomeUnknown { message },
            code => ApiError::Other { code, message },
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
        // The host itself may not impersonate: the details then name the account, not what
        // was asked for.
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

/// Whether a cause of a 422 says that a field cannot be changed. There is no reason of its
/// own for it: these are words of the validations of the built-in kinds, and of most rules
/// (`x-kubernetes-validations`) that custom kinds have for it.
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

pub(crate) fn is_read(verb: &str) -> bool {
    matches!(verb, "get" | "list" | "watch")
}

/// At most [`MESSAGE_BYTES_MAX`] bytes of a message, cut where a character ends.
pub(crate) fn shortened(message: &str) -> String {
    if message.len() <= MESSAGE_BYTES_MAX {
        return message.to_owned();
    }
    format!("{}...", &message[..message.floor_char_boundary(MESSAGE_BYTES_MAX)])
}

/// A cluster cannot be connected to with this configuration.
#[derive(Debug, thiserror::Error)]
#[error("the configuration of the connection to the API server cannot be used: {message}")]
pub struct ConnectError {
    /// What is wrong with it, and where.
    pub message: String,
}

#[cfg(test)]
mod tests;
