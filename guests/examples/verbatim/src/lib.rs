//! Each `Verbatim` becomes a Deployment and a Service of its name with exactly the specs of the
//! primary: quantities in any spelling, lists that the API server defaults, and everything else
//! that a manifest can contain.

use innkeeper_sdk::{
    Context, CustomResource, Describe, Desired, Manifest, Metadata, Observed, Outcome, Reconciler,
    kind,
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// A Verbatim, as the guest reads it.
#[derive(Clone, Debug, Deserialize)]
pub struct Verbatim {
    /// Metadata.
    pub metadata: Metadata,
    /// Spec.
    pub spec: VerbatimSpec,
}

/// Desired state of a Verbatim.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(not(target_arch = "wasm32"), derive(schemars::JsonSchema))]
pub struct VerbatimSpec {
    /// Spec of the Deployment; no Deployment if left out.
    pub deployment: Option<Map<String, Value>>,
    /// Spec of the Service; no Service if left out.
    pub service: Option<Map<String, Value>>,
}

/// Observed state of a Verbatim: only the conditions.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[cfg_attr(not(target_arch = "wasm32"), derive(schemars::JsonSchema))]
pub struct VerbatimStatus {}

kind!(Primary for Verbatim, "example.innkeeper.dev/v1", "verbatims");

impl CustomResource for Verbatim {
    type Spec = VerbatimSpec;
    type Status = VerbatimStatus;
}

/// A Deployment with the spec of the primary.
#[derive(Debug, Serialize)]
pub struct Deployment {
    metadata: Metadata,
    spec: Map<String, Value>,
}

kind!(Apply for Deployment, "apps/v1", "deployments");

/// A Service with the spec of the primary.
#[derive(Debug, Serialize)]
pub struct Service {
    metadata: Metadata,
    spec: Map<String, Value>,
}

kind!(Apply for Service, "v1", "services");

/// The reconcile logic.
pub struct Guest;

impl Reconciler for Guest {
    type Primary = Verbatim;

    fn describe() -> Manifest {
        Describe::reconciler_of::<Verbatim>("verbatim", env!("CARGO_PKG_VERSION"))
            .owns::<Deployment>()
            .owns::<Service>()
            .installs(include_str!("../crd.json"))
            .manifest()
    }

    fn reconcile(_context: &Context, observed: &Observed<Verbatim>) -> Outcome {
        let VerbatimSpec { deployment, service } = observed.primary().spec.clone();
        let metadata = Metadata::named(observed.name());
        let mut desired = Desired::new();
        if let Some(spec) = deployment {
            desired = desired.object(Deployment { metadata: metadata.clone(), spec });
        }
        if let Some(spec) = service {
            desired = desired.object(Service { metadata, spec });
        }
        desired.complete()
    }
}

innkeeper_sdk::export!(Guest);
