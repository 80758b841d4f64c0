use innkeeper_sdk::{Column, CustomResource, Metadata, kind};
use serde::{Deserialize, Serialize};

/// An Imo, as this guest reads it and as other guests desire it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Imo {
    /// Metadata.
    pub metadata: Metadata,
    /// Spec.
    #[serde(default)]
    pub spec: ImoSpec,
}

/// Desired state of an Imo.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(not(target_arch = "wasm32"), derive(schemars::JsonSchema))]
pub struct ImoSpec {
    /// Number of pods.
    #[serde(default = "one")]
    #[cfg_attr(not(target_arch = "wasm32"), schemars(range(min = 0)))]
    pub size: i32,
}

impl Default for ImoSpec {
    fn default() -> Self {
        Self { size: one() }
    }
}

/// Observed state of an Imo.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(not(target_arch = "wasm32"), derive(schemars::JsonSchema))]
pub struct ImoStatus {
    /// Phase.
    pub phase: ImoPhase,
    /// Number of pods.
    pub replicas: i32,
    /// Number of ready pods.
    pub ready_replicas: i32,
}

/// Phase of an Imo.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(not(target_arch = "wasm32"), derive(schemars::JsonSchema))]
pub enum ImoPhase {
    /// Not all pods are ready.
    Setup,
    /// All pods are ready.
    Ready,
}

fn one() -> i32 {
    1
}

impl Imo {
    /// Creates an Imo.
    pub fn new(name: impl Into<String>, spec: ImoSpec) -> Self {
        Self { metadata: Metadata::named(name), spec }
    }
}

kind!(Primary + Apply for Imo, "imo.example.com/v1alpha1", "imos");

impl CustomResource for Imo {
    type Spec = ImoSpec;
    type Status = ImoStatus;

    const COLUMNS: &'static [Column] = &[
        Column::integer("Size", ".spec.size"),
        Column::integer("Replicas", ".status.readyReplicas"),
        Column::text("Phase", ".status.phase"),
        Column::text("Ready", ".status.conditions[?(@.type==\"Ready\")].status"),
    ];
    const SPEC_MAY_BE_LEFT_OUT: bool = true;
    const SHOWS_LAST_RUN: bool = true;
    const SHOWS_RUN_RESULT: bool = true;
}
