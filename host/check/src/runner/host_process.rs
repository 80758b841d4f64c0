//! One process of the host.

use innkeeper_cluster::{Env, LeaseLost, Task};
use innkeeper_faults::Connection;
use innkeeper_lab::Lab;

use super::network_link::NetworkLink;
use super::write_barrier::WriteBarrier;

/// A process of the host: its clock and tasks, its requests, and its operator.
pub(super) struct HostProcess {
    pub(super) env: Env,
    pub(super) connection: Connection<WriteBarrier>,
    pub(super) link: NetworkLink,
    /// `None` after a crash, and before the process leads.
    pub(super) lab: Option<Lab>,
    /// The election, if hosts elect a leader; it ends when this process has lost its Lease.
    pub(super) election: Option<Task<LeaseLost>>,
}

impl HostProcess {
    /// Whether its operator has nothing to do.
    pub(super) fn is_quiet(&self) -> bool {
        self.lab.as_ref().is_some_and(|lab| lab.running().operator().is_quiet())
    }

    /// Whether its operator waits before it tries something again that failed.
    pub(super) fn waits_for_retry(&self) -> bool {
        self.lab.as_ref().is_some_and(|lab| lab.running().operator().waits_for_retry())
    }

    /// Whether it has lost its Lease.
    pub(super) fn has_lost_lease(&self) -> bool {
        self.election.as_ref().is_some_and(Task::is_finished)
    }

    /// Ends it as a signal does that a process cannot catch.
    pub(super) fn kill(&mut self) {
        self.connection.crash();
        // Its tasks end where they wait.
        self.lab = None;
        self.election = None;
    }

    /// The labels and the values of a counter of the host.
    pub(super) fn counts(&self, metric: &str) -> Vec<(String, u64)> {
        let Some(lab) = &self.lab else { return Vec::new() };
        let metrics = lab.running().operator().metrics();
        let values = metrics.lines().filter_map(|line| {
            let labels = line.strip_prefix(metric)?.strip_prefix('{')?;
            let (labels, value) = labels.split_once("} ")?;
            Some((labels.to_owned(), value.parse().ok()?))
        });
        values.collect()
    }
}
