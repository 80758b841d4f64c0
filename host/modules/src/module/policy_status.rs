//! `status.policy` of a Module. The doc comments are the descriptions in its
//! CustomResourceDefinition.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::policy_preview_status::HeldSettings;

/// The policy of the active revision.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct PolicyStatus {
    /// Validate, or Mutate for a policy that also changes objects.
    pub kind: String,

    /// What a verdict does, apart from overrides for namespaces: Enforce, Warn or Audit. Empty
    /// while the policy reviews nothing, since its first settings are held.
    pub mode: String,

    /// What the webhook configuration does with a request that the policy cannot decide about, or
    /// that no replica answers: Fail or Ignore.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure_policy: Option<String>,

    /// How many live replicas of the host review with the record, of all live replicas, for example
    /// 2/2.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replicas: Option<String>,

    /// The webhook configuration, by resource and name, as in
    /// validatingwebhookconfigurations/innkeeper-policy-labels.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub webhooks: Option<String>,

    /// Digest of the decided revision and its settings, with which all replicas are to review: 16
    /// hex digits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub record: Option<String>,

    /// Settings that would deny existing objects or recent requests, and wait for an approval. The
    /// policy reviews with the settings before them, or nothing if there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub held_settings: Option<HeldSettings>,

    /// The results of the audit of existing objects, unless spec.policy.background is false.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub audit: Option<PolicyAuditStatus>,
}

/// The results of the audit of existing objects. Their names and the messages are in Reports and
/// `ClusterReports` of openreports.io, if the API server serves these.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct PolicyAuditStatus {
    /// Existing objects that the policy would allow as they are.
    pub passed: u64,

    /// Existing objects that the policy would deny.
    pub denied: u64,

    /// Existing objects that the policy would allow with a warning, or change.
    pub warned: u64,

    /// Existing objects whose review gave no verdict.
    pub failed: u64,

    /// When all existing objects had been reviewed with the active revision and its settings; left
    /// out until then.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub completed: Option<String>,

    /// The kinds that the audit leaves out, and why; or why the leader cannot write reports.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}
