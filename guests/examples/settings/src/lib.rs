//! Each `Settings` becomes one ConfigMap per name in `spec.names`; the host prunes the ConfigMap of
//! a name that is removed from the list.

use innkeeper_sdk::kinds::ConfigMap;
use innkeeper_sdk::{
    Apply, Column, Context, CustomResource, Describe, Desired, Manifest, Metadata, Observed,
    Outcome, Reconciler, kind,
};
use serde::{Deserialize, Serialize};

/// A Settings object, as the guest reads it.
#[derive(Clone, Debug, Deserialize)]
pub struct Settings {
    /// Metadata.
    pub metadata: Metadata,
    /// Spec.
    pub spec: SettingsSpec,
}

/// Desired state of a Settings object.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(not(target_arch = "wasm32"), derive(schemars::JsonSchema))]
pub struct SettingsSpec {
    /// Names: each gives a ConfigMap `<name of the Settings>-<name>`.
    #[serde(default)]
    #[cfg_attr(not(target_arch = "wasm32"), schemars(extend("x-kubernetes-list-type" = "set")))]
    pub names: Vec<String>,
    /// Value of the key `text` in each ConfigMap.
    #[serde(default)]
    pub text: String,
}

/// Observed state of a Settings object.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(not(target_arch = "wasm32"), derive(schemars::JsonSchema))]
pub struct SettingsStatus {
    /// Number of ConfigMaps.
    pub config_maps: i32,
}

kind!(Primary for Settings, "example.innkeeper.dev/v1", "settings");

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

/// Returns the outcome with one ConfigMap per name. Other versions of this guest pass other
/// arguments.
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
