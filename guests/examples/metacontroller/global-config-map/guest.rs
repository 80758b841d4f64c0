//! Copies of one ConfigMap in all other namespaces, except those of Innkeeper (`innkeeper-*`),
//! which no guest may write.

use innkeeper_sdk::kinds::ConfigMap;
use innkeeper_sdk::prelude::*;
use innkeeper_sdk::read;
use serde::{Deserialize, Serialize};

/// A `GlobalConfigMap`, as the guest reads it.
#[derive(Deserialize)]
pub struct GlobalConfigMap {
    metadata: Metadata,
    spec: GlobalConfigMapSpec,
}

/// Desired state of a `GlobalConfigMap`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(not(target_arch = "wasm32"), derive(schemars::JsonSchema))]
pub struct GlobalConfigMapSpec {
    /// Name of the ConfigMap, and of its copies.
    source_name: String,
    /// Namespace of the ConfigMap.
    source_namespace: String,
}

/// Observed state of a `GlobalConfigMap`.
#[derive(Deserialize, Serialize)]
#[cfg_attr(not(target_arch = "wasm32"), derive(schemars::JsonSchema))]
pub struct GlobalConfigMapStatus {
    /// Number of copies.
    copies: usize,
}

kind!(Primary for GlobalConfigMap, "examples.metacontroller.io/v1alpha1", "globalconfigmaps", Cluster);

impl CustomResource for GlobalConfigMap {
    type Spec = GlobalConfigMapSpec;
    type Status = GlobalConfigMapStatus;
}

/// The reconcile logic.
pub struct Guest;

impl Reconciler for Guest {
    type Primary = GlobalConfigMap;

    fn describe() -> Manifest {
        Describe::reconciler_of::<GlobalConfigMap>("global-config-map", "1.0.0")
            .owns::<ConfigMap>()
            .reads::<read::ConfigMap>()
            .reads::<read::Namespace>()
            .installs(include_str!("crd.json"))
            .manifest()
    }

    fn reconcile(context: &Context, observed: &Observed<GlobalConfigMap>) -> Outcome {
        copies(context, &observed.primary().spec).map_or_else(Outcome::from, Desired::complete)
    }
}

fn copies(context: &Context, spec: &GlobalConfigMapSpec) -> Result<Desired, ReadError> {
    let source = context.find::<read::ConfigMap>(&spec.source_namespace, &spec.source_name)?;
    let mut copies = Vec::new();
    if let Some(source) = source {
        for Owned { object: namespace, .. } in context.list::<read::Namespace>("", "")? {
            let name = &namespace.metadata.name;
            let is_source = *name == spec.source_namespace;
            if !is_source && !name.starts_with("innkeeper-") && !namespace.is_terminating() {
                let copy = ConfigMap::new(&spec.source_name).namespace(name);
                copies.push(ConfigMap { data: source.object.data.clone(), ..copy });
            }
        }
    }
    let status = GlobalConfigMapStatus { copies: copies.len() };
    Ok(Desired::new().objects(copies).status(&status))
}

innkeeper_sdk::export!(Guest);
