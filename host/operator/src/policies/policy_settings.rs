//! The settings of a policy, as its record has them.

use std::collections::BTreeSet;

use innkeeper_cluster::Namespaces;
use innkeeper_modules::module::PolicyMode;
use innkeeper_modules::{ValidatedPolicy, ValidatedSpec};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::recorded_limits::RecordedLimits;

/// The settings with which a revision of a policy reviews.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PolicySettings {
    /// The ServiceAccount that the module acts as; `None` only for a Module of a folder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service_account: Option<String>,
    /// Namespaces whose objects the policy reviews and reads; empty for all.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub namespaces: BTreeSet<String>,
    /// The parameters: an object, or null.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub parameters: Value,
    /// The limits of loading and of each review.
    pub limits: RecordedLimits,
    /// Secrets whose values the guest may read where it reconciles.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub secret_names: BTreeSet<String>,
    /// Whether the policy may change finalizers.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub allow_finalizers: bool,
    /// The checked `spec.policy`.
    pub policy: ValidatedPolicy,
}

impl PolicySettings {
    /// The settings of a checked spec; `None` without a policy.
    pub fn of(spec: &ValidatedSpec) -> Option<Self> {
        Some(Self {
            service_account: spec.service_account.clone(),
            namespaces: spec.namespaces.clone(),
            parameters: spec.parameters.clone(),
            limits: RecordedLimits::of(&spec.limits),
            secret_names: spec.secret_names.clone(),
            allow_finalizers: spec.allow_finalizers,
            policy: spec.policy.clone()?,
        })
    }

    /// The mode of a webhook: 0 is that of the Module, and each further one an override for
    /// namespaces. `None` if there is no such webhook.
    pub fn mode(&self, webhook: usize) -> Option<PolicyMode> {
        match webhook.checked_sub(1) {
            None => Some(self.policy.mode),
            Some(index) => self.policy.overrides.get(index).map(|one| one.mode),
        }
    }

    /// The namespaces that the policy reads.
    pub fn read_namespaces(&self) -> Namespaces {
        if self.namespaces.is_empty() {
            Namespaces::All
        } else {
            Namespaces::Only(self.namespaces.clone())
        }
    }
}
