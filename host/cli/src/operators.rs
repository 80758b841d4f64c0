//! The operators of one process, and their connections.

use innkeeper_cluster::{
    Cluster, Env, Fence, Kube, LeaderElector, LeaseConfig, SecretDigestKey, Settings,
};
use innkeeper_operator::{AdmissionSettings, Bounds, ModulesLocation, Operator, ReplicaPolicies};
use innkeeper_sandbox::Engine;

use crate::lead::{self, Shutdown};
use crate::serve::SharedHostState;

/// Makes connections to the API server.
pub(crate) struct Connections {
    pub(crate) kube: Kube,
    pub(crate) env: Env,
}

impl Connections {
    /// A connection of its own, with this key for the digests of Secrets.
    ///
    /// # Errors
    /// If the connection is misconfigured.
    pub(crate) async fn open(
        &self,
        secrets: SecretDigestKey,
        fence: Fence,
    ) -> anyhow::Result<Cluster> {
        self.open_with(Settings::default(), secrets, fence).await
    }

    async fn open_with(
        &self,
        settings: Settings,
        secrets: SecretDigestKey,
        fence: Fence,
    ) -> anyhow::Result<Cluster> {
        Ok(Cluster::open(&self.kube, self.env.clone(), settings, secrets, fence).await?)
    }
}

/// Who holds which Lease while an operator runs.
pub(crate) struct LeaseClaim<'a> {
    /// The namespace of the Lease.
    pub(crate) namespace: &'a str,
    /// Its name.
    pub(crate) name: &'a str,
    /// The unique name of this process.
    pub(crate) identity: &'a str,
    /// For how long a term lasts without a renewal.
    pub(crate) terms: LeaseConfig,
    /// A key for a connection that reads no Secrets.
    pub(crate) secrets: SecretDigestKey,
}

/// Makes the operators of this process: one for each term of leadership.
pub(crate) struct Operators {
    /// Runs the guests.
    pub(crate) engine: Engine,
    /// Where the Modules are.
    pub(crate) from: ModulesLocation,
    /// How much runs at the same time.
    pub(crate) bounds: Bounds,
    /// The policies of this process.
    pub(crate) policies: ReplicaPolicies,
    /// How the API server reaches the replicas; `None` if they do not review.
    pub(crate) admission: Option<AdmissionSettings>,
    /// The name of this host in Events.
    pub(crate) instance: String,
    /// Whether guests also run for changes of fields that they do not read.
    pub(crate) wakes_for_every_field: bool,
}

impl Operators {
    /// An operator that connects to this cluster.
    ///
    /// # Errors
    /// If the metrics cannot be registered.
    pub(crate) fn make(&self, cluster: Cluster) -> anyhow::Result<Operator> {
        let (engine, from, policies) =
            (self.engine.clone(), self.from.clone(), self.policies.clone());
        let operator = Operator::new(cluster, engine, from, self.bounds, policies, &self.instance)?;
        if self.wakes_for_every_field {
            operator.wake_for_every_field();
        }
        Ok(match self.admission.clone() {
            Some(settings) => operator.with_admission(settings),
            None => operator,
        })
    }

    /// Runs an operator whenever this process holds the Lease, until the shutdown. `key` is that of
    /// the host.
    ///
    /// # Errors
    /// If a connection is misconfigured, or an operator hangs or ends.
    pub(crate) async fn elect(
        &self,
        connections: &Connections,
        key: SecretDigestKey,
        claim: LeaseClaim<'_>,
        state: &SharedHostState<Operator>,
        shutdown: Shutdown,
    ) -> anyhow::Result<()> {
        let LeaseClaim { namespace, name, identity, terms, secrets } = claim;
        let open = Fence::open(&connections.env);
        let electing = connections.open_with(terms.settings(), secrets, open).await?;
        let candidate = LeaderElector::new(&electing, (namespace, name), identity, terms);
        // New connections for each term: none outlives the Lease.
        let start = async |fence: Fence| self.make(connections.open(key.clone(), fence).await?);
        lead::lead(candidate, state, shutdown, start).await
    }
}
