use serde::Serialize;

use super::{RoleRef, Subject};
use crate::Metadata;

/// A `ClusterRoleBinding`: gives subjects the rights of a role in the whole cluster. The
/// module's `ServiceAccount` needs these rights itself, or the verb `bind` on the role.
///
/// ```
/// use innkeeper_sdk::kinds::{ClusterRoleBinding, RoleRef, Subject};
///
/// let binding = ClusterRoleBinding::new("web", RoleRef::cluster_role("view"))
///     .subject(Subject::service_account("shop", "web"));
/// assert_eq!(binding.subjects[0].name, "web");
/// ```
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ClusterRoleBinding {
    /// Metadata.
    pub metadata: Metadata,
    /// The role. Immutable.
    pub role_ref: RoleRef,
    /// Who gets the rights.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub subjects: Vec<Subject>,
}

impl ClusterRoleBinding {
    /// Creates a `ClusterRoleBinding` without subjects.
    pub fn new(name: impl Into<String>, role: RoleRef) -> Self {
        Self { metadata: Metadata::named(name), role_ref: role, subjects: Vec::new() }
    }

    /// Adds a subject.
    pub fn subject(mut self, subject: Subject) -> Self {
        self.subjects.push(subject);
        self
    }
}

crate::kind!(Apply for ClusterRoleBinding, "rbac.authorization.k8s.io/v1", "clusterrolebindings", Cluster);
