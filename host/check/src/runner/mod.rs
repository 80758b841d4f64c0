//! Plays scenarios: the host with the guest on a simulated cluster, with faults in between.
//!
//! [`stage`](self::stage) has the cluster, and [`process`](self::process) a process of the host. Its
//! requests take the [`line`](self::line), then the faults, then the [`gate`](self::gate) before the
//! simulated API server.

mod defaulting;
mod gate;
mod given;
mod incidents;
mod line;
mod panics;
mod process;
mod progress;
mod rebuilt;
mod stage;

use innkeeper_faults::{FaultPlan, LogEntry};
use innkeeper_lab::{Guests, Setup};

use self::given::Given;
pub use self::given::Neighbor;
use self::progress::Progress;
use self::stage::Stage;
use crate::cluster_state::ClusterState;
use crate::outcome::Outcome;
use crate::play_error::PlayError;
use crate::scenario::{Scenario, Step};
use crate::subject::Subject;

/// Plays scenarios with one guest.
pub struct Player {
    given: Given,
}

impl Player {
    /// A player for a guest. `guests` compiles its component.
    pub fn new(guests: Guests, subject: Subject) -> Self {
        Self { given: Given::new(guests, subject) }
    }

    /// The same with another Module on the same host.
    #[must_use]
    pub fn with_neighbor(mut self, neighbor: Neighbor) -> Self {
        self.given.neighbor = Some(neighbor);
        self
    }

    /// The guest.
    pub fn subject(&self) -> &Subject {
        &self.given.subject
    }

    /// The other Module.
    pub fn neighbor(&self) -> Option<&Neighbor> {
        self.given.neighbor.as_ref()
    }

    /// Plays a scenario on a new cluster.
    ///
    /// # Errors
    /// If the cluster or the host does not start, which is no fault of the scenario.
    pub fn play(&self, scenario: &Scenario) -> Result<Outcome, PlayError> {
        innkeeper_lab::block_on(self.play_on_time(scenario, false))?
    }

    /// The same, and the requests have also what the host reads.
    ///
    /// # Errors
    /// As [`Player::play`].
    pub(crate) fn play_with_reads(&self, scenario: &Scenario) -> Result<Outcome, PlayError> {
        innkeeper_lab::block_on(self.play_on_time(scenario, true))?
    }

    async fn play_on_time(
        &self,
        scenario: &Scenario,
        records_reads: bool,
    ) -> Result<Outcome, PlayError> {
        let panics_before = panics::count();
        let subject = &self.given.subject;
        let earlier = subject.earlier_module.as_ref();
        let earlier = earlier.filter(|_| scenario.steps.contains(&Step::Upgrade));
        let module = earlier.unwrap_or(&subject.module);
        let mut stage = Stage::start(&self.given, scenario, module).await?;
        stage.injector.take_log();
        if records_reads {
            stage.injector.record_reads();
        }
        stage.injector.set_plan(scenario.faults.clone());
        let (progress, writes) = Progress::of(&scenario.incidents);
        stage.progress = progress;
        stage.gate.plan(writes);
        let (mut states, mut refused_steps) = (Vec::new(), Vec::new());
        let mut settled_writes = Vec::new();
        let mut log = Vec::new();
        let (mut restarted_at, mut is_quiet) = (None, true);
        for step in &scenario.steps {
            match step {
                Step::Settle => {
                    let is_settled = stage.settle().await?;
                    states.push(ClusterState::read(&stage.api, subject).await?);
                    settled_writes.push(stage.injector.writes());
                    // Under faults it takes longer to be quiet than a CronJob waits.
                    is_quiet = is_settled || scenario.is_patient;
                    if !is_quiet {
                        break;
                    }
                }
                Step::Pass(seconds) => {
                    for _ in 0..*seconds {
                        stage.tick().await?;
                    }
                }
                Step::Restart => {
                    stage.stop_host().await;
                    log.extend(stage.injector.take_log());
                    restarted_at = Some(log.len());
                    stage.start_host().await?;
                }
                Step::Upgrade => {
                    stage.stop_host().await;
                    stage.module = subject.module.clone();
                    stage.start_host().await?;
                }
                Step::Incident(incident) => stage.happen(*incident).await?,
                Step::Recreate(object) => {
                    if let Err(error) = stage.recreate(object).await? {
                        refused_steps.push(format!("{step}: {error}"));
                    }
                }
                Step::Apply(_) | Step::Replace(_) | Step::Delete(_) | Step::Merge(_) => {
                    if let Err(error) = stage.carry_out(step).await {
                        refused_steps.push(format!("{step}: {error}"));
                    }
                }
            }
        }
        is_quiet = is_quiet && stage.settle().await?;
        states.push(ClusterState::read(&stage.api, subject).await?);
        settled_writes.push(stage.injector.writes());
        let unused_faults = stage.injector.unused();
        let unused_incidents = stage.progress.left();
        stage.injector.set_plan(FaultPlan::default());
        stage.gate.plan([]);
        stage.count_calls();
        let guest_failures = std::mem::take(&mut stage.guest_failures).into_iter().collect();
        let partial_answers = stage.partial_answers;
        log.extend(stage.injector.take_log());
        let since_restart = restarted_at.map_or(&[][..], |at| &log[at..]);
        let requests = since_restart.iter().filter_map(LogEntry::request);
        let writes = requests.filter(|one| one.write.is_some());
        let text = |body: &[u8]| String::from_utf8_lossy(body).into_owned();
        let writes_since_restart = writes.map(|one| (one.info.clone(), text(&one.body))).collect();
        let crashes = stage.crashes;
        let start = Setup::new(scenario.seed).start;
        let simulated = stage.simulator.now().duration_since(start).unsigned_abs();
        let stage_incidents = std::mem::take(&mut stage.incidents);
        let ousted_writes = std::mem::take(&mut stage.ousted_writes);
        let is_ended_well = stage.end().await;
        Ok(Outcome {
            is_quiet,
            states,
            log,
            crashes,
            refused_steps,
            guest_failures,
            partial_answers,
            unused_faults,
            settled_writes,
            incidents: stage_incidents,
            unused_incidents,
            ousted_writes,
            writes_since_restart,
            simulated,
            is_ended_well,
            panics: panics::count() - panics_before,
        })
    }
}
