//! Copies of a ConfigMap of the primary's namespace in all other namespaces, except those of
//! Innkeeper (`innkeeper-*`), which no guest may write: `global-config-map` with a namespaced kind.

use innkeeper_sdk::kinds::ConfigMap;
use innkeeper_sdk::prelude::*;
use innkeeper_sdk::read;
use serde::{Deserialize, Serialize};

/// A `SharedConfigMap`, as the guest reads it.
#[derive(Deserialize)]
pub struct SharedConfigMap {
    metadata: Metadata,
    spec: SharedConfigMapSpec,
}

/// Desired state of a `SharedConfigMap`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(not(target_arch = "wasm32"), derive(schemars::JsonSchema))]
pub struct SharedConfigMapSpec {
    /// Name of the ConfigMap, in the namespace of the `SharedConfigMap`, and of its copies.
    source_name: String,
}

/// Observed state of a `SharedConfigMap`.
#[derive(Deserialize, Serialize)]
#[cfg_attr(not(target_arch = "wasm32"), derive(schemars::JsonSchema))]
pub struct SharedConfigMapStatus {
    /// Number of copies.
    copies: usize,
}

kind!(Primary for SharedConfigMap, "examples.metacontroller.io/v1alpha1", "sharedconfigmaps");

impl CustomResource for SharedConfigMap {
    type Spec = SharedConfigMapSpec;
    type Status = SharedConfigMapStatus;
}

/// The reconcile logic.
pub struct Guest;

impl Reconciler for Guest {
    type Primary = SharedConfigMap;

    fn describe() -> Manifest {
        Describe::reconciler_of::<SharedConfigMap>("shared-config-map", "1.0.0")
            .owns::<ConfigMap>()
            .reads::<read::ConfigMap>()
            .reads::<read::Namespace>()
            // Kubernetes does not delete objects of other namespaces with the primary.
            .finalizes("")
            .installs(include_str!("crd.json"))
            .manifest()
    }

    fn reconcile(context: &Context, observed: &Observed<SharedConfigMap>) -> Outcome {
        if observed.is_deleting() {
            return Desired::new().finalized().complete();
        }
        copies(context, observed).map_or_else(Outcome::from, Desired::complete)
    }
}

fn copies(context: &Context, observed: &Observed<SharedConfigMap>) -> Result<Desired, ReadError> {
    let source_name = &observed.primary().spec.source_name;
    let source = context.find::<read::ConfigMap>(observed.namespace(), source_name)?;
    let mut copies = Vec::new();
    if let Some(source) = source {
        for Owned { object: namespace, .. } in context.list::<read::Namespace>("", "")? {
            let name = &namespace.metadata.name;
            let is_source = name == observed.namespace();
            if !is_source && !name.starts_with("innkeeper-") && !namespace.is_terminating() {
                let copy = ConfigMap::new(source_name).namespace(name);
                copies.push(ConfigMap { data: source.object.data.clone(), ..copy });
            }
        }
    }
    let status = SharedConfigMapStatus { copies: copies.len() };
    Ok(Desired::new().objects(copies).status(&status))
}

innkeeper_sdk::export!(Guest);
