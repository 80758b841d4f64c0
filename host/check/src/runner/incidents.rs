//! What happens to the host and to the cluster in addition to the faults of requests.

use serde_json::Value;

use super::defaulting;
use super::stage::{NAMESPACE, Stage};
use crate::incident::Incident;
use crate::play_error::PlayError;

/// The other process of the host.
const SECOND: &str = "host-b";

/// How long a host that has lost its Lease goes on, in seconds: longer than all its waits for the
/// Lease.
const OUSTED_SECONDS: u32 = 30;

impl Stage<'_> {
    /// Lets a second pass, and then the incidents happen that a write has reached.
    pub(super) async fn tick(&mut self) -> Result<(), PlayError> {
        self.second().await?;
        while let Some(incident) = self.progress.next(self.gate.reached()) {
            self.happen(incident).await?;
            let over = self.progress.end();
            self.gate.let_go(over);
        }
        Ok(())
    }

    /// Lets an incident happen, and waits until it is over.
    pub(super) async fn happen(&mut self, incident: Incident) -> Result<(), PlayError> {
        let before = self.gate.requests();
        // A write may come earlier than the backup that is to be restored after it.
        if matches!(incident, Incident::Restore { .. }) && self.backup.is_none() {
            return Ok(());
        }
        self.carry_out_incident(incident).await?;
        self.incidents.push((incident, self.gate.requests() - before));
        Ok(())
    }

    async fn carry_out_incident(&mut self, incident: Incident) -> Result<(), PlayError> {
        match incident {
            Incident::Pause { seconds } => {
                let env = self.process.env.clone();
                env.set_paused(true);
                self.seconds(seconds).await?;
                env.set_paused(false);
            }
            Incident::CutOff { seconds } => {
                let line = self.process.line.clone();
                line.set_cut(true);
                self.seconds(seconds).await?;
                line.set_cut(false);
            }
            Incident::TakeOver { seconds } => self.take_over(seconds).await?,
            Incident::SetClock { seconds } => {
                self.clock += seconds;
                self.process.env.set_clock_forward(seconds);
            }
            Incident::Swap {} => {
                let other = self.given.other_module().map_err(PlayError::Component)?;
                self.set_module(other)?;
            }
            Incident::SwapBack {} => self.set_module(self.given.subject.module.clone())?,
            Incident::Neighbor {} => {
                let primaries =
                    self.given.neighbor.as_ref().map(|neighbor| neighbor.primaries.clone());
                for primary in primaries.into_iter().flatten() {
                    self.api.apply(&primary, NAMESPACE).await?;
                }
            }
            Incident::Defaulting {} => {
                self.simulator.webhook(defaulting::URL, defaulting::answer);
                let kinds = self.given.subject.kinds();
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

    async fn seconds(&mut self, seconds: u32) -> Result<(), PlayError> {
        for _ in 0..seconds {
            self.second().await?;
        }
        Ok(())
    }

    /// Changes the Module of the running host, and of those that follow.
    fn set_module(&mut self, module: Value) -> Result<(), PlayError> {
        if let Some(lab) = &self.process.lab {
            lab.replace_module(0, &module).map_err(PlayError::Component)?;
        }
        self.module = module;
        Ok(())
    }

    /// Pauses the leader until another host leads, and lets it go on then. The other one stays.
    async fn take_over(&mut self, seconds: u32) -> Result<(), PlayError> {
        self.process.env.set_paused(true);
        let second = self.start_process(SECOND, Vec::new()).await?;
        self.count_calls();
        let mut ousted = std::mem::replace(&mut self.process, second);
        self.seconds(seconds).await?;
        ousted.line.record();
        ousted.env.set_paused(false);
        self.seconds(OUSTED_SECONDS).await?;
        self.ousted_writes.extend(ousted.line.recorded());
        ousted.kill();
        Ok(())
    }
}
