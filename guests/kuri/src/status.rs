use serde::{Deserialize, Serialize};

/// Observed state of a Kuri.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(not(target_arch = "wasm32"), derive(schemars::JsonSchema))]
pub struct KuriStatus {
    /// Phase.
    pub phase: KuriPhase,
    /// The last runs of a periodic Kuri that have ended, newest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(not(target_arch = "wasm32"), schemars(length(max = 5)))]
    pub history: Vec<KuriRun>,
    /// Number of runs of a periodic Kuri that have ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runs: Option<i64>,
    /// Time from which the next run of a periodic Kuri can start; missing when this time has
    /// passed and the run has not ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(not(target_arch = "wasm32"), schemars(extend("format" = "date-time")))]
    pub next_run: Option<String>,
}

/// A run of a periodic Kuri that has ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(not(target_arch = "wasm32"), derive(schemars::JsonSchema))]
pub struct KuriRun {
    /// Time at which the Job was created.
    #[cfg_attr(not(target_arch = "wasm32"), schemars(extend("format" = "date-time")))]
    pub start: String,
    /// Time at which the Job ended.
    #[cfg_attr(not(target_arch = "wasm32"), schemars(extend("format" = "date-time")))]
    pub end: String,
    /// How the Job ended.
    pub result: KuriResult,
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(not(target_arch = "wasm32"), derive(schemars::JsonSchema))]
pub enum KuriResult {
    /// The Job has succeeded.
    Succeeded,
    /// The Job has failed.
    Failed,
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
