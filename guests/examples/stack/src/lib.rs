//! Each `Stack` becomes ConfigMaps as layers, for tests of finalizers.
//!
//! When a Stack is deleted, the guest deletes its layers from the last to the first, each after the
//! one above it. The ConfigMap `<name>-kept` stays, and a later Stack of the same name adopts it.

use innkeeper_sdk::kinds::ConfigMap;
use innkeeper_sdk::{
    Column, Context, CustomResource, Describe, Desired, Manifest, Metadata, Observed, Outcome,
    Policy, Reconciler, kind,
};
use serde::{Deserialize, Serialize};

/// A Stack, as the guest reads it.
#[derive(Clone, Debug, Deserialize)]
pub struct Stack {
    /// Metadata.
    pub metadata: Metadata,
    /// Spec.
    pub spec: StackSpec,
}

/// Desired state of a Stack.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(not(target_arch = "wasm32"), derive(schemars::JsonSchema))]
pub struct StackSpec {
    /// Number of layers: the ConfigMaps `<name of the Stack>-<number>`, from 0.
    #[cfg_attr(not(target_arch = "wasm32"), schemars(range(min = 0, max = 100)))]
    pub layers: u32,
    /// Whether to keep the first layer of a deleted Stack, which then is never removed.
    #[serde(default)]
    pub stuck: bool,
}

/// Observed state of a Stack.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(not(target_arch = "wasm32"), derive(schemars::JsonSchema))]
pub struct StackStatus {
    /// Number of layers.
    pub layers: u32,
}

kind!(Primary for Stack, "example.innkeeper.dev/v1", "stacks");

impl CustomResource for Stack {
    type Spec = StackSpec;
    type Status = StackStatus;
    const COLUMNS: &'static [Column] = &[Column::integer("Layers", ".status.layers")];
}

/// A layer that exists, also while it is being deleted.
#[derive(Deserialize)]
struct Layer {}

kind!(Resource for Layer = ConfigMap::KIND, ConfigMap::API_VERSION, ConfigMap::PLURAL);

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
        let existing =
            (0..spec.layers).filter(|number| observed.owned::<Layer>(&layer(*number)).is_some());
        let existing = u32::try_from(existing.count()).unwrap_or(u32::MAX);
        // A deleted Stack desires one layer less than there are, until there is none.
        let count = match (observed.is_deleting(), spec.stuck) {
            (false, _) => spec.layers,
            (true, true) => existing.saturating_sub(1).max(1),
            (true, false) => existing.saturating_sub(1),
        };
        let mut desired = Desired::new();
        for number in 0..count {
            desired =
                desired.object(ConfigMap::new(layer(number)).data("layer", number.to_string()));
        }
        let kept = ConfigMap::new(format!("{}-kept", observed.name())).data("kept", "yes");
        desired = desired
            .object_with(kept, [Policy::Orphan])
            .status(&StackStatus { layers: existing })
            .ready_condition(observed);
        if observed.is_deleting() && existing == 0 {
            desired = desired.finalized();
        }
        desired.complete()
    }
}

innkeeper_sdk::export!(Guest);
