//! A ConfigMap that lists the ConfigMaps with some labels, of one namespace or of all.

use innkeeper_sdk::kinds::{ConfigMap, LabelSelector};
use innkeeper_sdk::prelude::*;
use innkeeper_sdk::read;
use serde::{Deserialize, Serialize};

/// A `ConfigMapList`, as the guest reads it.
#[derive(Deserialize)]
pub struct ConfigMapList {
    metadata: Metadata,
    spec: ConfigMapListSpec,
}

/// Desired state of a `ConfigMapList`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(not(target_arch = "wasm32"), derive(schemars::JsonSchema))]
pub struct ConfigMapListSpec {
    /// Labels of the listed ConfigMaps.
    source_labels: Labels,
    /// Namespace of the listed ConfigMaps; all namespaces if left out.
    #[serde(default)]
    source_namespace: String,
}

/// Observed state of a `ConfigMapList`.
#[derive(Deserialize, Serialize)]
#[cfg_attr(not(target_arch = "wasm32"), derive(schemars::JsonSchema))]
pub struct ConfigMapListStatus {
    /// Number of ConfigMaps.
    count: usize,
}

kind!(Primary for ConfigMapList, "examples.metacontroller.io/v1alpha1", "configmaplists");

impl CustomResource for ConfigMapList {
    type Spec = ConfigMapListSpec;
    type Status = ConfigMapListStatus;
}

/// The reconcile logic.
pub struct Guest;

impl Reconciler for Guest {
    type Primary = ConfigMapList;

    fn describe() -> Manifest {
        Describe::reconciler_of::<ConfigMapList>("config-map-list", "1.0.0")
            .owns::<ConfigMap>()
            .reads::<read::ConfigMap>()
            .installs(include_str!("crd.json"))
            .manifest()
    }

    fn reconcile(context: &Context, observed: &Observed<ConfigMapList>) -> Outcome {
        let spec = &observed.primary().spec;
        let selector = LabelSelector::from(&spec.source_labels).to_string();
        match context.list::<read::ConfigMap>(&spec.source_namespace, &selector) {
            Ok(found) => {
                let name =
                    |Metadata { namespace, name, .. }: &Metadata| format!("{namespace}/{name}");
                let names: Vec<_> = found.iter().map(|one| name(&one.object.metadata)).collect();
                let list = ConfigMap::new(format!("{}-list", observed.name()));
                Desired::new()
                    .object(list.data("configmaps", names.join("\n")))
                    .status(&ConfigMapListStatus { count: names.len() })
                    .complete()
            }
            Err(error) => error.into(),
        }
    }
}

innkeeper_sdk::export!(Guest);
