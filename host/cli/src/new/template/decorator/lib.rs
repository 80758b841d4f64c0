//! @name@: each `@kind@` with the annotation `@name@/label` gets the label `@name@` with its value.

use innkeeper_sdk::{
@namespaced@    Apply, Context, Describe, Desired, Manifest, Metadata, Observed, Outcome, Policy, Primary,
@namespaced@    Reconciler, Resource,
@cluster@    Apply, Context, Describe, Desired, Manifest, Metadata, Observed, Outcome, Policy, Primary,
@cluster@    Reconciler, Resource, Scope,
};
use serde::{Deserialize, Serialize};

/// The annotation whose value becomes the label.
pub const ANNOTATION: &str = "@name@/label";

/// The label that the guest merges into the object.
pub const LABEL: &str = "@name@";

/// A @kind@, as the guest reads it and as it merges the label into it.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct @kind@ {
    /// Its metadata.
    pub metadata: Metadata,
}

impl Resource for @kind@ {
    const API_VERSION: &'static str = "@api_version@";
    const KIND: &'static str = "@kind@";
    const PLURAL: &'static str = "@plural@";
@cluster@    const SCOPE: Scope = Scope::Cluster;
}

impl Primary for @kind@ {
    fn metadata(&self) -> &Metadata {
        &self.metadata
    }
}

impl Apply for @kind@ {
    fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    fn metadata_mut(&mut self) -> &mut Metadata {
        &mut self.metadata
    }
}

/// The reconcile logic.
pub struct Guest;

impl Reconciler for Guest {
    type Primary = @kind@;

    /// What the guest is. Another controller owns the primaries, so the guest writes no status.
    fn describe() -> Manifest {
        Describe::reconciler_of::<@kind@>(env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION"))
            .decorates()
            .merges_into::<@kind@>()
            .manifest()
    }

    /// What should be, from what is. Run whenever something changes that it has read. The host
    /// removes the label when the guest no longer desires it.
    fn reconcile(_context: &Context, observed: &Observed<Self::Primary>) -> Outcome {
        let Some(value) = observed.primary().metadata.annotations.get(ANNOTATION) else {
            return Desired::new().complete();
        };
        let merged = @kind@ {
            metadata: Metadata::named(observed.name()),
        };
        Desired::new()
            .object_with(merged.label(LABEL, value), [Policy::Merge])
            .complete()
    }
}

innkeeper_sdk::export!(Guest);
