//! `spec.policy` of a Module. The doc comments are the descriptions in its
//! CustomResourceDefinition.

use std::collections::BTreeMap;

use innkeeper_contract::{LabelRequirement, MatchCondition, PolicyRule, SelectorOperator};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How the policy of the guest reviews requests. It is the consent to review them: the host refuses
/// a guest with a policy whose Module has no policy.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PolicySpec {
    /// What a verdict does. Default: Enforce.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<PolicyMode>,

    /// What happens to a request that the policy cannot decide about, or that no replica answers.
    /// Default: Fail for a policy that validates, while every live replica answers for it; Ignore
    /// for one that changes objects. Outside of the mode Enforce it is always Ignore.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure_policy: Option<FailurePolicy>,

    /// The requests that the policy reviews, in place of those in the guest's manifest: requests
    /// that match one of the rules.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32))]
    pub rules: Vec<PolicyRule>,

    /// Namespaces whose objects the policy reviews, by their labels; all if left out. It concerns
    /// no cluster-scoped objects, but for Namespaces, by their own labels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace_selector: Option<LabelSelector>,

    /// Objects that the policy reviews, by their labels; all if left out. Anybody who may write an
    /// object may choose its labels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub object_selector: Option<LabelSelector>,

    /// Conditions in CEL, in addition to those in the guest's manifest. The API server sends only
    /// requests for which all of them hold.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    pub match_conditions: Vec<MatchCondition>,

    /// Other modes for some namespaces. The first override whose requirement a namespace meets
    /// counts. Cluster-scoped objects have none, but for Namespaces, by their own labels.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 8))]
    pub overrides: Vec<ModeOverride>,

    /// Whether the host also reviews the existing objects in the background, and reports those that
    /// the policy would deny. Default: true.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub background: Option<bool>,
}

/// What a verdict does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum PolicyMode {
    /// Denied requests fail, and changes are made.
    #[default]
    Enforce,
    /// No request fails or is changed; the user of the request sees a warning.
    Warn,
    /// No request fails or is changed; only the audit log and metrics show what Enforce would do.
    Audit,
}

impl PolicyMode {
    /// Returns the name, as in the Module.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Enforce => "Enforce",
            Self::Warn => "Warn",
            Self::Audit => "Audit",
        }
    }
}

/// What happens to a request that the policy cannot decide about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum FailurePolicy {
    /// The API server denies it.
    Fail,
    /// The API server allows it.
    Ignore,
}

/// Objects by their labels: all members must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct LabelSelector {
    /// Labels with exactly these values.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 64))]
    pub match_labels: BTreeMap<String, String>,

    /// Requirements on labels.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub match_expressions: Vec<LabelRequirement>,
}

impl LabelSelector {
    /// Whether there is no requirement, so that all objects are selected.
    pub fn is_everything(&self) -> bool {
        *self == Self::default()
    }

    /// Returns the selector as requirements: a label with an exact value is `In` of one value.
    pub fn requirements(&self) -> Vec<LabelRequirement> {
        let labels = self.match_labels.iter().map(|(key, value)| LabelRequirement {
            key: key.clone(),
            operator: SelectorOperator::In,
            values: vec![value.clone()],
        });
        labels.chain(self.match_expressions.iter().cloned()).collect()
    }
}

/// Another mode for some namespaces.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ModeOverride {
    /// Namespaces, by a requirement on one label; the label kubernetes.io/metadata.name has the
    /// name.
    pub namespaces: LabelRequirement,

    /// What a verdict does in these namespaces.
    pub mode: PolicyMode,
}
