//! What the preview of a policy found, in the status of a Module. The doc comments are the
//! descriptions in its CustomResourceDefinition.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How a policy decides differently from the one before it, about existing objects and recent
/// requests. Before the first policy everything is allowed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct PolicyPreviewStatus {
    /// Existing objects that it reviews.
    pub objects: u32,
    /// Those of them that the preview reviewed: at most 500, within a minute.
    pub reviewed: u32,
    /// Recent requests that the preview reviewed again.
    pub requests: u32,
    /// Objects and requests that it denies and that were allowed.
    pub newly_denied: u32,
    /// Objects and requests that it allows and that were denied.
    pub newly_allowed: u32,
    /// Objects and requests that it changes differently.
    pub newly_changed: u32,
    /// Reviews that fail and did not fail.
    pub newly_failing: u32,
    /// Objects that the preview left out, each with the reason; at most ten.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 10))]
    pub left_out: Vec<String>,
    /// The most important objects and requests, at most ten.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 10))]
    pub examples: Vec<ReviewExampleStatus>,
}

/// An object or a request about which the two policies decide differently.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReviewExampleStatus {
    /// Deny, Fail, Change or Allow.
    pub decision: String,
    /// Kind, namespace and name of the object, as in `Deployment web/a`; of a recent request its
    /// operation, resource, namespace and name, as in `UPDATE deployments web/a`.
    pub object: String,
    /// The message of the denial or of the failure; the fields that it changes differently.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub details: Vec<String>,
}

/// Settings of a policy that wait for an approval.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HeldSettings {
    /// The digest for the annotation innkeeper.dev/approve: of the component and the settings
    /// together.
    pub digest: String,
    /// The reason, one word in CamelCase.
    pub reason: String,
    /// Message for people: why they are held, and what to do.
    #[schemars(length(max = 4096))]
    pub message: String,
    /// The result of their preview.
    pub preview: PolicyPreviewStatus,
}
