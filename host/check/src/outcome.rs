//! What happened in a scenario.

use std::time::Duration;

use innkeeper_faults::{LogEntry, RequestInfo, RequestRecord};

use crate::cluster_state::ClusterState;
use crate::incident::Incident;

/// What happened in a scenario.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// Whether nobody wrote any more at the end.
    pub is_quiet: bool,
    /// The objects at each [`Step::Settle`](crate::Step::Settle), and at the end.
    pub states: Vec<ClusterState>,
    /// What the host sent and read from the first step on.
    pub log: Vec<LogEntry>,
    /// How often the host crashed.
    pub crashes: u32,
    /// The requests that the API server refused to the user of a step, with the reasons.
    pub refused_steps: Vec<String>,
    /// How many calls of the guest failed, by reason.
    pub guest_failures: Vec<(String, u64)>,
    /// How many calls of the guest had a partial answer.
    pub partial_answers: u64,
    /// The places in the plan of the faults that affected no request.
    pub unused_faults: Vec<usize>,
    /// How many writes there were before each of these states.
    pub settled_writes: Vec<u32>,
    /// The incidents, and how many requests of the host arrived during each.
    pub incidents: Vec<(Incident, u64)>,
    /// How many of the planned incidents no write has reached.
    pub unused_incidents: usize,
    /// The writes of a host that it sent after it had lost its Lease.
    pub writes_after_lease_loss: Vec<String>,
    /// The writes of the host since its last orderly restart, with the bodies.
    pub writes_since_restart: Vec<(RequestInfo, String)>,
    /// The virtual time from the start of the cluster to the end.
    pub simulated: Duration,
    /// Whether the host stopped in time and without a panic at the end.
    pub is_ended_well: bool,
    /// How many panics of the host, or of the simulated cluster, there were.
    pub panics: u64,
}

impl Outcome {
    /// The objects at the end.
    pub fn end(&self) -> &ClusterState {
        // There is one for the end.
        &self.states[self.states.len() - 1]
    }

    /// The number of writes of the host.
    pub fn write_count(&self) -> u32 {
        u32::try_from(self.writes().count()).unwrap_or(u32::MAX)
    }

    /// The requests of the host, in order.
    pub fn requests(&self) -> impl Iterator<Item = &RequestRecord> {
        self.log.iter().filter_map(LogEntry::request)
    }

    /// The writes of the host, in order.
    pub fn writes(&self) -> impl Iterator<Item = &RequestRecord> {
        self.requests().filter(|request| request.write.is_some())
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use bytes::Bytes;
    use innkeeper_faults::{LogEntry, RequestInfo, RequestRecord, Verb};

    use super::Outcome;

    /// A write of an object in the namespace `default`, and the code of its answer.
    pub(crate) fn answered_write(
        verb: Verb,
        resource: &str,
        name: &str,
        code: u16,
    ) -> RequestRecord {
        let info = RequestInfo {
            verb,
            group: String::new(),
            resource: resource.to_owned(),
            subresource: String::new(),
            namespace: "default".to_owned(),
            name: name.to_owned(),
            user: String::new(),
            is_dry_run: false,
        };
        RequestRecord { info, body: Bytes::new(), write: Some(1), fault: None, code: Some(code) }
    }

    /// An outcome with these requests.
    pub(crate) fn outcome(requests: Vec<RequestRecord>) -> Outcome {
        let log = requests.into_iter().map(LogEntry::Request).collect();
        Outcome { log, ..Outcome::default() }
    }
}
