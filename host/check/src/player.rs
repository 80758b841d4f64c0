//! Plays scenarios: the host with the guest on a simulated cluster, with faults in between.

use std::collections::BTreeMap;
use std::time::Duration;

use innkeeper_cluster::{Cluster, Env, SecretKey, Settings};
use innkeeper_faults::{Connection, FaultInjector, FaultPlan};
use innkeeper_lab::{Api, ApiFailure, Content, Guests, Lab, LabError, Modules, Setup};
use innkeeper_simulator::Simulator;
use serde_json::Value;

use crate::cluster_state::ClusterState;
use crate::outcome::Outcome;
use crate::scenario::{Scenario, Step};
use crate::subject::Subject;

/// The longest time until the Module is active, in virtual time.
const ACTIVATION_MAX: Duration = Duration::from_mins(2);

/// The longest time until nobody writes any more, in virtual time: above the longest wait of the
/// host before it tries again.
const QUIET_MAX: Duration = Duration::from_mins(20);

/// The step of virtual time in which the player looks for a crash.
const TICK: Duration = Duration::from_secs(1);

/// How long nobody writes until the cluster counts as quiet.
const QUIET: Duration = Duration::from_secs(15);

/// The same under faults: above the longest time that one keeps an event or an answer back.
const QUIET_UNDER_FAULTS: Duration = Duration::from_secs(75);

/// The longest time that an orderly stop of the host may take, in virtual time.
const STOP_MAX: Duration = Duration::from_mins(1);

/// The namespace of objects that name none.
const NAMESPACE: &str = "default";

/// Why a scenario cannot be played.
#[derive(Debug, thiserror::Error)]
pub enum PlayError {
    /// The lab does not start.
    #[error(transparent)]
    Lab(#[from] LabError),
    /// The Module does not become active.
    #[error("{0}")]
    Inactive(String),
    /// The simulated API server refuses a sample.
    #[error("the simulated API server refuses a sample: {0}")]
    Sample(String),
    /// The simulated API server does not give what the comparison needs.
    #[error("cannot read the simulated cluster: {0}")]
    Read(#[from] ApiFailure),
}

/// Plays scenarios with one guest.
pub struct Player {
    guests: Guests,
    subject: Subject,
}

/// A cluster, and the process of the host on it.
struct Stage<'a> {
    player: &'a Player,
    seed: u64,
    simulator: Simulator,
    injector: FaultInjector<Simulator>,
    connection: Connection<Simulator>,
    lab: Option<Lab>,
    api: Api,
    crashes: u32,
    /// How long nobody writes until the cluster counts as quiet.
    quiet: Duration,
    module: Value,
    /// How many calls of the guest failed, by reason, and how many had a partial answer, in the
    /// processes of the host that have ended.
    guest_failures: BTreeMap<String, u64>,
    partial_answers: u64,
}

impl Player {
    /// A player for a guest. `guests` compiles its component.
    pub fn new(guests: Guests, subject: Subject) -> Self {
        Self { guests, subject }
    }

    /// The guest.
    pub fn subject(&self) -> &Subject {
        &self.subject
    }

    /// Plays a scenario on a new cluster.
    ///
    /// # Errors
    /// If the cluster or the host does not start, which is no fault of the scenario.
    pub fn play(&self, scenario: &Scenario) -> Result<Outcome, PlayError> {
        innkeeper_lab::block_on(self.play_on_time(scenario))?
    }

    async fn play_on_time(&self, scenario: &Scenario) -> Result<Outcome, PlayError> {
        let earlier = self.subject.earlier_module.as_ref();
        let earlier = earlier.filter(|_| scenario.steps.contains(&Step::Upgrade));
        let module = earlier.unwrap_or(&self.subject.module);
        let mut stage = Stage::start(self, scenario.seed, module).await?;
        stage.injector.take_recorded();
        stage.injector.set_plan(scenario.faults.clone());
        if scenario.is_patient {
            stage.quiet = QUIET_UNDER_FAULTS;
        }
        let (mut states, mut refused_steps) = (Vec::new(), Vec::new());
        let mut requests = Vec::new();
        let mut restarted_at = None;
        for step in &scenario.steps {
            match step {
                Step::Settle => {
                    stage.settle().await?;
                    states.push(ClusterState::read(&stage.api, &self.subject).await?);
                }
                Step::Pass(seconds) => {
                    for _ in 0..*seconds {
                        stage.tick().await?;
                    }
                }
                Step::Restart => {
                    stage.stop_host().await;
                    requests.extend(stage.injector.take_recorded());
                    restarted_at = Some(requests.len());
                    stage.start_host(Vec::new()).await?;
                }
                Step::Upgrade => {
                    stage.stop_host().await;
                    stage.module = self.subject.module.clone();
                    stage.start_host(Vec::new()).await?;
                }
                Step::Apply(_) | Step::Replace(_) | Step::Delete(_) | Step::Merge(_) => {
                    if let Err(error) = stage.carry_out(step).await {
                        refused_steps.push(format!("{step}: {error}"));
                    }
                }
            }
        }
        let is_quiet = stage.settle().await?;
        states.push(ClusterState::read(&stage.api, &self.subject).await?);
        let unused_faults = stage.injector.unused();
        stage.injector.set_plan(FaultPlan::default());
        stage.count_calls();
        let guest_failures = std::mem::take(&mut stage.guest_failures).into_iter().collect();
        let partial_answers = stage.partial_answers;
        requests.extend(stage.injector.take_recorded());
        let since_restart = restarted_at.map_or(&[][..], |at| &requests[at..]);
        let writes = since_restart.iter().filter(|one| one.write.is_some());
        let text = |body: &[u8]| String::from_utf8_lossy(body).into_owned();
        let writes_since_restart = writes.map(|one| (one.info.clone(), text(&one.body))).collect();
        let crashes = stage.crashes;
        let is_ended_well = stage.end().await;
        Ok(Outcome {
            is_quiet,
            states,
            requests,
            crashes,
            refused_steps,
            guest_failures,
            partial_answers,
            unused_faults,
            writes_since_restart,
            is_ended_well,
        })
    }
}

impl<'a> Stage<'a> {
    async fn start(player: &'a Player, seed: u64, module: &Value) -> Result<Self, PlayError> {
        let setup = Setup::new(seed);
        let simulator = Simulator::with(seed, setup.start, setup.controllers);
        let injector = FaultInjector::new(simulator.clone());
        let connection = Connection::through(&injector);
        let api = Api::simulated(simulator.clone());
        let mut stage = Self {
            player,
            seed,
            simulator,
            injector,
            connection,
            lab: None,
            api,
            crashes: 0,
            quiet: QUIET,
            module: module.clone(),
            guest_failures: BTreeMap::new(),
            partial_answers: 0,
        };
        stage.start_host(player.subject.before.clone()).await?;
        Ok(stage)
    }

