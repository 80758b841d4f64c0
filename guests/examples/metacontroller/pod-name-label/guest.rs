//! A label with the pod's name on each Pod whose annotation `pod-name-label` names the label's key.

use innkeeper_sdk::prelude::*;
use innkeeper_sdk::{kinds, read};

/// The annotation that names the label.
const ANNOTATION: &str = "pod-name-label";

/// The reconcile logic.
pub struct Guest;

impl Reconciler for Guest {
    type Primary = read::Pod;

    fn describe() -> Manifest {
        Describe::reconciler_of::<read::Pod>("pod-name-label", "1.0.0")
            .merges_into::<kinds::Pod>()
            .selects_annotation_key(ANNOTATION)
            .manifest()
    }

    fn reconcile(_context: &Context, observed: &Observed<read::Pod>) -> Outcome {
        let Some(key) = observed.primary().metadata.annotations.get(ANNOTATION) else {
            return Desired::new().complete();
        };
        let label = kinds::Pod::of_others(observed.name()).label(key, observed.name());
        Desired::new().object_with(label, [Policy::Merge]).complete()
    }
}

innkeeper_sdk::export!(Guest);
