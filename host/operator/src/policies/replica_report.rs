//! The report of a replica: which policies it reviews with, in a Lease of its own.
//!
//! The leader reads the reports of all replicas: it sets `failurePolicy: Fail` for a policy only
//! once every replica answers for it. A report is foreign input: one that cannot be read concerns
//! its replica only.

use std::collections::BTreeMap;
use std::sync::LazyLock;
use std::time::Duration;

use innkeeper_contract::Kind;
use innkeeper_core::names::is_subdomain;
use innkeeper_core::{Object, foreign};
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::active_policy::ActivePolicy;
use super::replica_name::ReplicaName;

/// The label of the Leases of replicas. Its value is `true`.
pub const REPLICA_LABEL: &str = "innkeeper.dev/replica";

/// The annotation that holds the report.
pub const REPORT_ANNOTATION: &str = "innkeeper.dev/replica";

/// The beginning of the name of each of these Leases. The name of the replica follows.
pub const LEASE_PREFIX: &str = "innkeeper-replica-";

/// How often a replica renews its report when nothing changes.
pub const RENEWAL_PERIOD: Duration = Duration::from_secs(10);

/// How old a report of a live replica may be. The clocks of the hosts may differ by as much, less
/// [`RENEWAL_PERIOD`].
pub const EXPIRY: Duration = Duration::from_secs(40);

/// The largest report, in bytes. All annotations of an object have twice as many.
pub const REPORT_BYTES_MAX: usize = 128 << 10;

/// The longest text in a report, in bytes.
const TEXT_BYTES_MAX: usize = 512;

/// The kind of Leases.
pub static LEASE: LazyLock<Kind> =
    LazyLock::new(|| Kind::namespaced("coordination.k8s.io/v1", "Lease", "leases"));

/// The policies of a replica. Readers ignore members that they do not know, so that replicas of two
/// versions read each other's reports.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReplicaReport {
    /// Which certificate the replica shows to the API server; `None` if it has none yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub certificate: Option<String>,
    /// By the name of the Module.
    #[serde(default)]
    pub policies: BTreeMap<String, PolicyReport>,
}

/// One policy of a replica.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PolicyReport {
    /// The id of the record with which the replica reviews; `None` if it cannot review.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The reviews with this record that ended.
    #[serde(default)]
    pub reviewed: u64,
    /// Those of them that failed.
    #[serde(default)]
    pub failed: u64,
    /// Why one of these failed.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub example: String,
    /// Why the replica does not review with the newest record; empty if it does, or soon will.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub problem: String,
}

/// A replica that is alive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replica {
    /// Its name.
    pub name: String,
    /// Its report, or why that cannot be read: the replica may review with anything then.
    pub report: Result<ReplicaReport, ReportError>,
}

/// Why a report cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReportError {
    /// It is larger than [`REPORT_BYTES_MAX`].
    #[error(
        "its report has {bytes} bytes, and a host reads {REPORT_BYTES_MAX}; run the same version of the host in all replicas"
    )]
    TooLarge {
        /// Its size.
        bytes: usize,
    },
    /// The Lease has none.
    #[error(
        "its Lease has no annotation {REPORT_ANNOTATION}; delete the Lease, and the replica writes it again"
    )]
    Missing,
    /// It is no report.
    #[error("its report cannot be read: {0}; delete the Lease, and the replica writes it again")]
    Invalid(String),
}

