//! Health and metrics of the reviews of one replica.

use std::fmt::Write as _;
use std::time::Duration;

use innkeeper_admission::ServerStatistics;
use innkeeper_operator::ReplicaPolicies;
use tokio::sync::watch;

/// How long after its first report a replica becomes ready: the leader reads the report within this
/// time, and takes back the failure policy `Fail` of a policy that this replica does not have.
const LEADER_READS: Duration = Duration::from_secs(5);

/// What a replica reviews with, for its health and its metrics.
pub(crate) struct Reviewing {
    /// The policies.
    pub(super) policies: ReplicaPolicies,
    /// The statistics of the server, once it has a certificate.
    pub(super) statistics: watch::Receiver<Option<watch::Receiver<ServerStatistics>>>,
}

impl Reviewing {
    /// Why no requests are to be sent to this replica; `None` if it reviews as it reports.
    pub(super) fn unready(&self) -> Option<String> {
        if !self.policies.active().is_complete() {
            return Some("the host has not loaded all policies".to_owned());
        }
        if self.policies.certificate().borrow().is_none() {
            return Some(
                "no certificate: the leader makes it (Secret innkeeper-admission); see its log"
                    .to_owned(),
            );
        }
        let now = self.policies.env().instant();
        match self.policies.reported_since() {
            None => Some("the host could not report its policies (Lease); see the log".to_owned()),
            Some(since) if now.duration_since(since) < LEADER_READS => {
                Some("the leader has not yet read which policies this host has".to_owned())
            }
            Some(_) => None,
        }
    }

    /// Metrics in Prometheus' text format. The operator of a leader has those of the policies.
    pub(super) fn metrics(&self, is_leading: bool) -> String {
        let mut text = if is_leading { String::new() } else { self.policies.metrics() };
        let statistics = self.statistics.borrow().as_ref().map(|one| one.borrow().clone());
        write_statistics(&mut text, &statistics.unwrap_or_default());
        text
    }
}

/// Writes what the server does in Prometheus' text format.
fn write_statistics(text: &mut String, statistics: &ServerStatistics) {
    let (connections, requests) = (statistics.connections, statistics.requests);
    for (name, help, value) in [
        (
            "innkeeper_admission_connections",
            "Open connections of the admission server.",
            connections,
        ),
        ("innkeeper_admission_running_requests", "Admission requests without an answer.", requests),
    ] {
        let _ = write!(text, "# HELP {name} {help}\n# TYPE {name} gauge\n{name} {value}\n");
    }
    let name = "innkeeper_admission_refused_total";
    let help = "Connections and requests that the admission server has refused, by reason.";
    let _ = write!(text, "# HELP {name} {help}\n# TYPE {name} counter\n");
    for (reason, count) in &statistics.refused {
        let _ = writeln!(text, "{name}{{reason=\"{reason}\"}} {count}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statistics_of_the_server_are_written_as_metrics() {
        let refused = [("too_large", 2), ("unknown_policy", 1)].into();
        let mut text = String::new();
        write_statistics(&mut text, &ServerStatistics { connections: 3, requests: 1, refused });
        assert!(text.contains("\ninnkeeper_admission_connections 3\n"), "{text}");
        assert!(text.contains("\ninnkeeper_admission_running_requests 1\n"), "{text}");
        let line = "\ninnkeeper_admission_refused_total{reason=\"too_large\"} 2\n";
        assert!(text.contains(line), "{text}");
    }
}
