use innkeeper_sdk::{Column, CustomResource, Metadata, Rule, kind};
use serde::{Deserialize, Serialize};

use crate::KuriStatus;
use crate::previous_status::PreviousStatus;

/// A Kuri, as this guest reads it and as other guests desire it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Kuri {
    /// Metadata.
    pub metadata: Metadata,
    /// Spec.
    #[serde(default)]
    pub spec: KuriSpec,
    /// The status that the last run of the guest reported.
    #[serde(default, rename = "status", skip_serializing)]
    pub(crate) previous_status: PreviousStatus,
}

/// Desired state of a Kuri.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(not(target_arch = "wasm32"), derive(schemars::JsonSchema))]
pub struct KuriSpec {
    /// Image of the Job.
    #[serde(default = "image")]
    #[cfg_attr(not(target_arch = "wasm32"), schemars(length(min = 1)))]
    pub image: String,
    /// Command of the Job: a program and its arguments.
    #[serde(default = "command")]
    pub command: Vec<String>,
    /// Period, from 10s to 8760h: when the Job has ended and the period since its start has
    /// passed, the guest deletes the Job and its pods and creates the Job again. If left out, the
    /// Job runs once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(
        not(target_arch = "wasm32"),
        schemars(length(max = 32), regex(pattern = "^([0-9]+[hms])+$"))
    )]
    pub period: Option<String>,
    /// Seconds until a run fails, whatever its pods do; no limit if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(not(target_arch = "wasm32"), schemars(range(min = 1)))]
    pub deadline_seconds: Option<i64>,
}

impl Default for KuriSpec {
    fn default() -> Self {
        Self { image: image(), command: command(), period: None, deadline_seconds: None }
    }
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
        Self { metadata: Metadata::named(name), spec, previous_status: PreviousStatus::default() }
    }
}

kind!(Primary + Apply for Kuri, "kuri.example.com/v1alpha1", "kuris");

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
