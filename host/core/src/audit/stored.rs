//! A report as the API server has it: of this host, or of any other tool.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::counts::AuditCounts;
use super::finding::Finding;
use super::report_time::ReportTime;

/// What the host and its commands read of a Report or a `ClusterReport`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct StoredReport {
    /// Its metadata.
    pub metadata: StoredMetadata,
    /// The tool that made it.
    pub source: String,
    /// How many objects had which result.
    pub summary: AuditCounts,
    /// The results.
    pub results: Vec<StoredResult>,
}

/// What the host and its commands read of the metadata of a report.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct StoredMetadata {
    /// The name.
    pub name: String,
    /// The namespace; empty for a `ClusterReport`.
    pub namespace: String,
    /// The resource version.
    pub resource_version: String,
    /// The labels.
    pub labels: BTreeMap<String, String>,
}

/// One result.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct StoredResult {
    /// The policy.
    pub policy: String,
    /// pass, fail, warn, error or skip.
    pub result: String,
    /// The message for people.
    pub message: String,
    /// The objects.
    pub resources: Vec<Subject>,
    /// When the result was found first.
    pub timestamp: ReportTime,
    /// More about the result.
    pub properties: BTreeMap<String, String>,
}

/// A reference to an object.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Subject {
    /// Its API version.
    pub api_version: String,
    /// Its kind.
    pub kind: String,
    /// Its namespace; empty for a cluster-scoped object.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its uid.
    pub uid: String,
}

impl StoredResult {
    /// Whether this is the result of the same object with the same message as a finding of this
    /// module.
    pub(super) fn is_of(&self, module: &str, finding: &Finding) -> bool {
        self.policy == module
            && self.result == finding.result.as_str()
            && self.message == *finding.message
            && self.resources.first().is_some_and(|subject| {
                let of =
                    (&*subject.namespace, &*subject.api_version, &*subject.kind, &*subject.name);
                of == finding.identity() && subject.uid == *finding.uid
            })
    }
}
