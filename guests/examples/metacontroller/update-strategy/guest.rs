//! A ConfigMap that is updated as its primary says: when somebody deletes it, or by a deletion.

use innkeeper_sdk::kinds::ConfigMap;
use innkeeper_sdk::prelude::*;
use innkeeper_sdk::{IntoObject as _, UpdateGroup};
use serde::{Deserialize, Serialize};

/// An `UpdateStrategyDemo`, as the guest reads it.
#[derive(Deserialize)]
pub struct UpdateStrategyDemo {
    metadata: Metadata,
    spec: UpdateStrategyDemoSpec,
}

/// Desired state of an `UpdateStrategyDemo`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(not(target_arch = "wasm32"), derive(schemars::JsonSchema))]
pub struct UpdateStrategyDemoSpec {
    /// Value in the ConfigMap.
    #[serde(default = "initial")]
    config_data: String,
    /// How the ConfigMap gets another value.
    method: Method,
}

/// How the ConfigMap gets another value.
#[derive(Clone, Copy, Deserialize)]
#[cfg_attr(not(target_arch = "wasm32"), derive(schemars::JsonSchema))]
pub enum Method {
    /// When somebody has deleted it.
    OnDelete,
    /// The host deletes it.
    Recreate,
}

/// Observed state of an `UpdateStrategyDemo`.
#[derive(Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(not(target_arch = "wasm32"), derive(schemars::JsonSchema))]
pub struct UpdateStrategyDemoStatus {
    /// Value that the guest has seen.
    observed_config_data: String,
}

fn initial() -> String {
    "initial".to_owned()
}

kind!(Primary for UpdateStrategyDemo, "ctl.example.com/v1", "updatestrategydemos");

impl CustomResource for UpdateStrategyDemo {
    type Spec = UpdateStrategyDemoSpec;
    type Status = UpdateStrategyDemoStatus;
}

/// The reconcile logic.
pub struct Guest;

impl Reconciler for Guest {
    type Primary = UpdateStrategyDemo;

    fn describe() -> Manifest {
        Describe::reconciler_of::<UpdateStrategyDemo>("update-strategy", "1.0.0")
            .owns::<ConfigMap>()
            .installs(include_str!("crd.json"))
            .manifest()
    }

    fn reconcile(_context: &Context, observed: &Observed<UpdateStrategyDemo>) -> Outcome {
        let UpdateStrategyDemoSpec { config_data, method } = &observed.primary().spec;
        let group = match method {
            Method::OnDelete => UpdateGroup::on_delete("data"),
            Method::Recreate => UpdateGroup::recreate("data"),
        };
        let map = ConfigMap::new(format!("{}-data", observed.name())).data("value", config_data);
        let observed_config_data = config_data.clone();
        Desired::new()
            .update_group(group)
            .object(map.in_update_group("data"))
            .status(&UpdateStrategyDemoStatus { observed_config_data })
            .complete()
    }
}

innkeeper_sdk::export!(Guest);
