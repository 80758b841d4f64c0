//! A simulated cluster with an operator on it.

use std::time::Duration;

use innkeeper_cluster::{Cluster, Env, SecretDigestKey, Settings};
use innkeeper_operator::ReplicaPolicies;
use innkeeper_simulator::{Controllers, Simulator};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::api::{Api, ApiFailure};
use crate::operator::{Guests, LabError, Modules, RunningOperator};
use crate::policy_requests;
use crate::webhook_keeper::WebhookKeeper;

/// The step of virtual time: the operator runs between two steps.
const TICK: Duration = Duration::from_secs(1);

/// The resolution of timers.
const SETTLE_TIME: Duration = Duration::from_millis(1);

/// The namespace of the host, unless the cluster has another one.
const HOST: &str = "innkeeper-system";

/// The namespace of the modules' accounts.
const MODULES: &str = innkeeper_operator::MODULES_NAMESPACE;

/// The time without a write after which the cluster is quiet. Pods of Jobs end after five seconds,
/// and the operator retries after a few.
const QUIET: Duration = Duration::from_secs(15);

/// What a lab begins with.
#[derive(Clone, Debug)]
pub struct Setup {
    /// The seed of everything random.
    pub seed: u64,
    /// The time at the beginning.
    pub start: Timestamp,
    /// The controllers of the cluster.
    pub controllers: Controllers,
    /// The Modules of the operator.
    pub modules: Modules,
    /// The objects that exist before the operator starts, such as the rights of the modules.
    pub objects: Vec<Value>,
    /// Whether the simulator logs requests, responses and events ([`Simulator::log`]).
    pub keep_log: bool,
}

impl Setup {
    /// A cluster with all controllers, at the beginning of 2026.
    pub fn new(seed: u64) -> Self {
        Self {
            seed,
            start: Timestamp::from_second(1_767_225_600).unwrap_or(Timestamp::UNIX_EPOCH),
            controllers: Controllers::all(),
            modules: Modules::Given(Vec::new()),
            objects: Vec::new(),
            keep_log: false,
        }
    }
}

/// A condition was not met in time.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what}: not within {} s", .limit.as_secs())]
pub struct Timeout {
    /// The condition.
    pub what: String,
    /// How long, in virtual time.
    pub limit: Duration,
}

/// A simulated cluster with an operator on it.
pub struct Lab {
    simulator: Simulator,
    api: Api,
    running: RunningOperator,
    /// For Modules that are no objects of the cluster.
    webhooks: Option<WebhookKeeper>,
    modules: usize,
}

impl Lab {
    /// Sets it up and starts the operator. Has to be called within [`crate::block_on`].
    ///
    /// # Errors
    /// If the operator does not start, or the cluster refuses what is to be there.
    pub async fn start(guests: &Guests, setup: Setup) -> Result<Self, LabError> {
        let simulator = Simulator::with(setup.seed, setup.start, setup.controllers);
        Self::on(simulator, guests, setup).await
    }

    /// The same on a simulator that is there already, whose clock the operator's follows; of the
    /// setup its seed of the operator, modules, objects and log are taken.
    ///
    /// # Errors
    /// As [`Self::start`].
    pub async fn on(simulator: Simulator, guests: &Guests, setup: Setup) -> Result<Self, LabError> {
        let env = Env::scripted(setup.seed, simulator.now());
        let secrets = SecretDigestKey::new(b"lab");
        let cluster = Cluster::over(simulator.clone(), env, Settings::default(), secrets);
        Self::over(simulator, cluster, guests, setup).await
    }

    /// The same with an operator whose requests reach the simulator through `cluster`: a test puts
    /// a proxy there to record requests and to answer some itself.
    ///
    /// # Errors
    /// As [`Self::start`].
    pub async fn over(
        simulator: Simulator,
        cluster: Cluster,
        guests: &Guests,
        setup: Setup,
    ) -> Result<Self, LabError> {
        if setup.keep_log {
            simulator.keep_log();
        }
        let api = Api::simulated(simulator.clone());
        let namespace =
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": MODULES}});
        for object in [namespace].iter().chain(&setup.objects) {
            api.apply(object, "default").await.map_err(|error| LabError::Refused {
                what: format!(
                    "{} {}",
                    object["kind"].as_str().unwrap_or_default(),
                    object["metadata"]["name"].as_str().unwrap_or_default()
                ),
                why: error.to_string(),
            })?;
        }
        let host_namespace = cluster.host().host_namespace().unwrap_or(HOST).to_owned();
        let running = RunningOperator::start(cluster, guests, &setup.modules)?;
        policy_requests::answer(&simulator, running.policies());
        let webhooks = match &setup.modules {
            Modules::Given(_) => {
                let (api, policies) = (api.clone(), running.policies());
                Some(WebhookKeeper::start(running.env(), api, policies, &host_namespace))
            }
            // The leader of the host writes them, from its records of the policies.
            Modules::OfCluster => None,
        };
        let is_module = |object: &&Value| object["kind"] == "Module";
        let modules = match &setup.modules {
            Modules::Given(modules) => modules.len(),
            Modules::OfCluster => setup.objects.iter().filter(is_module).count(),
        };
        Ok(Self { simulator, api, running, webhooks, modules })
    }

