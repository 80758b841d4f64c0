//! The classes of errors with which the API server answers a write: what the reconcile does next.

use innkeeper_cluster::ApiError;

use crate::reconcile::problem::Retry;

/// The class of an error: what the reconcile does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteErrorClass<'a> {
    /// The snapshot was outdated: the round ends, and the next one reads the object live.
    Outdated,
    /// Nobody knows whether the write was made: the round ends, and the next one reads the object
    /// live, after a backoff.
    OutcomeUnknown,
    /// The API server is overloaded or away: the round ends, and the next follows after a backoff.
    ServerUnavailable,
    /// The object cannot be applied like this: the next round says so, or recreates the object if
    /// the error is about an immutable field.
    Rejected {
        /// Whether the error is about an immutable field.
        immutable: bool,
        /// The API server's message.
        message: &'a str,
    },
    /// A problem of this object only: the next steps follow.
    ObjectOnly(Retry),
}

impl<'a> WriteErrorClass<'a> {
    /// The class of an error.
    pub fn of(error: &'a ApiError) -> Self {
        match error {
            ApiError::AlreadyExists { .. }
            | ApiError::ObjectDeleted { .. }
            | ApiError::UidMismatch { .. }
            | ApiError::Conflict { .. } => Self::Outdated,
            ApiError::OutcomeUnknown { .. } => Self::OutcomeUnknown,
            ApiError::Immutable { message, .. } => Self::Rejected { immutable: true, message },
            ApiError::Malformed { message } => Self::Rejected { immutable: false, message },
            // Another manager that gives up the field changes the object, which wakes the request.
            ApiError::FieldConflict { .. } => Self::ObjectOnly(Retry::OnChange),
            ApiError::TooManyRequests { .. }
            | ApiError::Unavailable { .. }
            | ApiError::Timeout { .. }
            | ApiError::Unauthorized { .. } => {
                if error.makes_unknown() {
                    Self::OutcomeUnknown
                } else {
                    Self::ServerUnavailable
                }
            }
            ApiError::NotServed { .. }
            | ApiError::KindMismatch { .. }
            | ApiError::Forbidden { .. }
            | ApiError::Invalid { .. }
            | ApiError::TooLarge { .. }
            | ApiError::NamespaceNotFound { .. }
            | ApiError::NamespaceTerminating { .. }
            | ApiError::NotFound { .. }
            | ApiError::Other { .. } => Self::ObjectOnly(Retry::Backoff),
        }
    }

    /// Whether the next round has to read the object live.
    pub fn makes_unknown(self) -> bool {
        matches!(self, Self::Outdated | Self::OutcomeUnknown)
    }

    /// Whether the next round follows at once, with a new plan.
    pub fn plans_again(self) -> bool {
        matches!(self, Self::Outdated | Self::Rejected { .. })
    }

    /// Whether the rest of the plan is not applied in this round.
    pub fn ends_round(self) -> bool {
        matches!(self, Self::Outdated | Self::OutcomeUnknown | Self::ServerUnavailable)
    }

    /// What helps, if the error is a problem to report now.
    pub fn retry(self) -> Option<Retry> {
        match self {
            Self::Outdated | Self::Rejected { .. } => None,
            Self::OutcomeUnknown | Self::ServerUnavailable => Some(Retry::Backoff),
            Self::ObjectOnly(retry) => Some(retry),
        }
    }
}

#[cfg(test)]
mod tests {
    use innkeeper_cluster::Identity;

    use super::*;

    fn message() -> String {
        "refused".to_owned()
    }

    #[test]
    fn name_that_is_taken_ends_the_round_and_plans_again() {
        let error = ApiError::AlreadyExists { message: message() };
        let class = WriteErrorClass::of(&error);
        assert!(class.makes_unknown() && class.ends_round() && class.plans_again());
        assert_eq!(class.retry(), None);
    }

    #[test]
    fn invalid_object_is_a_problem_of_its_own() {
        let error = ApiError::Invalid { message: message() };
        let class = WriteErrorClass::of(&error);
        assert_eq!(class.retry(), Some(Retry::Backoff));
        assert!(!class.ends_round() && !class.plans_again() && !class.makes_unknown());
    }

    #[test]
    fn immutable_field_plans_again_without_ending_the_round() {
        let error = ApiError::Immutable { field: "spec.selector".to_owned(), message: message() };
        let class = WriteErrorClass::of(&error);
        assert!(class.plans_again() && !class.ends_round());
        assert_eq!(class, WriteErrorClass::Rejected { immutable: true, message: "refused" });
    }

    #[test]
    fn busy_server_ends_the_round_and_backs_off() {
        let busy = ApiError::TooManyRequests { retry_after: None, message: message() };
        let rejected = ApiError::Unauthorized { identity: Identity::Host, message: message() };
        for error in [busy, rejected] {
            let class = WriteErrorClass::of(&error);
            assert!(class.ends_round() && !class.plans_again(), "{error}");
            assert_eq!(class.retry(), Some(Retry::Backoff), "{error}");
        }
    }
}
