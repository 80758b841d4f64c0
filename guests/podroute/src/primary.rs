use innkeeper_sdk::{Column, CustomResource, Metadata, kind};
use serde::{Deserialize, Serialize};

/// A Podroute, as the guest reads it.
#[derive(Clone, Debug, Deserialize)]
pub struct Podroute {
    /// Metadata.
    pub metadata: Metadata,
    /// Spec.
    pub spec: PodrouteSpec,
}

/// Desired state of a Podroute.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(not(target_arch = "wasm32"), derive(schemars::JsonSchema))]
pub struct PodrouteSpec {
    /// The image of the pods. It serves HTTP on port 8080. Without it the guest creates nothing.
    pub image: Option<String>,
    /// Number of pods; 0 if left out, unless the Module's parameter `replicasWhenLeftOut` says
    /// otherwise.
    #[cfg_attr(not(target_arch = "wasm32"), schemars(range(min = 0)))]
    pub replicas: Option<i32>,
}

impl PodrouteSpec {
    /// Returns the image; `None` if it is left out or empty, which is the same to a Go client.
    pub fn image(&self) -> Option<&str> {
        self.image.as_deref().filter(|image| !image.is_empty())
    }
}

/// Observed state of a Podroute.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(not(target_arch = "wasm32"), derive(schemars::JsonSchema))]
pub struct PodrouteStatus {
    /// Number of pods.
    pub replicas: i32,
    /// Number of ready pods.
    pub ready_replicas: i32,
}

kind!(Primary for Podroute, "quay.io/v1alpha1", "podroutes");

impl CustomResource for Podroute {
    type Spec = PodrouteSpec;
    type Status = PodrouteStatus;

    const COLUMNS: &'static [Column] = &[
        Column::text("Image", ".spec.image"),
        Column::integer("Desired", ".spec.replicas"),
        Column::integer("Ready", ".status.readyReplicas"),
    ];
}
