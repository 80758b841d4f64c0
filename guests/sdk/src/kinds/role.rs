use serde::Serialize;

use super::PolicyRule;
use crate::Metadata;

/// A Role: rights in one namespace. The module's `ServiceAccount` needs these rights itself, or the
/// verb `escalate`.
///
/// ```
/// use innkeeper_sdk::kinds::{PolicyRule, Role};
///
/// let role = Role::new("web").rule(PolicyRule::new("", ["pods"], ["get", "list"]));
/// assert_eq!(role.rules[0].resources, ["pods"]);
/// ```
#[derive(Clone, Debug, Serialize)]
pub struct Role {
    /// Metadata.
    pub metadata: Metadata,
    /// Rules.
    pub rules: Vec<PolicyRule>,
}

impl Role {
    /// Creates a Role without rules.
    pub fn new(name: impl Into<String>) -> Self {
        Self { metadata: Metadata::named(name), rules: Vec::new() }
    }

    /// Adds a rule.
    pub fn rule(mut self, rule: PolicyRule) -> Self {
        self.rules.push(rule);
        self
    }
}

crate::kind!(Apply for Role, "rbac.authorization.k8s.io/v1", "roles");
