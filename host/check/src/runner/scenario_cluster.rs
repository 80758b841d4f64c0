//! The simulated cluster of one scenario, and the processes of the host on it.

use std::collections::BTreeMap;
use std::time::Duration;

use innkeeper_cluster::{
    Cluster, Env, Fence, LeaderElector, LeaseConfig, SecretDigestKey, Settings,
};
use innkeeper_faults::{Connection, FaultInjector};
use innkeeper_lab::{Api, ApiFailure, Content, Lab, Modules, Setup};
use innkeeper_simulator::{Backup, Simulator};
use jiff::SignedDuration;
use serde_json::{Value, json};
use tokio::sync::watch;

use super::host_process::HostProcess;
use super::incident_schedule::IncidentSchedule;
use super::network_link::NetworkLink;
use super::scenario_fixture::{HostileModule, ScenarioFixture};
use super::write_barrier::WriteBarrier;
use crate::incident::Incident;
use crate::run_error::RunError;
use crate::scenario::{Scenario, Step};

/// The longest time until the Module is active, in virtual time.
const ACTIVATION_MAX: Duration = Duration::from_mins(2);

/// The longest time until nobody writes any more, in virtual time: above the longest wait of the
/// host before it tries again.
const QUIET_MAX: Duration = Duration::from_mins(20);

/// The step of virtual time in which the runner looks for crashes and incidents.
const TICK: Duration = Duration::from_secs(1);

/// The resolution of timers.
const SETTLE_TIME: Duration = Duration::from_millis(1);

/// How long nobody writes until the cluster counts as quiet.
const QUIET: Duration = Duration::from_secs(15);

/// The same under faults: above the longest time that one keeps an event or an answer back.
const QUIET_UNDER_FAULTS: Duration = Duration::from_secs(75);

/// After this time without such a quiet one a shorter one suffices also under faults: something
/// writes from time to time, such as a CronJob each minute. No fault lasts as long.
const PERIODIC_AFTER: Duration = Duration::from_mins(5);

/// After this time the wait before the next try of what failed counts as quiet: it fails for ever,
/// as no fault lasts as long.
const RETRIES_MAX: Duration = Duration::from_mins(15);

/// The longest time that an orderly stop of the host may take, in virtual time.
pub(super) const STOP_MAX: Duration = Duration::from_mins(1);

/// The longest time until a deleted object is gone, in virtual time.
const GONE_MAX: u32 = 300;

/// The namespace of objects that name none.
pub(super) const NAMESPACE: &str = "default";

/// The namespace and the name of the Lease.
const LEASE: (&str, &str) = ("innkeeper-system", "innkeeper");

/// The first process of the host, and those that follow it.
pub(super) const FIRST_HOST: &str = "host-a";

/// The simulated cluster of one scenario, and the processes of the host on it.
pub(super) struct ScenarioCluster<'a> {
    pub(super) fixture: &'a ScenarioFixture,
    seed: u64,
    pub(super) simulator: Simulator,
    pub(super) barrier: WriteBarrier,
    pub(super) injector: FaultInjector<WriteBarrier>,
    pub(super) process: HostProcess,
    pub(super) api: Api,
    pub(super) crashes: u32,
    /// How long nobody writes until the cluster counts as quiet.
    quiet: Duration,
    pub(super) module: Value,
    /// Whether the Module of the hostile guest exists.
    has_hostile_module: bool,
    /// Whether hosts elect a leader.
    elects_leader: bool,
    /// Whether the host also runs the guest for changes of fields that it does not report.
    wakes_for_every_field: bool,
    /// By how many seconds the clock of the host was set forward.
    pub(super) clock_offset: i64,
    pub(super) backup: Option<Backup>,
    pub(super) schedule: IncidentSchedule,
    /// The incidents so far, and how many requests of the host arrived during each.
    pub(super) incidents: Vec<(Incident, u64)>,
    /// The writes of a host after it lost its Lease.
    pub(super) writes_after_lease_loss: Vec<String>,
    /// How many calls of the guest failed, by reason, and how many had a partial answer, in the
    /// processes of the host that have ended.
    pub(super) guest_failures: BTreeMap<String, u64>,
    pub(super) partial_answers: u64,
}

