//! One run of a scenario: carries out its steps, and collects the outcome.

use innkeeper_faults::{FaultPlan, LogEntry, RequestInfo};
use innkeeper_lab::{ApiFailure, Setup};

use super::incident_schedule::IncidentSchedule;
use super::panics;
use super::scenario_cluster::ScenarioCluster;
use super::scenario_fixture::ScenarioFixture;
use crate::cluster_state::ClusterState;
use crate::outcome::Outcome;
use crate::run_error::RunError;
use crate::scenario::{Scenario, Step};

/// A scenario on a cluster of its own, and what has happened so far.
pub(super) struct ScenarioRun<'a> {
    scenario: &'a Scenario,
    cluster: ScenarioCluster<'a>,
    states: Vec<ClusterState>,
    /// How many writes there were before each of the states.
    settled_writes: Vec<u32>,
    refused_steps: Vec<String>,
    log: Vec<LogEntry>,
    /// The length of the log at the last orderly restart of the host.
    restarted_at: Option<usize>,
    /// Whether the writes ended at each [`Step::Settle`] so far.
    is_quiet: bool,
    /// The panics of this thread before the run.
    panics_before: u64,
}

impl<'a> ScenarioRun<'a> {
    /// Starts the cluster and the host, and plans the faults and incidents of the scenario.
    ///
    /// # Errors
    /// If the cluster or the host does not start.
    pub(super) async fn start(
        fixture: &'a ScenarioFixture,
        scenario: &'a Scenario,
        records_reads: bool,
    ) -> Result<Self, RunError> {
        let panics_before = panics::count();
        let subject = &fixture.subject;
        let earlier = subject.earlier_module.as_ref();
        let earlier = earlier.filter(|_| scenario.steps.contains(&Step::Upgrade));
        let module = earlier.unwrap_or(&subject.module);
        let mut cluster = ScenarioCluster::start(fixture, scenario, module).await?;
        cluster.injector.take_log();
        if records_reads {
            cluster.injector.record_reads();
        }
        cluster.injector.set_plan(scenario.faults.clone());
        let (schedule, writes) = IncidentSchedule::of(&scenario.incidents);
        cluster.schedule = schedule;
        cluster.barrier.plan(writes);
        Ok(Self {
            scenario,
            cluster,
            states: Vec::new(),
            settled_writes: Vec::new(),
            refused_steps: Vec::new(),
            log: Vec::new(),
            restarted_at: None,
            is_quiet: true,
            panics_before,
        })
    }

    /// Carries out the steps, until one after which the writes do not end.
    ///
    /// # Errors
    /// If the host does not start again, or the cluster cannot be read.
    pub(super) async fn run_steps(&mut self) -> Result<(), RunError> {
        for step in &self.scenario.steps {
            self.run_step(step).await?;
            if !self.is_quiet {
                break;
            }
        }
        Ok(())
    }

    async fn run_step(&mut self, step: &Step) -> Result<(), RunError> {
        match step {
            Step::Settle => self.settle().await?,
            Step::Wait(seconds) => {
                for _ in 0..*seconds {
                    self.cluster.tick().await?;
                }
            }
            Step::Restart => {
                self.cluster.stop_host().await;
                self.log.extend(self.cluster.injector.take_log());
                self.restarted_at = Some(self.log.len());
                self.cluster.start_host().await?;
            }
            Step::Upgrade => {
                self.cluster.stop_host().await;
                self.cluster.module = self.cluster.fixture.subject.module.clone();
                self.cluster.start_host().await?;
            }
            Step::Incident(incident) => self.cluster.inject_incident(*incident).await?,
            Step::Recreate(object) => {
                let result = self.cluster.recreate(object).await?;
                self.record_refusal(step, result);
            }
            Step::Apply(_) | Step::Replace(_) | Step::Delete(_) | Step::MergePatch(_) => {
                let result = self.cluster.send_step(step).await;
                self.record_refusal(step, result);
            }
        }
        Ok(())
    }

    async fn settle(&mut self) -> Result<(), RunError> {
        let is_settled = self.cluster.settle().await?;
        self.record_state().await?;
        // Under faults it takes longer to be quiet than a CronJob waits.
        self.is_quiet = is_settled || self.scenario.needs_long_quiet;
        Ok(())
    }

    async fn record_state(&mut self) -> Result<(), RunError> {
        let subject = &self.cluster.fixture.subject;
        self.states.push(ClusterState::read(&self.cluster.api, subject).await?);
        self.settled_writes.push(self.cluster.injector.writes());
        Ok(())
    }

    fn record_refusal(&mut self, step: &Step, result: Result<(), ApiFailure>) {
        if let Err(error) = result {
            self.refused_steps.push(format!("{step}: {error}"));
        }
    }

    /// Waits until the writes end, stops the host, and returns what has happened.
    ///
    /// # Errors
    /// If the cluster cannot be read.
    pub(super) async fn finish(mut self) -> Result<Outcome, RunError> {
        self.is_quiet = self.is_quiet && self.cluster.settle().await?;
        self.record_state().await?;
        let cluster = &mut self.cluster;
        let unused_faults = cluster.injector.unused();
        let unused_incidents = cluster.schedule.remaining();
        cluster.injector.set_plan(FaultPlan::default());
        cluster.barrier.plan([]);
        cluster.count_calls();
        self.log.extend(cluster.injector.take_log());
        let start = Setup::new(self.scenario.seed).start;
        let outcome = Outcome {
            is_quiet: self.is_quiet,
            crashes: cluster.crashes,
            guest_failures: std::mem::take(&mut cluster.guest_failures).into_iter().collect(),
            partial_answers: cluster.partial_answers,
            incidents: std::mem::take(&mut cluster.incidents),
            writes_after_lease_loss: std::mem::take(&mut cluster.writes_after_lease_loss),
            simulated: cluster.simulator.now().duration_since(start).unsigned_abs(),
            writes_since_restart: writes_since(&self.log, self.restarted_at),
            states: self.states,
            settled_writes: self.settled_writes,
            refused_steps: self.refused_steps,
            log: self.log,
            unused_faults,
            unused_incidents,
            ..Outcome::default()
        };
        let is_ended_well = self.cluster.end().await;
        let panics = panics::count() - self.panics_before;
        Ok(Outcome { is_ended_well, panics, ..outcome })
    }
}

/// The writes in the log from this entry on, with their bodies; none without an entry.
fn writes_since(log: &[LogEntry], start: Option<usize>) -> Vec<(RequestInfo, String)> {
    let since = start.map_or(&[][..], |start| &log[start..]);
    let writes = since.iter().filter_map(LogEntry::request).filter(|one| one.write.is_some());
    let text = |body: &[u8]| String::from_utf8_lossy(body).into_owned();
    writes.map(|one| (one.info.clone(), text(&one.body))).collect()
}
