//! @name@: each `@kind@` with the annotation `@name@/label` gets the label `@name@` with its value.

use innkeeper_sdk::{
    Apply, Context, Describe, Desired, Manifest, Metadata, Observed, Outcome, Policy, Reconciler,
    kind, names,
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

@namespaced@kind!(Primary + Apply for @kind@, "@api_version@", "@plural@");
@cluster@kind!(Primary + Apply for @kind@, "@api_version@", "@plural@", Cluster);

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
        if !names::is_label_value(value) {
            let message =
                format!("the annotation {ANNOTATION} is not the value of a label: {value:?}");
            return Outcome::failed_permanently("InvalidAnnotation", message);
        }
        let merged = @kind@ {
            metadata: Metadata::named(observed.name()),
        };
        Desired::new()
            .object_with(merged.label(LABEL, value), [Policy::Merge])
            .complete()
    }
}

innkeeper_sdk::export!(Guest);