impl<'a> ScenarioCluster<'a> {
    /// Starts a cluster and a host with a Module, and waits until it is active.
    pub(super) async fn start(
        fixture: &'a ScenarioFixture,
        scenario: &Scenario,
        module: &Value,
    ) -> Result<Self, RunError> {
        let setup = Setup::new(scenario.seed);
        let simulator = Simulator::with(scenario.seed, setup.start, setup.controllers);
        let barrier = WriteBarrier::new(simulator.clone());
        let injector = FaultInjector::new(barrier.clone());
        let env = Env::scripted(scenario.seed, simulator.now());
        let connection = Connection::through(&injector);
        let link = NetworkLink::new(connection.clone());
        let mut cluster = Self {
            fixture,
            seed: scenario.seed,
            api: Api::simulated(simulator.clone()),
            simulator,
            barrier,
            injector,
            process: HostProcess { env, connection, link, lab: None, election: None },
            crashes: 0,
            quiet: if scenario.needs_long_quiet { QUIET_UNDER_FAULTS } else { QUIET },
            module: module.clone(),
            has_hostile_module: scenario.needs_hostile_module(),
            elects_leader: scenario.has_election(),
            wakes_for_every_field: scenario.wakes_for_every_field,
            clock_offset: 0,
            backup: None,
            schedule: IncidentSchedule::default(),
            incidents: Vec::new(),
            writes_after_lease_loss: Vec::new(),
            guest_failures: BTreeMap::new(),
            partial_answers: 0,
        };
        if cluster.elects_leader {
            let namespace = json!({"apiVersion": "v1", "kind": "Namespace",
                "metadata": {"name": LEASE.0}});
            cluster.api.apply(&namespace, NAMESPACE).await?;
        }
        let mut objects = fixture.subject.preexisting.clone();
        if let Some(hostile) = cluster.hostile_module() {
            objects.extend(hostile.preexisting.iter().cloned());
        }
        cluster.process = cluster.start_process(FIRST_HOST, objects).await?;
        Ok(cluster)
    }

