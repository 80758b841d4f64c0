use innkeeper_sdk::{Apply, Column, CustomResource, Metadata, Primary, Resource, Rule};
use serde::{Deserialize, Serialize};

/// A Kuri, as this guest reads it and as other guests desire it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Kuri {
    /// Metadata.
    pub metadata: Metadata,
    /// Spec.
    #[serde(default)]
    pub spec: KuriSpec,
}

/// Desired state of a Kuri.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(not(target_arch = "wasm32"), derive(schemars::JsonSchema))]
pub struct KuriSpec {
    /// Image of the Job.
    #[serde(default = "image")]
    #[cfg_attr(not(target_arch = "wasm32"), schemars(length(min = 1)))]
    pub image: String,
    /// Command of the Job: a program and its arguments.
    #[serde(default = "command")]
    pub command: Vec<String>,
}

impl Default for KuriSpec {
    fn default() -> Self {
        Self { image: image(), command: command() }
    }
}

/// Observed state of a Kuri.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(not(target_arch = "wasm32"), derive(schemars::JsonSchema))]
pub struct KuriStatus {
    /// Phase.
    pub phase: KuriPhase,
}

/// Phase of a Kuri.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(not(target_arch = "wasm32"), derive(schemars::JsonSchema))]
pub enum KuriPhase {
    /// The Job has not ended.
    Setup,
    /// The Job has succeeded.
    Done,
    /// The Job has failed.
    Failed,
    /// The Job and its pods are being deleted.
    Cleanup,
    /// The Job and its pods are deleted, and none is desired.
    Clean,
}

fn image() -> String {
    "busybox".to_owned()
}

fn command() -> Vec<String> {
    ["echo", "kuri"].map(str::to_owned).to_vec()
}

impl Kuri {
    /// Creates a Kuri.
    pub fn new(name: impl Into<String>, spec: KuriSpec) -> Self {
        Self { metadata: Metadata::named(name), spec }
    }
}

impl Resource for Kuri {
    const API_VERSION: &'static str = "kuri.example.com/v1alpha1";
    const KIND: &'static str = "Kuri";
    const PLURAL: &'static str = "kuris";
}

impl Primary for Kuri {
    fn metadata(&self) -> &Metadata {
        &self.metadata
    }
}

impl Apply for Kuri {
    fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    fn metadata_mut(&mut self) -> &mut Metadata {
        &mut self.metadata
    }
}

impl CustomResource for Kuri {
    type Spec = KuriSpec;
    type Status = KuriStatus;

    const COLUMNS: &'static [Column] = &[
        Column::text("Phase", ".status.phase"),
        Column::text("Ready", ".status.conditions[?(@.type==\"Ready\")].status"),
    ];
    const RULES: &'static [Rule] = &[Rule {
        rule: "self.metadata.name.size() <= 63",
        message: "the name of a Kuri names its Job, which is also the value of a label: use at most 63 characters",
    }];
    const SPEC_MAY_BE_LEFT_OUT: bool = true;
    const SHOWS_LAST_RUN: bool = true;
}
