use serde::Serialize;

use super::{RoleRef, Subject};
use crate::Metadata;

/// A `RoleBinding`: gives subjects the rights of a role in one namespace. The
/// module's `ServiceAccount` needs these rights itself, or the verb `bind` on the role.
///
/// ```
/// use innkeeper_sdk::kinds::{RoleBinding, RoleRef, Subject};
///
/// let binding = RoleBinding::new("web", RoleRef::cluster_role("view"))
///     .subject(Subject::service_account("shop", "web"));
/// assert_eq!(binding.subjects[0].name, "web");
/// ```
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RoleBinding {
    /// Metadata.
    pub metadata: Metadata,
    /// The role. Immutable.
    pub role_ref: RoleRef,
    /// Who gets the rights.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub subjects: Vec<Subject>,
}

impl RoleBinding {
    /// Creates a `RoleBinding` without subjects.
    pub fn new(name: impl Into<String>, role: RoleRef) -> Self {
        Self { metadata: Metadata::named(name), role_ref: role, subjects: Vec::new() }
    }

    /// Adds a subject.
    pub fn subject(mut self, subject: Subject) -> Self {
        self.subjects.push(subject);
        self
    }
}

crate::kind!(Apply for RoleBinding, "rbac.authorization.k8s.io/v1", "rolebindings");