    /// The cluster.
    pub fn simulator(&self) -> &Simulator {
        &self.simulator
    }

    /// Requests to it.
    pub fn api(&self) -> &Api {
        &self.api
    }

    /// The operator.
    pub fn running(&self) -> &RunningOperator {
        &self.running
    }

    /// The policies with which the operator reviews requests of the cluster.
    pub fn policies(&self) -> &ReplicaPolicies {
        self.running.policies()
    }

    /// Changes the Module at a place among those that the setup gave, as a user edits its manifest.
    ///
    /// # Errors
    /// If the file of the Module cannot be written.
    pub fn replace_module(&self, place: usize, module: &Value) -> std::io::Result<()> {
        self.running.replace_module(place, module)
    }

    /// Whether the cluster sends requests to the policy of this module.
    pub fn reviews_with(&self, module: &str) -> bool {
        self.webhooks.as_ref().is_some_and(|webhooks| webhooks.reaches(module))
    }

    /// Advances the virtual time, second by second.
    pub async fn pass(&self, time: Duration) {
        let mut left = time;
        while !left.is_zero() {
            let step = left.min(TICK);
            // The operator runs, then the time advances, then the operator reacts to that.
            self.running.env().sleep(step.saturating_sub(SETTLE_TIME)).await;
            self.simulator.advance(SignedDuration::try_from(step).unwrap_or_default());
            self.running.env().sleep(SETTLE_TIME).await;
            left = left.saturating_sub(TICK);
        }
    }

    /// Advances the time until `holds` returns true, at most for `limit`. `what` names the
    /// condition.
    ///
    /// # Errors
    /// If the condition is not met in time.
    pub async fn until(
        &self,
        what: &str,
        limit: Duration,
        mut holds: impl AsyncFnMut(&Api) -> Result<bool, ApiFailure>,
    ) -> Result<(), Timeout> {
        let mut passed = Duration::ZERO;
        loop {
            if holds(&self.api).await.unwrap_or(false) {
                return Ok(());
            }
            if passed >= limit {
                return Err(Timeout { what: what.to_owned(), limit });
            }
            self.pass(TICK).await;
            passed += TICK;
        }
    }

    /// Advances the time until all Modules are active, and the cluster sends requests to all
    /// policies, at most for `limit`.
    ///
    /// # Errors
    /// If one is not active in time: see the log. If the cluster refuses the webhook configuration
    /// of a policy, the error says why.
    pub async fn serves(&self, limit: Duration) -> Result<(), Timeout> {
        let what = match self.modules {
            1 => "the module is active".to_owned(),
            all => format!("{all} modules are active"),
        };
        let webhooks = self.webhooks.as_ref();
        let served = self.until(&what, limit, async |_| {
            let operator = self.running.operator();
            let is_active = operator.is_ready() && operator.serving().len() == self.modules;
            Ok(is_active && webhooks.is_none_or(WebhookKeeper::reaches_all))
        });
        let problem = || webhooks.and_then(WebhookKeeper::problem);
        served.await.map_err(|timeout| match problem() {
            Some(problem) => Timeout { what: format!("{}; {problem}", timeout.what), ..timeout },
            None => timeout,
        })
    }

    /// Advances the time until nobody has written for a while, at most for `limit`.
    ///
    /// # Errors
    /// If the writes go on.
    pub async fn settle(&self, limit: Duration) -> Result<(), Timeout> {
        let (mut passed, mut quiet) = (Duration::ZERO, Duration::ZERO);
        let mut version = self.simulator.version();
        while quiet < QUIET {
            if passed >= limit {
                return Err(Timeout { what: "no more writes".to_owned(), limit });
            }
            self.pass(TICK).await;
            passed += TICK;
            let now = self.simulator.version();
            let is_quiet = now == version && self.running.operator().is_quiet();
            quiet = if is_quiet { quiet + TICK } else { Duration::ZERO };
            version = now;
        }
        Ok(())
    }

    /// Stops the operator and waits for its end. Returns whether it ended without a panic.
    pub async fn end(self) -> bool {
        if let Some(webhooks) = self.webhooks {
            webhooks.end().await;
        }
        self.running.end().await
    }
}
