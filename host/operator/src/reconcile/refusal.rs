//! Why a write is refused, as far as it says something about the module.

use std::sync::Arc;

use innkeeper_cluster::{ApiError, MissingRight};
use innkeeper_contract::Kind;
use innkeeper_core::extra_rights;

/// Why a write is refused. A busy or absent API server refuses nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The module's ServiceAccount lacks a right: the module is not healthy.
    Right {
        /// The kind of the object.
        kind: Arc<Kind>,
        /// Whose right is missing, and which: verb, resource and namespace.
        denial: String,
        /// The right.
        missing: MissingRight,
    },
    /// The object cannot be written as it is, or another client has it or its fields. Its primary's
    /// data or other users are the cause, so the module is healthy.
    Object,
}

impl Refusal {
    /// The refusal of an error with which the API server answers a write.
    pub fn of(error: &ApiError, kind: &Arc<Kind>) -> Option<Self> {
        match error {
            ApiError::Forbidden { denial, .. } => Some(match error.missing_right() {
                Some(missing) => {
                    Self::Right { kind: kind.clone(), denial: denial.to_string(), missing }
                }
                None => Self::Object,
            }),
            ApiError::Immutable { .. }
            | ApiError::Malformed { .. }
            | ApiError::Invalid { .. }
            | ApiError::TooLarge { .. }
            | ApiError::FieldConflict { .. }
            | ApiError::NamespaceNotFound { .. }
            | ApiError::NamespaceTerminating { .. } => Some(Self::Object),
            ApiError::NotFound { .. }
            | ApiError::NotServed { .. }
            | ApiError::KindMismatch { .. }
            | ApiError::AlreadyExists { .. }
            | ApiError::Conflict { .. }
            | ApiError::ObjectDeleted { .. }
            | ApiError::UidMismatch { .. }
            | ApiError::Unauthorized { .. }
            | ApiError::TooManyRequests { .. }
            | ApiError::Unavailable { .. }
            | ApiError::Timeout { .. }
            | ApiError::OutcomeUnknown { .. }
            | ApiError::Other { .. } => None,
        }
    }

    /// What to do about it, to follow the error's text.
    pub fn advice(&self) -> Option<String> {
        let Self::Right { kind, missing, .. } = self else { return None };
        let kind = &**kind;
        Some(match (missing, extra_rights::of(kind)) {
            (MissingRight::Granted, Some(needs)) => {
                format!("; to write {}, the ServiceAccount needs {needs}", kind.plural)
            }
            (MissingRight::OwnerFinalizers, _) => {
                "; the ServiceAccount needs the verb update on the finalizers of the primaries; `innkeeper rbac` prints the rule".to_owned()
            }
            _ => "; `innkeeper rbac` prints the rules that the guest needs".to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use innkeeper_cluster::{Denial, Identity};

    use super::*;

    fn forbidden(why: &str) -> ApiError {
        let denial = Denial {
            identity: Identity::Host,
            verb: "create".into(),
            resource: "rolebindings.rbac.authorization.k8s.io".into(),
            namespace: Some("web".into()),
        };
        ApiError::Forbidden {
            denial: Box::new(denial),
            message: format!("x \"a\" is forbidden: {why}"),
        }
    }

    fn bindings() -> Arc<Kind> {
        Arc::new(Kind::namespaced("rbac.authorization.k8s.io/v1", "RoleBinding", "rolebindings"))
    }

    #[test]
    fn refused_role_binding_is_explained_by_the_verb_bind() {
        let error = forbidden(
            "user \"x\" (groups=[]) is attempting to grant RBAC permissions not currently held:",
        );
        let advice = Refusal::of(&error, &bindings()).unwrap().advice().unwrap();
        assert!(advice.contains("to write rolebindings"), "{advice}");
        assert!(advice.contains("the verb bind on that role"), "{advice}");
        let error = forbidden("User \"x\" cannot create resource \"rolebindings\"");
        let advice = Refusal::of(&error, &bindings()).unwrap().advice().unwrap();
        assert!(advice.contains("`innkeeper rbac` prints the rules"), "{advice}");
    }

    #[test]
    fn refusal_by_a_quota_is_about_the_object() {
        let refusal = Refusal::of(&forbidden("exceeded quota: q"), &bindings()).unwrap();
        assert_eq!(refusal, Refusal::Object);
        assert_eq!(refusal.advice(), None);
    }
}
