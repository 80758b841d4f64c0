//! A `ClusterRole` that may read the objects of a CustomResourceDefinition, for each definition
//! with the annotation `enable-default-roles`.

use innkeeper_sdk::kinds::{ClusterRole, PolicyRule};
use innkeeper_sdk::prelude::*;
use serde::Deserialize;

/// A CustomResourceDefinition, as the guest reads it.
#[derive(Deserialize)]
pub struct CustomResourceDefinition {
    metadata: Metadata,
    spec: Spec,
}

#[derive(Deserialize)]
struct Spec {
    group: String,
    names: Names,
}

#[derive(Deserialize)]
struct Names {
    plural: String,
}

kind!(Primary for CustomResourceDefinition, "apiextensions.k8s.io/v1", "customresourcedefinitions", Cluster);

/// The reconcile logic.
pub struct Guest;

impl Reconciler for Guest {
    type Primary = CustomResourceDefinition;

    fn describe() -> Manifest {
        Describe::reconciler_of::<CustomResourceDefinition>("crd-roles", "1.0.0")
            .owns::<ClusterRole>()
            .manifest()
    }

    fn reconcile(_context: &Context, observed: &Observed<CustomResourceDefinition>) -> Outcome {
        let CustomResourceDefinition { metadata, spec } = observed.primary();
        if !metadata.annotations.contains_key("enable-default-roles") {
            return Desired::new().complete();
        }
        let rule = PolicyRule::new(&spec.group, [&spec.names.plural], ["get", "list", "watch"]);
        let reader = ClusterRole::new(format!("{}-reader", metadata.name)).rule(rule);
        Desired::new().object(reader).complete()
    }
}

innkeeper_sdk::export!(Guest);
