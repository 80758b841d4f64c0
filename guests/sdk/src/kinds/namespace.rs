use serde::Serialize;

use crate::Metadata;

/// A Namespace. The host deletes one only if the guest desired it with
/// [`Policy::Deletable`](crate::Policy::Deletable).
///
/// ```
/// use innkeeper_sdk::Apply as _;
/// use innkeeper_sdk::kinds::Namespace;
///
/// let team = Namespace::new("team-a").label("pod-security.kubernetes.io/enforce", "restricted");
/// assert_eq!(team.metadata.name, "team-a");
/// ```
#[derive(Clone, Debug, Serialize)]
pub struct Namespace {
    /// Metadata.
    pub metadata: Metadata,
}

impl Namespace {
    /// Creates a Namespace.
    pub fn new(name: impl Into<String>) -> Self {
        Self { metadata: Metadata::named(name) }
    }
}

crate::kind!(Apply for Namespace, "v1", "namespaces", Cluster);
