//! Runs scenarios: the host with the guest on a simulated cluster, with faults in between.
//!
//! A [`scenario_run`](self::scenario_run) carries out the steps on a
//! [`scenario_cluster`](self::scenario_cluster), with the processes of the host
//! ([`host_process`](self::host_process)). Their requests take the
//! [`network_link`](self::network_link), then the faults, then the
//! [`write_barrier`](self::write_barrier) before the simulated API server.

mod defaulting;
mod host_process;
mod incident_schedule;
mod incidents;
mod network_link;
mod panics;
mod rebuilt;
mod scenario_cluster;
mod scenario_fixture;
mod scenario_run;
mod write_barrier;

use std::sync::Arc;

use innkeeper_lab::Guests;
use innkeeper_sandbox::Guest;

pub use self::scenario_fixture::HostileModule;
use self::scenario_fixture::ScenarioFixture;
use self::scenario_run::ScenarioRun;
use crate::outcome::Outcome;
use crate::run_error::RunError;
use crate::scenario::Scenario;
use crate::subject::Subject;

/// Runs scenarios with one guest.
pub struct ScenarioRunner {
    fixture: ScenarioFixture,
}

impl ScenarioRunner {
    /// A runner for a guest. `guests` compiles its component.
    pub fn new(guests: Guests, subject: Subject) -> Self {
        Self { fixture: ScenarioFixture::new(guests, subject) }
    }

    /// The same with another Module on the same host.
    #[must_use]
    pub fn with_hostile_module(mut self, module: HostileModule) -> Self {
        self.fixture.hostile_module = Some(module);
        self
    }

    /// The guest.
    pub fn subject(&self) -> &Subject {
        &self.fixture.subject
    }

    /// The other Module.
    pub fn hostile_module(&self) -> Option<&HostileModule> {
        self.fixture.hostile_module.as_ref()
    }

    /// The guest's component, loaded for calls without a host.
    ///
    /// # Errors
    /// If the component cannot be read, or is no guest.
    pub(crate) fn guest(&self) -> Result<Guest, RunError> {
        let subject = self.subject();
        let component = rebuilt::component_of(&subject.module).map_err(RunError::Component)?;
        let guest = self.fixture.guests.load(&component)?;
        Ok(guest.with_manifest(Arc::new(subject.manifest.clone())))
    }

    /// Runs a scenario on a new cluster.
    ///
    /// # Errors
    /// If the cluster or the host does not start, which is no fault of the scenario.
    pub fn run(&self, scenario: &Scenario) -> Result<Outcome, RunError> {
        innkeeper_lab::block_on(self.run_in_virtual_time(scenario, false))?
    }

    /// The same, and the log has also what the host reads.
    ///
    /// # Errors
    /// As [`ScenarioRunner::run`].
    pub(crate) fn run_with_reads(&self, scenario: &Scenario) -> Result<Outcome, RunError> {
        innkeeper_lab::block_on(self.run_in_virtual_time(scenario, true))?
    }

    async fn run_in_virtual_time(
        &self,
        scenario: &Scenario,
        records_reads: bool,
    ) -> Result<Outcome, RunError> {
        let mut run = ScenarioRun::start(&self.fixture, scenario, records_reads).await?;
        run.run_steps().await?;
        run.finish().await
    }
}