    /// Starts a process of the host, and waits until its Module is active.
    async fn start_host(&mut self, objects: Vec<Value>) -> Result<(), PlayError> {
        let mut setup = Setup::new(self.seed);
        setup.objects = objects;
        setup.modules = Modules::Given(vec![self.module.clone()]);
        let env = Env::scripted(self.seed, self.simulator.now());
        let secrets = SecretKey::new(b"check");
        let cluster = Cluster::over(self.connection.clone(), env, Settings::default(), secrets);
        let lab = Lab::over(self.simulator.clone(), cluster, &self.player.guests, setup).await?;
        self.lab = Some(lab);
        let mut passed = Duration::ZERO;
        loop {
            let Some(lab) = &self.lab else { return Ok(()) };
            let operator = lab.running().operator();
            if self.connection.is_crashed() || operator.is_ready() && !operator.serving().is_empty()
            {
                return Ok(());
            }
            if passed >= ACTIVATION_MAX {
                let reason = format!("the Module is not active after {} s", passed.as_secs());
                return Err(PlayError::Inactive(reason));
            }
            lab.pass(TICK).await;
            passed += TICK;
        }
    }

    /// Lets a second pass. After a crash another process of the host starts.
    async fn tick(&mut self) -> Result<(), PlayError> {
        if let Some(lab) = &self.lab {
            lab.pass(TICK).await;
        }
        while self.connection.is_crashed() {
            self.crashes += 1;
            self.count_calls();
            // Its tasks end where they wait, as those of a killed process.
            self.lab = None;
            self.connection = Connection::through(&self.injector);
            self.start_host(Vec::new()).await?;
        }
        Ok(())
    }

    /// Lets time pass until nobody writes any more. Returns whether that happened in time.
    async fn settle(&mut self) -> Result<bool, PlayError> {
        let (mut passed, mut quiet) = (Duration::ZERO, Duration::ZERO);
        let mut version = self.simulator.version();
        while quiet < self.quiet {
            if passed >= QUIET_MAX {
                return Ok(false);
            }
            self.tick().await?;
            passed += TICK;
            let now = self.simulator.version();
            let is_idle = self.lab.as_ref().is_some_and(|lab| lab.running().operator().is_quiet());
            quiet = if now == version && is_idle { quiet + TICK } else { Duration::ZERO };
            version = now;
        }
        Ok(true)
    }

    /// Stops the host in an orderly way.
    async fn stop_host(&mut self) {
        self.count_calls();
        if let Some(lab) = self.lab.take() {
            let env = lab.running().env().clone();
            // It has to release what it holds, but a request without an answer must not stop it.
            let _ = env.timeout(STOP_MAX, lab.end()).await;
        }
        self.connection.crash();
        self.connection = Connection::through(&self.injector);
    }

    async fn carry_out(&self, step: &Step) -> Result<(), ApiFailure> {
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
            Step::Merge(object) => {
                let path = self.api.path_of(object, NAMESPACE).await?;
                self.api.send("PATCH", &path, Content::MergePatch, object).await.map(drop)
            }
            Step::Settle | Step::Pass(_) | Step::Restart | Step::Upgrade => Ok(()),
        }
    }

    /// Adds what the present process of the host has counted.
    fn count_calls(&mut self) {
        for (labels, count) in self.counts("innkeeper_guest_failures_total") {
            let reason = labels.split_once("reason=\"").map(|(_, rest)| rest);
            let reason = reason.and_then(|rest| rest.split('"').next()).unwrap_or_default();
            if count > 0 {
                *self.guest_failures.entry(reason.to_owned()).or_default() += count;
            }
        }
        let partial = self.counts("innkeeper_guest_partial_answers_total");
        self.partial_answers += partial.iter().map(|(_, count)| count).sum::<u64>();
    }

    /// The labels and the values of a counter of the host.
    fn counts(&self, metric: &str) -> Vec<(String, u64)> {
        let Some(lab) = &self.lab else { return Vec::new() };
        let metrics = lab.running().operator().metrics();
        let values = metrics.lines().filter_map(|line| {
            let labels = line.strip_prefix(metric)?.strip_prefix('{')?;
            let (labels, value) = labels.split_once("} ")?;
            Some((labels.to_owned(), value.parse().ok()?))
        });
        values.collect()
    }

    async fn end(self) -> bool {
        let Some(lab) = self.lab else { return false };
        let env = lab.running().env().clone();
        env.timeout(STOP_MAX, lab.end()).await.unwrap_or(false)
    }
}
