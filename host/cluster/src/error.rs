//! Errors of the API server, by type, so that a caller can act on them.
//!
//! `request_context` makes them from the server's responses.

mod hidden;
mod missing_right;
mod request_context;

use std::fmt;
use std::time::Duration;

use crate::Identity;
use crate::served_kind::Mismatch;

pub use missing_right::MissingRight;
pub(crate) use request_context::{Guard, RequestContext};

/// The longest message that an error has, in bytes: the server quotes whole pod templates.
pub const MESSAGE_BYTES_MAX: usize = 1024;

/// The reason of [`ApiError::KindMismatch`].
pub const KIND_MISMATCH: &str = "KindMismatch";

/// A right that an identity lacks.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Denial {
    /// The identity that lacks the right.
    pub identity: Identity,
    /// The verb, as in RBAC: `list`.
    pub verb: Box<str>,
    /// The resource with its group and subresource: `deployments.apps`, `podroutes.quay.io/status`.
    pub resource: Box<str>,
    /// The namespace; `None` for all namespaces and for cluster-scoped resources.
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
    /// The object does not exist.
    #[error("{message}")]
    NotFound {
        /// The server's message.
        message: String,
    },
    /// The API server does not serve the kind (now).
    #[error("the API server does not serve {kind}")]
    NotServed {
        /// Group, version and kind.
        kind: String,
    },
    /// The API server serves the kind otherwise than the manifest declares it.
    #[error("{mismatch}")]
    KindMismatch {
        /// The declared and the served kind.
        mismatch: Box<Mismatch>,
    },
    /// The namespace does not exist.
    #[error("namespace {namespace} is not there")]
    NamespaceNotFound {
        /// The namespace.
        namespace: String,
    },
    /// The server is deleting the namespace: nothing can be created in it.
    #[error("namespace {namespace} is being deleted")]
    NamespaceTerminating {
        /// The namespace.
        namespace: String,
    },
    /// The identity lacks a right, or admission (a quota, a policy) refused the request.
    #[error("{denial}: {message}")]
    Forbidden {
        /// The refused right, and the identity that lacks it.
        denial: Box<Denial>,
        /// The server's message; it names the quota or policy if RBAC allowed the request.
        message: String,
    },
    /// Other managers hold fields of an apply without force.
    #[error("{message}")]
    FieldConflict {
        /// The other managers, each with its field.
        conflicts: Vec<FieldConflict>,
        /// The server's message.
        message: String,
    },
    /// An object with the name of the created one exists.
    #[error("{message}")]
    AlreadyExists {
        /// The server's message.
        message: String,
    },
    /// The object does not have the version that the request requires any more.
    #[error("{message}")]
    Conflict {
        /// The server's message.
        message: String,
    },
    /// The object that the request names by uid does not exist any more.
    #[error("{message}")]
    ObjectDeleted {
        /// The server's message.
        message: String,
    },
    /// Another object has the name of the one that the request names by uid.
    #[error("{message}")]
    UidMismatch {
        /// The server's message.
        message: String,
    },
    /// The request would change an immutable field.
    #[error("{message}")]
    Immutable {
        /// The field's path: `spec.selector`.
        field: String,
        /// The server's message.
        message: String,
    },
    /// The object breaks a rule of its kind, or a webhook refused it.
    #[error("{message}")]
    Invalid {
        /// The server's message.
        message: String,
    },
    /// The object is larger than the API server, or etcd, stores.
    #[error("{message}")]
    TooLarge {
        /// The server's message.
        message: String,
    },
    /// The object is not of its kind's shape: an unknown field, a wrong type. Permanent.
    #[error("{message}")]
    Malformed {
        /// The server's message.
        message: String,
    },
    /// The server does not accept the credentials.
    #[error("the API server does not accept the credentials of {identity}: {message}")]
    Unauthorized {
        /// The identity with these credentials.
        identity: Identity,
        /// The server's message.
        message: String,
    },
    /// The server is busy and asks the client to wait.
    #[error("the API server is busy: {message}")]
    TooManyRequests {
        /// How long the server asks the client to wait.
        retry_after: Option<Duration>,
        /// The server's message.
        message: String,
    },
    /// The server cannot be reached, or cannot serve now.
    #[error("the API server is unavailable: {message}")]
    Unavailable {
        /// The cause.
        message: String,
    },
    /// The server did not answer a read in time.
    #[error("the API server did not answer in time: {message}")]
    Timeout {
        /// The cause.
        message: String,
    },
    /// The response to a write was lost: the server may have done the write. The state of the
    /// object is unknown until the host reads it.
    #[error("the answer to a write was lost, it may have been done: {message}")]
    OutcomeUnknown {
        /// The cause.
        message: String,
    },
    /// Another response: a server error, or one that no Kubernetes API server sends.
    #[error("the API server answered {code}: {message}")]
    Other {
        /// The HTTP status; 0 if there was none.
        code: u16,
        /// The server's message.
        message: String,
    },
}

impl ApiError {
    /// The CamelCase reason for conditions and metrics.
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
            Self::TooLarge { .. } => "RequestEntityTooLarge",
            Self::Malformed { .. } => "Malformed",
            Self::Unauthorized { .. } => "Unauthorized",
            Self::TooManyRequests { .. } => "TooManyRequests",
            Self::Unavailable { .. } => "Unavailable",
            Self::Timeout { .. } => "Timeout",
            Self::OutcomeUnknown { .. } => "OutcomeUnknown",
            Self::Other { .. } => "ServerError",
        }
    }

    /// The right that the identity lacks; `None` if admission (a quota, a policy, a webhook)
    /// refused the request, and for all other errors.
    pub fn missing_right(&self) -> Option<MissingRight> {
        match self {
            Self::Forbidden { message, .. } => MissingRight::of(message),
            _ => None,
        }
    }

    /// Whether the same request may succeed later although nobody changes anything. The host
    /// repeats it with a backoff before it reports a problem.
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

    /// Whether the error proves the cached state of the object wrong or doubtful, so that the host
    /// has to read the object before the next run.
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

/// The error of a configuration that cannot be used for a connection.
#[derive(Debug, thiserror::Error)]
#[error("the configuration of the connection to the API server cannot be used: {message}")]
pub struct ConnectError {
    /// The problem, and its place in the configuration.
    pub message: String,
}