    /// The Module of the hostile guest, if it exists in this scenario.
    fn hostile_module(&self) -> Option<&'a HostileModule> {
        self.fixture.hostile_module.as_ref().filter(|_| self.has_hostile_module)
    }

    /// Starts the next process of the host in place of the present one.
    pub(super) async fn start_host(&mut self) -> Result<(), RunError> {
        self.process = self.start_process(FIRST_HOST, Vec::new()).await?;
        Ok(())
    }

    /// Starts a process of the host, and waits until it leads and its Module is active, or it has
    /// crashed.
    pub(super) async fn start_process(
        &mut self,
        identity: &str,
        objects: Vec<Value>,
    ) -> Result<HostProcess, RunError> {
        let connection = Connection::through(&self.injector);
        let link = NetworkLink::new(connection.clone());
        // Two hosts draw other random numbers.
        let seed = if identity == FIRST_HOST { self.seed } else { !self.seed };
        let env = Env::scripted(seed, self.simulator.now());
        env.set_clock_forward(self.clock_offset);
        let mut process = HostProcess { env, connection, link, lab: None, election: None };
        let Some(fence) = self.lead(&mut process, identity).await? else { return Ok(process) };
        let mut setup = Setup::new(self.seed);
        setup.objects = objects;
        let hostile = self.hostile_module().map(|hostile| &hostile.module);
        let modules = [Some(&self.module), hostile];
        setup.modules = Modules::Given(modules.into_iter().flatten().cloned().collect());
        let secrets = SecretDigestKey::new(b"check");
        let (link, env) = (process.link.behind(fence.clone()), process.env.clone());
        let cluster = Cluster::over(link, env, Settings::default(), secrets).behind(fence);
        let guests = &self.fixture.guests;
        let lab = Lab::over(self.simulator.clone(), cluster, guests, setup).await?;
        if self.wakes_for_every_field {
            lab.running().operator().wake_for_every_field();
        }
        process.lab = Some(lab);
        let mut passed = Duration::ZERO;
        loop {
            let Some(lab) = &process.lab else { return Ok(process) };
            let operator = lab.running().operator();
            let is_active = || operator.serving().contains(&self.fixture.subject.name);
            if process.connection.is_crashed() || operator.is_ready() && is_active() {
                return Ok(process);
            }
            if passed >= ACTIVATION_MAX {
                let reason = format!("the Module is not active after {} s", passed.as_secs());
                return Err(RunError::Inactive(reason));
            }
            self.pass_second().await;
            // An incident in the middle of the start happens after it.
            self.barrier.release(self.barrier.reached());
            passed += TICK;
        }
    }

    /// Waits until a process holds the Lease; gives its fence. `None` if it has crashed before.
    async fn lead(
        &self,
        process: &mut HostProcess,
        identity: &str,
    ) -> Result<Option<Fence>, RunError> {
        if !self.elects_leader {
            return Ok(Some(Fence::open(&process.env)));
        }
        let terms = LeaseConfig::default();
        let (link, env) = (process.link.clone(), process.env.clone());
        let cluster = Cluster::over(link, env, terms.settings(), SecretDigestKey::new(b"check"));
        let mut elector = LeaderElector::new(&cluster, LEASE, identity, terms);
        let (acquired, mut fence) = watch::channel(None);
        process.election = Some(process.env.spawn("elect", async move {
            let fence = elector.acquire().await;
            acquired.send_replace(Some(fence));
            elector.hold().await
        }));
        let mut passed = Duration::ZERO;
        while passed < ACTIVATION_MAX {
            if process.connection.is_crashed() {
                return Ok(None);
            }
            if let Some(fence) = fence.borrow_and_update().clone() {
                return Ok(Some(fence));
            }
            self.pass_second().await;
            passed += TICK;
        }
        let reason = format!("{identity} does not lead after {} s", passed.as_secs());
        Err(RunError::Inactive(reason))
    }

    /// Lets a second pass: the host runs, then the time of the cluster advances, then the host
    /// reacts to that.
    async fn pass_second(&self) {
        tokio::time::sleep(TICK.saturating_sub(SETTLE_TIME)).await;
        self.simulator.advance(SignedDuration::try_from(TICK).unwrap_or_default());
        tokio::time::sleep(SETTLE_TIME).await;
    }

    /// Lets a second pass. Another process of the host starts after a crash, and after the loss of
    /// the Lease.
    pub(super) async fn second(&mut self) -> Result<(), RunError> {
        self.pass_second().await;
        while self.process.connection.is_crashed() {
            self.crashes += 1;
            self.count_calls();
            self.process.kill();
            self.start_host().await?;
        }
        if self.process.has_lost_lease() {
            self.count_calls();
            self.process.kill();
            self.start_host().await?;
        }
        Ok(())
    }

    /// Lets time pass until nobody writes any more. Returns whether that happened in time.
    ///
    /// A reconcile that writes nothing and takes less than a second, as those that a guest asks for
    /// from time to time, does not count.
    pub(super) async fn settle(&mut self) -> Result<bool, RunError> {
        let (mut passed, mut quiet, mut busy) = (Duration::ZERO, Duration::ZERO, 0);
        let mut version = self.barrier.version();
        loop {
            let needed = if passed >= PERIODIC_AFTER { QUIET } else { self.quiet };
            let retries = passed < RETRIES_MAX && self.process.waits_for_retry();
            if quiet >= needed && busy == 0 && !retries {
                return Ok(true);
            }
            if passed >= QUIET_MAX {
                return Ok(false);
            }
            self.tick().await?;
            passed += TICK;
            let now = self.barrier.version();
            busy = if self.process.is_quiet() { 0 } else { busy + 1 };
            quiet = if now == version && busy < 2 { quiet + TICK } else { Duration::ZERO };
            version = now;
        }
    }

    /// Stops the host in an orderly way.
    pub(super) async fn stop_host(&mut self) {
        self.count_calls();
        self.process.election = None;
        if let Some(lab) = self.process.lab.take() {
            // It has to release what it holds, but a request without an answer must not stop it.
            let _ = self.process.env.timeout(STOP_MAX, lab.end()).await;
        }
        self.process.kill();
    }

    /// Sends the request of a step of a user or of another client. Other steps send none.
    pub(super) async fn send_step(&mut self, step: &Step) -> Result<(), ApiFailure> {
        match step {
            Step::Apply(object) => self.api.apply(object, NAMESPACE).await.map(drop),
            Step::Replace(object) => {
                let path = self.api.path_of(object, NAMESPACE).await?;
                let Some(present) = self.api.get(&path).await? else {
                    return self.api.apply(object, NAMESPACE).await.map(drop);
                };
                let mut object = object.clone();
                object["metadata"]["resourceVersion"] =
                    present["metadata"]["resourceVersion"].clone();
                self.api.send("PUT", &path, Content::Json, &object).await.map(drop)
            }
            Step::Delete(object) => {
                let path = self.api.path_of(object, NAMESPACE).await?;
                self.api.delete(&path).await.map(drop)
            }
            Step::MergePatch(object) => {
                let path = self.api.path_of(object, NAMESPACE).await?;
                self.api.send("PATCH", &path, Content::MergePatch, object).await.map(drop)
            }
            Step::Settle
            | Step::Wait(_)
            | Step::Restart
            | Step::Upgrade
            | Step::Recreate(_)
            | Step::Incident(_) => Ok(()),
        }
    }

    /// Deletes an object, waits until it is gone, and applies it.
    pub(super) async fn recreate(
        &mut self,
        object: &Value,
    ) -> Result<Result<(), ApiFailure>, RunError> {
        let path = self.api.path_of(object, NAMESPACE).await?;
        if let Err(error) = self.api.delete(&path).await {
            return Ok(Err(error));
        }
        for _ in 0..GONE_MAX {
            if self.api.get(&path).await?.is_none() {
                break;
            }
            self.tick().await?;
        }
        Ok(self.api.apply(object, NAMESPACE).await.map(drop))
    }

    /// Adds what the present process of the host has counted about the guest.
    pub(super) fn count_calls(&mut self) {
        let of_guest = format!("module=\"{}\"", self.fixture.subject.name);
        for (labels, count) in self.process.counts("innkeeper_guest_failures_total") {
            let reason = labels.split_once("reason=\"").map(|(_, rest)| rest);
            let reason = reason.and_then(|rest| rest.split('"').next()).unwrap_or_default();
            if count > 0 && labels.contains(&of_guest) {
                *self.guest_failures.entry(reason.to_owned()).or_default() += count;
            }
        }
        let partial = self.process.counts("innkeeper_guest_partial_answers_total");
        let partial = partial.iter().filter(|(labels, _)| labels.contains(&of_guest));
        self.partial_answers += partial.map(|(_, count)| count).sum::<u64>();
    }

    /// Stops the host at the end. Returns whether it ended in time and without a panic.
    pub(super) async fn end(mut self) -> bool {
        self.process.election = None;
        let Some(lab) = self.process.lab.take() else { return false };
        self.process.env.timeout(STOP_MAX, lab.end()).await.unwrap_or(false)
    }
}
