//! One Report or `ClusterReport`.

use std::sync::LazyLock;

use innkeeper_contract::Kind;
use jiff::Timestamp;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::counts::AuditCounts;
use super::finding::Finding;
use super::report_time::ReportTime;
use super::stored::StoredResult;
use crate::well_known::POLICY_LABEL;

/// The group and version of reports.
const API_VERSION: &str = "openreports.io/v1alpha1";

/// The name of Innkeeper in reports, as the tool that made them.
pub const SOURCE: &str = "innkeeper";

/// The label that names the tool that manages an object: [`SOURCE`].
pub const MANAGED_BY_LABEL: &str = "app.kubernetes.io/managed-by";

/// The annotation with the digest of a report without its times. A host compares it before it
/// writes.
pub const DIGEST_ANNOTATION: &str = "innkeeper.dev/report-digest";

/// The most results in one report.
pub const RESULTS_MAX: usize = 200;

/// Reports about objects of a namespace.
pub static REPORT: LazyLock<Kind> =
    LazyLock::new(|| Kind::namespaced(API_VERSION, "Report", "reports"));

/// Reports about cluster-scoped objects.
pub static CLUSTER_REPORT: LazyLock<Kind> =
    LazyLock::new(|| Kind::cluster(API_VERSION, "ClusterReport", "clusterreports"));

/// The kind of a report in this namespace; an empty one is that of cluster-scoped objects.
pub fn kind_in(namespace: &str) -> &'static Kind {
    if namespace.is_empty() { &CLUSTER_REPORT } else { &REPORT }
}

/// The Module whose policy a report is about. It owns the report, so the garbage collector deletes
/// the report with the Module, also while no host runs.
#[derive(Clone, Copy, Debug)]
pub struct ReportOwner<'a> {
    /// The API version of Modules.
    pub api_version: &'a str,
    /// The name of the Module.
    pub module: &'a str,
    /// Its uid.
    pub uid: &'a str,
}

/// One Report or `ClusterReport`: some or all findings of a policy in a namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report<'a> {
    /// The name of the object.
    pub name: String,
    /// The namespace; empty for a `ClusterReport`.
    pub namespace: &'a str,
    /// The counts of this part. Those of all parts together are those of the namespace.
    pub counts: AuditCounts,
    /// The objects that do not pass, in order.
    pub findings: Vec<&'a Finding>,
}

impl Report<'_> {
    /// The kind of the object.
    pub fn kind(&self) -> &'static Kind {
        kind_in(self.namespace)
    }

    /// The object. Results that are in `stored` keep their time from there; the others get `now`.
    pub fn document(
        &self,
        owner: &ReportOwner<'_>,
        stored: &[StoredResult],
        now: Timestamp,
    ) -> Value {
        let time_of = |finding: &Finding| {
            let same = stored.iter().find(|one| one.is_of(owner.module, finding));
            same.map_or_else(|| ReportTime::from(now), |one| one.timestamp)
        };
        let results: Vec<Value> = self
            .findings
            .iter()
            .map(|finding| {
                let mut result = result(owner.module, finding);
                result["timestamp"] = json!(time_of(finding));
                result
            })
            .collect();
        let mut document = self.frame(owner);
        document["metadata"]["annotations"][DIGEST_ANNOTATION] = json!(self.digest(owner));
        document["results"] = Value::Array(results);
        document
    }

    /// The digest of the report without its times.
    pub fn digest(&self, owner: &ReportOwner<'_>) -> String {
        let mut hash = Sha256::new();
        hash.update(self.frame(owner).to_string());
        for finding in &self.findings {
            hash.update(result(owner.module, finding).to_string());
        }
        hex::encode(&hash.finalize()[..8])
    }

    /// The object without its results.
    fn frame(&self, owner: &ReportOwner<'_>) -> Value {
        let kind = self.kind();
        let mut document = json!({
            "apiVersion": kind.api_version,
            "kind": kind.kind,
            "metadata": {
                "name": self.name,
                "labels": {
                    POLICY_LABEL: owner.module,
                    MANAGED_BY_LABEL: SOURCE,
                },
                "annotations": {},
                "ownerReferences": [{
                    "apiVersion": owner.api_version,
                    "kind": "Module",
                    "name": owner.module,
                    "uid": owner.uid,
                }],
            },
            "source": SOURCE,
            "configuration": {"limits": {
                "maxResults": RESULTS_MAX,
                "statusFilter": ["fail", "error", "warn"],
            }},
            "summary": self.counts,
        });
        if !self.namespace.is_empty() {
            document["metadata"]["namespace"] = json!(self.namespace);
            document["scope"] =
                json!({"apiVersion": "v1", "kind": "Namespace", "name": self.namespace});
        }
        document
    }
}

/// A result without its time.
fn result(module: &str, finding: &Finding) -> Value {
    let mut subject = json!({
        "apiVersion": finding.kind.api_version,
        "kind": finding.kind.kind,
        "name": finding.key.name(),
    });
    if !finding.key.namespace().is_empty() {
        subject["namespace"] = json!(finding.key.namespace());
    }
    if !finding.uid.is_empty() {
        subject["uid"] = json!(finding.uid);
    }
    json!({
        "policy": module,
        "result": finding.result,
        "scored": true,
        "resources": [subject],
        "message": finding.message,
        "properties": {"reason": finding.reason},
    })
}
