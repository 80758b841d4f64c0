//! Copies of one ConfigMap in the namespaces that a primary lists.

use innkeeper_sdk::kinds::ConfigMap;
use innkeeper_sdk::prelude::*;
use innkeeper_sdk::read;
use serde::{Deserialize, Serialize};

/// A `ConfigMapPropagation`, as the guest reads it.
#[derive(Deserialize)]
pub struct ConfigMapPropagation {
    metadata: Metadata,
    spec: ConfigMapPropagationSpec,
}

/// Desired state of a `ConfigMapPropagation`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(not(target_arch = "wasm32"), derive(schemars::JsonSchema))]
pub struct ConfigMapPropagationSpec {
    /// Name of the ConfigMap, and of its copies.
    source_name: String,
    /// Namespace of the ConfigMap.
    source_namespace: String,
    /// Namespaces of the copies.
    target_namespaces: Vec<String>,
}

/// Observed state of a `ConfigMapPropagation`.
#[derive(Deserialize, Serialize)]
#[cfg_attr(not(target_arch = "wasm32"), derive(schemars::JsonSchema))]
pub struct ConfigMapPropagationStatus {
    /// Number of copies that there should be.
    expected_copies: usize,
    /// Number of copies that there are.
    actual_copies: usize,
}

kind!(
    Primary for ConfigMapPropagation,
    "examples.metacontroller.io/v1alpha1", "configmappropagations", Cluster
);

impl CustomResource for ConfigMapPropagation {
    type Spec = ConfigMapPropagationSpec;
    type Status = ConfigMapPropagationStatus;
}

/// The reconcile logic.
pub struct Guest;

impl Reconciler for Guest {
    type Primary = ConfigMapPropagation;

    fn describe() -> Manifest {
        Describe::reconciler_of::<ConfigMapPropagation>("config-map-propagation", "1.0.0")
            .selects_labels(&labels([("version", "v1")]))
            .owns::<ConfigMap>()
            .reads::<read::ConfigMap>()
            .installs(include_str!("crd.json"))
            .manifest()
    }

    fn reconcile(context: &Context, observed: &Observed<ConfigMapPropagation>) -> Outcome {
        let spec = &observed.primary().spec;
        let source =
            match context.find::<read::ConfigMap>(&spec.source_namespace, &spec.source_name) {
                Ok(source) => source,
                Err(error) => return error.into(),
            };
        let data = source.map(|source| source.object.data);
        let copies = data.iter().flat_map(|data| {
            spec.target_namespaces.iter().map(|namespace| ConfigMap {
                data: data.clone(),
                ..ConfigMap::new(&spec.source_name).namespace(namespace)
            })
        });
        Desired::new()
            .objects(copies)
            .status(&ConfigMapPropagationStatus {
                expected_copies: spec.target_namespaces.len(),
                actual_copies: observed.count_owned::<ConfigMap>(),
            })
            .complete()
    }
}

innkeeper_sdk::export!(Guest);
