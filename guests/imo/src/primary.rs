use innkeeper_sdk::{Apply, Column, CustomResource, Metadata, Primary, Resource};
use serde::{Deserialize, Serialize};

/// An Imo: as the guest reads it, and as others make it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Imo {
    /// Its metadata.
    pub metadata: Metadata,
    /// What is wanted.
    #[serde(default)]
    pub spec: ImoSpec,
}

/// What is wanted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(not(target_arch = "wasm32"), derive(schemars::JsonSchema))]
pub struct ImoSpec {
    /// How many pods.
    #[serde(default = "one")]
    #[cfg_attr(not(target_arch = "wasm32"), schemars(range(min = 0)))]
    pub size: i32,
}

impl Default for ImoSpec {
    fn default() -> Self {
        Self { size: one() }
    }
}

/// What is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(not(target_arch = "wasm32"), derive(schemars::JsonSchema))]
pub struct ImoStatus {
    /// How far it is.
    pub phase: ImoPhase,
    /// How many pods there are.
    pub replicas: i32,
    /// How many of them are ready.
    pub ready_replicas: i32,
}

/// How far an Imo is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(not(target_arch = "wasm32"), derive(schemars::JsonSchema))]
pub enum ImoPhase {
    /// Not all pods are as wanted.
    Setup,
    /// All pods are as wanted.
    Ready,
}

fn one() -> i32 {
    1
}

impl Imo {
    /// An Imo of this name.
    pub fn new(name: impl Into<String>, spec: ImoSpec) -> Self {
        Self { metadata: Metadata::named(name), spec }
    }
}

impl Resource for Imo {
    const API_VERSION: &'static str = "imo.example.com/v1alpha1";
    const KIND: &'static str = "Imo";
    const PLURAL: &'static str = "imos";
}

impl Primary for Imo {
    fn metadata(&self) -> &Metadata {
        &self.metadata
    }
}

impl Apply for Imo {
    fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    fn metadata_mut(&mut self) -> &mut Metadata {
        &mut self.metadata
    }
}

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
}
