//! Injects incidents, which happen to the host and to the cluster in addition to the faults of
//! requests.

use serde_json::Value;

use super::defaulting;
use super::scenario_cluster::{NAMESPACE, ScenarioCluster};
use crate::incident::Incident;
use crate::run_error::RunError;

/// The other process of the host.
const SECOND_HOST: &str = "host-b";

/// How long a host that has lost its Lease goes on, in seconds: longer than all its waits for the
/// Lease.
const FORMER_LEADER_SECONDS: u32 = 30;

impl ScenarioCluster<'_> {
    /// Lets a second pass, and injects the incidents that a write has reached.
    pub(super) async fn tick(&mut self) -> Result<(), RunError> {
        self.second().await?;
        while let Some(incident) = self.schedule.next_due(self.barrier.reached()) {
            self.inject_incident(incident).await?;
            let completed = self.schedule.complete_next();
            self.barrier.release(completed);
        }
        Ok(())
    }

    /// Injects an incident, and waits until it is over.
    pub(super) async fn inject_incident(&mut self, incident: Incident) -> Result<(), RunError> {
        let before = self.barrier.requests();
        // A write may come earlier than the backup that is to be restored after it.
        if matches!(incident, Incident::Restore { .. }) && self.backup.is_none() {
            return Ok(());
        }
        self.execute_incident(incident).await?;
        self.incidents.push((incident, self.barrier.requests() - before));
        Ok(())
    }

    async fn execute_incident(&mut self, incident: Incident) -> Result<(), RunError> {
        match incident {
            Incident::Pause { seconds } => {
                let env = self.process.env.clone();
                env.set_paused(true);
                self.seconds(seconds).await?;
                env.set_paused(false);
            }
            Incident::CutOff { seconds } => {
                let link = self.process.link.clone();
                link.set_partitioned(true);
                self.seconds(seconds).await?;
                link.set_partitioned(false);
            }
            Incident::TakeOver { seconds } => self.take_over(seconds).await?,
            Incident::SetClock { seconds } => {
                self.clock_offset += seconds;
                self.process.env.set_clock_forward(seconds);
            }
            Incident::Swap {} => {
                let other = self.fixture.other_module().map_err(RunError::Component)?;
                self.set_module(other)?;
            }
            Incident::SwapBack {} => self.set_module(self.fixture.subject.module.clone())?,
            Incident::Neighbor {} => {
                let primaries =
                    self.fixture.hostile_module.as_ref().map(|module| module.primaries.clone());
                for primary in primaries.into_iter().flatten() {
                    self.api.apply(&primary, NAMESPACE).await?;
                }
            }
            Incident::Defaulting {} => {
                self.simulator.webhook(defaulting::URL, defaulting::answer);
                let kinds = self.fixture.subject.kinds();
                self.api.apply(&defaulting::configuration(&kinds), NAMESPACE).await?;
            }
            Incident::Backup {} => self.backup = Some(self.simulator.backup()),
            Incident::Restore { bump } => {
                if let Some(backup) = &self.backup {
                    self.simulator.restore(backup, bump);
                }
            }
        }
        Ok(())
    }

    async fn seconds(&mut self, seconds: u32) -> Result<(), RunError> {
        for _ in 0..seconds {
            self.second().await?;
        }
        Ok(())
    }

    /// Changes the Module of the running host, and of those that follow.
    fn set_module(&mut self, module: Value) -> Result<(), RunError> {
        if let Some(lab) = &self.process.lab {
            lab.replace_module(0, &module).map_err(RunError::Component)?;
        }
        self.module = module;
        Ok(())
    }

    /// Pauses the leader until another host leads, and lets it go on then. The other one stays.
    async fn take_over(&mut self, seconds: u32) -> Result<(), RunError> {
        self.process.env.set_paused(true);
        let second = self.start_process(SECOND_HOST, Vec::new()).await?;
        self.count_calls();
        let mut former = std::mem::replace(&mut self.process, second);
        self.seconds(seconds).await?;
        former.link.record_writes();
        former.env.set_paused(false);
        self.seconds(FORMER_LEADER_SECONDS).await?;
        self.writes_after_lease_loss.extend(former.link.take_recorded_writes());
        former.kill();
        Ok(())
    }
}
