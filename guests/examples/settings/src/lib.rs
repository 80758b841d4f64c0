//! Each `Settings` becomes a ConfigMap per name in `spec.names`: a name that is taken out of
//! the list takes its ConfigMap with it.

use innkeeper_sdk::kinds::ConfigMap;
use innkeeper_sdk::{
    Apply, Column, Context, CustomResource, Describe, Desired, Manifest, Metadata, Observed,
    Outcome, Primary, Reconciler, Resource,
};
use serde::{Deserialize, Serialize};

/// A Settings object, as the guest reads it.
#[derive(Clone, Debug, Deserialize)]
pub struct Settings {
    /// Its metadata.
    pub metadata: Metadata,
    /// What is wanted.
    pub spec: SettingsSpec,
}

/// What is wanted.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(not(target_arch = "wasm32"), derive(schemars::JsonSchema))]
pub struct SettingsSpec {
    /// Of each name there is a ConfigMap `<name of the Settings>-<name>`.
    #[serde(default)]
    #[cfg_attr(not(target_arch = "wasm32"), schemars(extend("x-kubernetes-list-type" = "set")))]
    pub names: Vec<String>,
    /// What each of them says under the key `text`.
    #[serde(default)]
    pub text: String,
}

/// What is.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(not(target_arch = "wasm32"), derive(schemars::JsonSchema))]
pub struct SettingsStatus {
    /// How many ConfigMaps there are.
    pub config_maps: i32,
}

impl Resource for Settings {
    const API_VERSION: &'static str = "example.innkeeper.dev/v1";
    const KIND: &'static str = "Settings";
    const PLURAL: &'static str = "settings";
}

impl Primary for Settings {
    fn metadata(&self) -> &Metadata {
        &self.metadata
    }
}

impl CustomResource for Settings {
    type Spec = SettingsSpec;
    type Status = SettingsStatus;
    const COLUMNS: &'static [Column] = &[Column::integer("ConfigMaps", ".status.configMaps")];
}

/// The reconcile logic.
pub struct Guest;

impl Reconciler for Guest {
    type Primary = Settings;

    fn describe() -> Manifest {
        Describe::reconciler_of::<Settings>("settings", env!("CARGO_PKG_VERSION"))
            .owns::<ConfigMap>()
            .installs(include_str!("../crd.json"))
            .manifest()
    }

    fn reconcile(_context: &Context, observed: &Observed<Settings>) -> Outcome {
        let spec = &observed.primary().spec;
        config_maps(observed, &spec.names, &spec.text)
    }
}

/// A ConfigMap per name, each of which says the text: other versions of this guest give others.
pub fn config_maps(observed: &Observed<Settings>, names: &[String], text: &str) -> Outcome {
    let count = observed.count_owned::<ConfigMap>();
    let mut desired = Desired::new();
    for name in names {
        let name = format!("{}-{name}", observed.name());
        let config_map = ConfigMap::new(name).data("text", text);
        desired = desired.object(config_map.label("settings", observed.name()));
    }
    desired
        .status(&SettingsStatus { config_maps: i32::try_from(count).unwrap_or(i32::MAX) })
        .ready_condition(observed)
        .complete()
}

#[cfg(feature = "component")]
innkeeper_sdk::export!(Guest);
