//! A `RoleBinding` in the namespace `default` for each `ClusterRole` with the annotation
//! `default-service-account-binding`: a cluster-scoped primary that owns a namespaced object.

use innkeeper_sdk::kinds::{ClusterRole, RoleBinding, RoleRef, Subject};
use innkeeper_sdk::prelude::*;

/// The reconcile logic.
pub struct Guest;

impl Reconciler for Guest {
    type Primary = Raw<ClusterRole>;

    fn describe() -> Manifest {
        Describe::reconciler_of::<ClusterRole>("clustered-parent", "1.0.0")
            .owns::<RoleBinding>()
            .manifest()
    }

    fn reconcile(_context: &Context, observed: &Observed<Raw<ClusterRole>>) -> Outcome {
        let role = observed.primary();
        if !role.metadata.annotations.contains_key("default-service-account-binding") {
            return Desired::new().complete();
        }
        let binding = RoleBinding::new(observed.name(), RoleRef::cluster_role(observed.name()))
            .namespace("default")
            .subject(Subject::service_account("default", "default"));
        Desired::new().object(binding).complete()
    }
}

innkeeper_sdk::export!(Guest);
