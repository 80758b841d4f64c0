//! @name@: each `@kind@` becomes a ConfigMap with its text.

use innkeeper_sdk::kinds::ConfigMap;
use innkeeper_sdk::{
@namespaced@    Column, Context, CustomResource, Describe, Desired, Manifest, Metadata, Observed, Outcome,
@namespaced@    Reconciler, kind,
@cluster@    Apply, Column, Context, CustomResource, Describe, Desired, Manifest, Metadata, Observed,
@cluster@    Outcome, Reconciler, kind,
};
use serde::{Deserialize, Serialize};

/// A @kind@, as the guest reads it. Only the fields that stand here are read.
#[derive(Clone, Debug, Deserialize)]
pub struct @kind@ {
    /// Its metadata.
    pub metadata: Metadata,
    /// What is wanted.
    pub spec: @kind@Spec,
}

/// What is wanted.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(not(target_arch = "wasm32"), derive(schemars::JsonSchema))]
pub struct @kind@Spec {
    /// The text that the ConfigMap holds.
    #[cfg_attr(not(target_arch = "wasm32"), schemars(length(min = 1)))]
    pub text: String,
@cluster@    /// The namespace of the ConfigMap.
@cluster@    #[cfg_attr(not(target_arch = "wasm32"), schemars(length(min = 1)))]
@cluster@    pub namespace: String,
}

/// What is.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(not(target_arch = "wasm32"), derive(schemars::JsonSchema))]
pub struct @kind@Status {
    /// The ConfigMap that holds the text.
    pub config_map: String,
}

@namespaced@kind!(Primary for @kind@, "@group@/v1alpha1", "@plural@");
@cluster@kind!(Primary for @kind@, "@group@/v1alpha1", "@plural@", Cluster);

impl CustomResource for @kind@ {
    type Spec = @kind@Spec;
    type Status = @kind@Status;

    const COLUMNS: &'static [Column] = &[Column::text("Text", ".spec.text")];
}

/// The reconcile logic.
pub struct Guest;

impl Reconciler for Guest {
    type Primary = @kind@;

    /// What the guest is, and which kinds it makes.
    fn describe() -> Manifest {
        Describe::reconciler_of::<@kind@>(env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION"))
            .owns::<ConfigMap>()
            .installs(include_str!("../crd.json"))
            .manifest()
    }

    /// What should be, from what is. Run whenever something changes that it has read.
    fn reconcile(_context: &Context, observed: &Observed<Self::Primary>) -> Outcome {
        let spec = &observed.primary().spec;
        let name = observed.name().to_owned();
        Desired::new()
@namespaced@            .object(ConfigMap::new(&name).data("text", &spec.text))
@cluster@            .object(
@cluster@                ConfigMap::new(&name)
@cluster@                    .namespace(&spec.namespace)
@cluster@                    .data("text", &spec.text),
@cluster@            )
            .status(&@kind@Status { config_map: name })
            .ready_condition(observed)
            .complete()
    }
}

innkeeper_sdk::export!(Guest);
