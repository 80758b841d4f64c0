//! A stack of layers, each a ConfigMap, and one that outlives it: what a finalizer is for.
//!
//! When a Stack is deleted, its layers go from the last to the first, each only when the one above
//! it is gone. The ConfigMap `<name>-kept` stays, and a Stack of the same name takes it up again.

use innkeeper_sdk::kinds::ConfigMap;
use innkeeper_sdk::{
    Column, Context, CustomResource, Describe, Desired, Manifest, Metadata, Observed, Outcome,
    Policy, Primary, Reconciler, Resource,
};
use serde::{Deserialize, Serialize};

/// A Stack, as the guest reads it.
#[derive(Clone, Debug, Deserialize)]
pub struct Stack {
    /// Its metadata.
    pub metadata: Metadata,
    /// What is wanted.
    pub spec: StackSpec,
}

/// What is wanted.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(not(target_arch = "wasm32"), derive(schemars::JsonSchema))]
pub struct StackSpec {
    /// How many layers: the ConfigMaps `<name of the Stack>-<number>`, from 0.
    #[cfg_attr(not(target_arch = "wasm32"), schemars(range(min = 0, max = 100)))]
    pub layers: u32,
    /// The last layer is not taken down, so that the Stack does not go.
    #[serde(default)]
    pub stuck: bool,
}

/// What is.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(not(target_arch = "wasm32"), derive(schemars::JsonSchema))]
pub struct StackStatus {
    /// How many layers there are.
    pub layers: u32,
}

impl Resource for Stack {
    const API_VERSION: &'static str = "example.innkeeper.dev/v1";
    const KIND: &'static str = "Stack";
    const PLURAL: &'static str = "stacks";
}

impl Primary for Stack {
    fn metadata(&self) -> &Metadata {
        &self.metadata
    }
}

impl CustomResource for Stack {
    type Spec = StackSpec;
    type Status = StackStatus;
    const COLUMNS: &'static [Column] = &[Column::integer("Layers", ".status.layers")];
}

/// A layer that is there, also while it goes.
#[derive(Deserialize)]
struct Layer {}

impl Resource for Layer {
    const API_VERSION: &'static str = ConfigMap::API_VERSION;
    const KIND: &'static str = ConfigMap::KIND;
    const PLURAL: &'static str = ConfigMap::PLURAL;
}

/// The reconcile logic.
pub struct Guest;

impl Reconciler for Guest {
    type Primary = Stack;

    fn describe() -> Manifest {
        Describe::reconciler_of::<Stack>("stack", env!("CARGO_PKG_VERSION"))
            .owns::<ConfigMap>()
            .finalizes("")
            .installs(include_str!("../crd.json"))
            .manifest()
    }

    fn reconcile(_context: &Context, observed: &Observed<Stack>) -> Outcome {
        let spec = &observed.primary().spec;
        let layer = |number: u32| format!("{}-{number}", observed.name());
        let there =
            (0..spec.layers).filter(|number| observed.owned::<Layer>(&layer(*number)).is_some());
        let there = u32::try_from(there.count()).unwrap_or(u32::MAX);
        // Of a Stack that goes one layer less is wanted than there is, until there is none.
        let wanted = match (observed.is_deleting(), spec.stuck) {
            (false, _) => spec.layers,
            (true, true) => there.saturating_sub(1).max(1),
            (true, false) => there.saturating_sub(1),
        };
        let mut desired = Desired::new();
        for number in 0..wanted {
            desired =
                desired.object(ConfigMap::new(layer(number)).data("layer", number.to_string()));
        }
        let kept = ConfigMap::new(format!("{}-kept", observed.name())).data("kept", "yes");
        desired = desired
            .object_with(kept, [Policy::Orphan])
            .status(&StackStatus { layers: there })
            .ready_condition(observed);
        if observed.is_deleting() && there == 0 {
            desired = desired.finalized();
        }
        desired.complete()
    }
}

innkeeper_sdk::export!(Guest);
