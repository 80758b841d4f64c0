//! Kinds, as tests name them.

/// A kind by its API version and name, as in a manifest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Kind {
    /// As in `apps/v1`, or `v1`.
    pub api_version: &'static str,
    /// As in `Deployment`.
    pub kind: &'static str,
}

impl Kind {
    /// core/v1 `ConfigMap`.
    pub const CONFIG_MAP: Self = Self::new("v1", "ConfigMap");
    /// core/v1 Event.
    pub const EVENT: Self = Self::new("v1", "Event");
    /// core/v1 Namespace.
    pub const NAMESPACE: Self = Self::new("v1", "Namespace");
    /// core/v1 Node.
    pub const NODE: Self = Self::new("v1", "Node");
    /// core/v1 `PersistentVolumeClaim`.
    pub const CLAIM: Self = Self::new("v1", "PersistentVolumeClaim");
    /// core/v1 Pod.
    pub const POD: Self = Self::new("v1", "Pod");
    /// core/v1 Secret.
    pub const SECRET: Self = Self::new("v1", "Secret");
    /// core/v1 Service.
    pub const SERVICE: Self = Self::new("v1", "Service");
    /// core/v1 `ServiceAccount`.
    pub const SERVICE_ACCOUNT: Self = Self::new("v1", "ServiceAccount");
    /// apps/v1 Deployment.
    pub const DEPLOYMENT: Self = Self::new("apps/v1", "Deployment");
    /// batch/v1 `CronJob`.
    pub const CRON_JOB: Self = Self::new("batch/v1", "CronJob");
    /// coordination.k8s.io/v1 Lease.
    pub const LEASE: Self = Self::new("coordination.k8s.io/v1", "Lease");
    /// batch/v1 Job.
    pub const JOB: Self = Self::new("batch/v1", "Job");
    /// apiextensions.k8s.io/v1 `CustomResourceDefinition`.
    pub const CRD: Self = Self::new("apiextensions.k8s.io/v1", "CustomResourceDefinition");
    /// innkeeper.dev/v1alpha1 Module.
    pub const MODULE: Self = Self::new("innkeeper.dev/v1alpha1", "Module");
    /// quay.io/v1alpha1 Podroute.
    pub const PODROUTE: Self = Self::new("quay.io/v1alpha1", "Podroute");
    /// route.openshift.io/v1 Route.
    pub const ROUTE: Self = Self::new("route.openshift.io/v1", "Route");

    /// bench.innkeeper.dev/v1 Bench: the primaries of the guest `bench`.
    pub const BENCH: Self = Self::new("bench.innkeeper.dev/v1", "Bench");
    /// example.innkeeper.dev/v1 Settings: the primaries of the guest `settings`.
    pub const SETTINGS: Self = Self::new("example.innkeeper.dev/v1", "Settings");

    /// Any other.
    pub const fn new(api_version: &'static str, kind: &'static str) -> Self {
        Self { api_version, kind }
    }
}

impl std::fmt::Display for Kind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.api_version, self.kind)
    }
}
