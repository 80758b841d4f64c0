//! Errors without the server's text: for requests whose body nobody may see.

use super::ApiError;

/// What stands for the server's text.
const HIDDEN: &str = "the API server's message is hidden, since it may quote values that the host copies from a Secret; its audit log, quotas, policies and webhooks tell more";

impl ApiError {
    /// The same error without the server's text, which may quote the body of the request in any
    /// form. The text about a missing right stays: the API server checks rights before it reads the
    /// body.
    #[must_use]
    pub fn without_message(self) -> Self {
        if self.missing_right().is_some() {
            return self;
        }
        let message = HIDDEN.to_owned();
        match self {
            Self::NotFound { .. } => Self::NotFound { message },
            Self::Forbidden { denial, .. } => Self::Forbidden { denial, message },
            Self::FieldConflict { .. } => Self::FieldConflict { conflicts: Vec::new(), message },
            Self::AlreadyExists { .. } => Self::AlreadyExists { message },
            Self::Conflict { .. } => Self::Conflict { message },
            Self::ObjectDeleted { .. } => Self::ObjectDeleted { message },
            Self::UidMismatch { .. } => Self::UidMismatch { message },
            Self::Immutable { .. } => Self::Immutable { field: String::new(), message },
            Self::Invalid { .. } => Self::Invalid { message },
            Self::TooLarge { .. } => Self::TooLarge { message },
            Self::Malformed { .. } => Self::Malformed { message },
            Self::Unauthorized { identity, .. } => Self::Unauthorized { identity, message },
            Self::TooManyRequests { retry_after, .. } => {
                Self::TooManyRequests { retry_after, message }
            }
            Self::Unavailable { .. } => Self::Unavailable { message },
            Self::Timeout { .. } => Self::Timeout { message },
            Self::OutcomeUnknown { .. } => Self::OutcomeUnknown { message },
            Self::Other { code, .. } => Self::Other { code, message },
            // The host makes these texts from the request's own kind and namespace.
            error @ (Self::NotServed { .. }
            | Self::KindMismatch { .. }
            | Self::NamespaceNotFound { .. }
            | Self::NamespaceTerminating { .. }) => error,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Identity;
    use crate::error::Denial;

    fn forbidden(message: &str) -> ApiError {
        let denial = Denial {
            identity: Identity::Host,
            verb: "create".into(),
            resource: "secrets".into(),
            namespace: Some("n".into()),
        };
        ApiError::Forbidden { denial: Box::new(denial), message: message.to_owned() }
    }

    #[test]
    fn error_keeps_its_type_and_loses_the_servers_text() {
        let message = || "quotes hunter2".to_owned();
        for error in [
            ApiError::Invalid { message: message() },
            ApiError::Malformed { message: message() },
            ApiError::Immutable { field: "data[hunter2]".to_owned(), message: message() },
            ApiError::Other { code: 500, message: message() },
            forbidden("admission webhook \"w\" denied the request: hunter2"),
        ] {
            let reason = error.reason();
            let hidden = error.without_message();
            assert_eq!(hidden.reason(), reason);
            assert!(!format!("{hidden} {hidden:?}").contains("hunter2"), "{hidden:?}");
        }
    }

    #[test]
    fn missing_right_is_still_named() {
        let message = "secrets \"a\" is forbidden: User \"u\" cannot create resource \"secrets\" in API group \"\" in the namespace \"n\"";
        assert_eq!(forbidden(message).without_message(), forbidden(message));
    }
}
