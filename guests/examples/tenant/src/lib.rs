//! Each `Tenant` becomes a Namespace, and a `RoleBinding` in it that lets a group edit objects
//! there: a cluster-scoped primary with a status and a condition.

use innkeeper_sdk::kinds::Namespace;
use innkeeper_sdk::prelude::*;
use innkeeper_sdk::serde_json::json;
use innkeeper_sdk::{Column, condition};
use serde::{Deserialize, Serialize};

/// The API group of roles.
const RBAC: &str = "rbac.authorization.k8s.io";

/// The name of the `RoleBinding`.
const EDITORS: &str = "editors";

/// A Tenant, as the guest reads it.
#[derive(Deserialize)]
pub struct Tenant {
    metadata: Metadata,
    spec: TenantSpec,
}

/// Desired state of a Tenant.
#[derive(Deserialize)]
#[cfg_attr(not(target_arch = "wasm32"), derive(schemars::JsonSchema))]
pub struct TenantSpec {
    /// Group of the users who may edit objects in the Namespace.
    #[cfg_attr(not(target_arch = "wasm32"), schemars(length(min = 1)))]
    group: String,
}

/// Observed state of a Tenant.
#[derive(Serialize)]
#[cfg_attr(not(target_arch = "wasm32"), derive(schemars::JsonSchema))]
pub struct TenantStatus {
    /// Name of the Namespace.
    namespace: String,
}

kind!(Primary for Tenant, "example.innkeeper.dev/v1", "tenants", Cluster);
// A kind without a type of its own: its objects are JSON. (`kinds` has a builder for it, too.)
kind!(RoleBinding, "rbac.authorization.k8s.io/v1", "rolebindings");

impl CustomResource for Tenant {
    type Spec = TenantSpec;
    type Status = TenantStatus;
    const COLUMNS: &'static [Column] = &[Column::text("Namespace", ".status.namespace")];
}

/// The reconcile logic.
pub struct Guest;

impl Reconciler for Guest {
    type Primary = Tenant;

    fn describe() -> Manifest {
        Describe::reconciler_of::<Tenant>("tenant", env!("CARGO_PKG_VERSION"))
            .owns::<Namespace>()
            .owns::<RoleBinding>()
            .installs(include_str!("../crd.json"))
            .manifest()
    }

    fn reconcile(_context: &Context, observed: &Observed<Tenant>) -> Outcome {
        let group = &observed.primary().spec.group;
        let namespace = format!("tenant-{}", observed.name());
        let editors = json!({
            "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": "edit"},
            "subjects": [{"apiGroup": RBAC, "kind": "Group", "name": group}],
        });
        // The state before this run: in the first run neither object exists.
        let granted = if observed.is_ready::<RoleBinding>(EDITORS) {
            condition::is_true("Granted", "RoleBound", format!("group {group} may edit objects"))
        } else {
            condition::is_false("Granted", "InProgress", "the RoleBinding does not exist yet")
        };
        Desired::new()
            .object(Namespace::new(&namespace).label("tenant", observed.name()))
            .object(Raw::<RoleBinding>::new(EDITORS, editors).namespace(&namespace))
            .status(&TenantStatus { namespace })
            .condition(granted)
            .ready_condition(observed)
            .complete()
    }
}

innkeeper_sdk::export!(Guest);
