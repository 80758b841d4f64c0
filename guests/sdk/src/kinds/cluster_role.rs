use serde::Serialize;

use super::PolicyRule;
use crate::Metadata;

/// A `ClusterRole`: rights in all namespaces and on cluster-scoped objects. The module's
/// `ServiceAccount` needs these rights itself, or the verb `escalate`.
///
/// ```
/// use innkeeper_sdk::kinds::{PolicyRule, ClusterRole};
///
/// let role = ClusterRole::new("web").rule(PolicyRule::new("", ["pods"], ["get", "list"]));
/// assert_eq!(role.rules[0].resources, ["pods"]);
/// ```
#[derive(Clone, Debug, Serialize)]
pub struct ClusterRole {
    /// Metadata.
    pub metadata: Metadata,
    /// Rules.
    pub rules: Vec<PolicyRule>,
}

impl ClusterRole {
    /// Creates a `ClusterRole` without rules.
    pub fn new(name: impl Into<String>) -> Self {
        Self { metadata: Metadata::named(name), rules: Vec::new() }
    }

    /// Adds a rule.
    pub fn rule(mut self, rule: PolicyRule) -> Self {
        self.rules.push(rule);
        self
    }
}

crate::kind!(Apply for ClusterRole, "rbac.authorization.k8s.io/v1", "clusterroles", Cluster);
