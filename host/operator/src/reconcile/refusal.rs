//! Why a write is refused, as far as it says something about the module.

use std::sync::Arc;

use innkeeper_cluster::{ApiError, MissingRight};
use innkeeper_contract::Kind;
use innkeeper_core::{ObjectRef, extra_rights};

/// A write that lacks a right.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForbiddenWrite {
    /// The kind of the object.
    pub kind: Arc<Kind>,
    /// The namespace of the object; empty for a cluster-scoped one.
    pub namespace: Box<str>,
    /// The verb that the API server refuses, as in RBAC: `create`.
    pub verb: Box<str>,
}

/// Why a write is refused. A busy or absent API server refuses nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RefusalCause {
    /// The module's ServiceAccount lacks a right.
    MissingRight {
        /// The write.
        write: Arc<ForbiddenWrite>,
        /// Whose right is missing, and which: verb, resource and namespace.
        denial: String,
        /// The right.
        missing: MissingRight,
    },
    /// The object cannot be written as it is, or another client has it or its fields. Its primary's
    /// data or other users are the cause, so the module is healthy.
    Data,
    /// The guest desires what no module may write, so the module is at fault.
    Guest,
}

impl RefusalCause {
    /// The refusal of an error with which the API server answers a write.
    pub fn of(error: &ApiError, object_ref: &ObjectRef) -> Option<Self> {
        match error {
            ApiError::Forbidden { denial, .. } => Some(match error.missing_right() {
                Some(missing) => {
                    let write = ForbiddenWrite {
                        kind: object_ref.kind.clone(),
                        namespace: object_ref.key.namespace().into(),
                        verb: denial.verb.clone(),
                    };
                    Self::MissingRight {
                        write: Arc::new(write),
                        denial: denial.to_string(),
                        missing,
                    }
                }
                None => Self::Data,
            }),
            ApiError::Immutable { .. }
            | ApiError::Malformed { .. }
            | ApiError::Invalid { .. }
            | ApiError::TooLarge { .. }
            | ApiError::FieldConflict { .. }
            | ApiError::NamespaceNotFound { .. }
            | ApiError::NamespaceTerminating { .. } => Some(Self::Data),
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

    /// The write for which the module lacks a right, and the text of the denial. The rights that a
    /// role grants do not count: which role it is often comes from the primary's own data.
    pub fn of_module(&self) -> Option<(&Arc<ForbiddenWrite>, &str)> {
        match self {
            Self::MissingRight { missing: MissingRight::Granted, .. }
            | Self::Data
            | Self::Guest => None,
            Self::MissingRight { write, denial, .. } => Some((write, denial)),
        }
    }

    /// What to do about it, to follow the error's text.
    pub fn advice(&self) -> Option<String> {
        let Self::MissingRight { write, missing, .. } = self else { return None };
        let kind = &*write.kind;
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
    use innkeeper_core::ObjectKey;

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

    fn refusal(why: &str) -> RefusalCause {
        let kind = Kind::namespaced("rbac.authorization.k8s.io/v1", "RoleBinding", "rolebindings");
        let binding = ObjectRef::new(Arc::new(kind), ObjectKey::new("web", "a"));
        RefusalCause::of(&forbidden(why), &binding).unwrap()
    }

    #[test]
    fn refused_role_binding_is_explained_by_the_verb_bind() {
        let granted = refusal(
            "user \"x\" (groups=[]) is attempting to grant RBAC permissions not currently held:",
        );
        let advice = granted.advice().unwrap();
        assert!(advice.contains("to write rolebindings"), "{advice}");
        assert!(advice.contains("the verb bind on that role"), "{advice}");
        let advice =
            refusal("User \"x\" cannot create resource \"rolebindings\"").advice().unwrap();
        assert!(advice.contains("`innkeeper rbac` prints the rules"), "{advice}");
    }

    #[test]
    fn only_a_missing_verb_or_finalizer_right_is_the_modules() {
        let of_module = |why| refusal(why).of_module().is_some();
        assert!(of_module("User \"x\" cannot create resource \"rolebindings\""));
        assert!(of_module("cannot set blockOwnerDeletion if an ownerReference refers to"));
        assert!(!of_module(
            "user \"x\" is attempting to grant RBAC permissions not currently held:"
        ));
        assert!(!of_module("exceeded quota: q"));
    }

    #[test]
    fn refusal_by_a_quota_is_about_the_object() {
        let refusal = refusal("exceeded quota: q");
        assert_eq!(refusal, RefusalCause::Data);
        assert_eq!(refusal.advice(), None);
    }
}