impl ReplicaReport {
    /// The report of a replica with these policies, and with these problems, by Module.
    pub fn new<'a>(
        certificate: Option<String>,
        active: impl IntoIterator<Item = &'a ActivePolicy>,
        problems: &BTreeMap<String, String>,
    ) -> Self {
        let mut policies: BTreeMap<String, PolicyReport> = BTreeMap::new();
        for policy in active {
            let report = PolicyReport {
                id: Some(policy.id.clone()),
                reviewed: policy.counts.reviewed(),
                failed: policy.counts.failed(),
                example: line(&policy.counts.example().unwrap_or_default()),
                problem: String::new(),
            };
            policies.insert(policy.module.to_string(), report);
        }
        for (module, problem) in problems {
            policies.entry(module.clone()).or_default().problem = line(problem);
        }
        Self { certificate, policies }
    }

    /// The report as JSON of at most [`REPORT_BYTES_MAX`] bytes. One that is larger loses its texts
    /// first, then policies that cannot review, then the last policies: the leader takes one that
    /// is not named for one that the replica lacks.
    pub fn text(&self) -> String {
        // Texts, numbers and maps by text are always JSON.
        let text = serde_json::to_string(self).unwrap_or_default();
        if text.len() <= REPORT_BYTES_MAX {
            return text;
        }
        let mut short = self.clone();
        short.policies.retain(|_, policy| policy.id.is_some());
        for policy in short.policies.values_mut() {
            policy.example.clear();
            policy.problem.clear();
        }
        let bytes = |value: Value| value.to_string().len();
        let mut left = REPORT_BYTES_MAX.saturating_sub(bytes(json!({
            "certificate": self.certificate, "policies": {},
        })));
        short.policies.retain(|module, policy| {
            // With two braces instead of one comma.
            let taken = bytes(json!({ module: policy })).saturating_sub(1);
            let fits = taken <= left;
            left = if fits { left - taken } else { 0 };
            fits
        });
        serde_json::to_string(&short).unwrap_or_default()
    }

    /// Reads a report. Its texts become visible lines; names that no Module has are left out.
    ///
    /// # Errors
    /// If it is too large or no report.
    pub fn read(text: &str) -> Result<Self, ReportError> {
        if text.len() > REPORT_BYTES_MAX {
            return Err(ReportError::TooLarge { bytes: text.len() });
        }
        let mut report: Self = serde_json::from_str(text)
            .map_err(|error| ReportError::Invalid(foreign::one_line(error, TEXT_BYTES_MAX)))?;
        report.certificate = report.certificate.map(|id| line(&id));
        report.policies.retain(|module, _| is_subdomain(module));
        for policy in report.policies.values_mut() {
            policy.example = line(&policy.example);
            policy.problem = line(&policy.problem);
        }
        Ok(report)
    }

    /// The Lease of a replica that reports this now.
    pub fn lease(&self, namespace: &str, replica: &ReplicaName, now: Timestamp) -> Value {
        json!({
            "apiVersion": LEASE.api_version,
            "kind": LEASE.kind,
            "metadata": {
                "name": lease_name(replica),
                "namespace": namespace,
                "labels": { REPLICA_LABEL: "true" },
                "annotations": { REPORT_ANNOTATION: self.text() },
            },
            "spec": {
                "holderIdentity": replica.as_str(),
                "leaseDurationSeconds": EXPIRY.as_secs(),
                "renewTime": format!("{now:.6}"),
            },
        })
    }
}

impl Replica {
    /// Whether the replica says that it reviews with this record of a Module.
    pub fn reviews_with(&self, module: &str, id: &str) -> bool {
        let policy = self.report.as_ref().ok().and_then(|report| report.policies.get(module));
        policy.is_some_and(|policy| policy.id.as_deref() == Some(id))
    }
}

/// A text of a report: one visible line.
fn line(text: &str) -> String {
    foreign::one_line(text, TEXT_BYTES_MAX)
}

/// The name of the Lease of a replica.
pub fn lease_name(replica: &ReplicaName) -> String {
    format!("{LEASE_PREFIX}{replica}")
}

/// The replica whose report a Lease holds; `None` for other Leases.
pub fn replica_of(lease: &Object) -> Option<&str> {
    let name = lease.key.name().strip_prefix(LEASE_PREFIX).filter(|name| !name.is_empty());
    name.filter(|_| lease.labels.get(REPLICA_LABEL) == Some("true"))
}

/// The replicas that are alive at `now`, by name: those whose report is less than [`EXPIRY`] old.
/// Other Leases may be among `leases`. A Lease from the future counts as expired too, so that no
/// replica counts forever.
pub fn live_replicas<'a>(
    leases: impl IntoIterator<Item = &'a Object>,
    now: Timestamp,
) -> Vec<Replica> {
    let is_live = |lease: &Object| {
        let age = renewed_at(lease).map(|at| now.duration_since(at).abs());
        age.is_some_and(|age| age < SignedDuration::try_from(EXPIRY).unwrap_or_default())
    };
    let live = leases.into_iter().filter_map(|lease| {
        let name = replica_of(lease).filter(|_| is_live(lease))?;
        let report = match lease.annotation(REPORT_ANNOTATION) {
            Some(text) => ReplicaReport::read(&text),
            None => Err(ReportError::Missing),
        };
        Some((name, report))
    });
    // A Lease has its name alone.
    let live: BTreeMap<&str, Result<ReplicaReport, ReportError>> = live.collect();
    live.into_iter().map(|(name, report)| Replica { name: name.to_owned(), report }).collect()
}

/// When the holder of a Lease renewed it; `None` if that cannot be read.
fn renewed_at(lease: &Object) -> Option<Timestamp> {
    #[derive(Deserialize)]
    struct Lease {
        spec: Spec,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Spec {
        renew_time: Timestamp,
    }
    let lease = serde_json::from_str::<Lease>(&lease.text.read()).ok();
    lease.map(|lease| lease.spec.renew_time)
}

#[cfg(test)]
mod tests;
