//! The documents of a step other than objects.

use std::time::Duration;

use innkeeper_simulator::{Controllers, PodRule, PodScript, Workload};
use jiff::SignedDuration;
use serde::Deserialize;
use serde_json::{Map, Value};

/// `kind: TestStep`. Refuses unknown members: a step must not ignore a part of its document.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub(super) struct TestStep {
    pub(super) apply: Vec<String>,
    pub(super) assert: Vec<String>,
    pub(super) error: Vec<String>,
    pub(super) delete: Vec<Reference>,
    /// Ours: KUTTL does not have it.
    pub(super) denied: Vec<DeniedEntry>,
    pub(super) commands: Vec<Value>,
    pub(super) kubeconfig: Option<String>,
}

/// `kind: TestAssert`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub(super) struct TestAssert {
    /// In seconds.
    pub(super) timeout: Option<u64>,
    pub(super) commands: Vec<Value>,
    pub(super) assert_any: Vec<Value>,
    pub(super) assert_all: Vec<Value>,
}

/// Requests that must be denied: of the objects of a file, or the deletion of an object.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct DeniedEntry {
    /// A file or a folder, relative to that of the case.
    #[serde(default)]
    pub(super) file: Option<String>,
    #[serde(default)]
    pub(super) delete: Option<Reference>,
    /// A part of the message of the refusal.
    pub(super) message: String,
    /// The HTTP status of the refusal; any if left out.
    #[serde(default)]
    pub(super) code: Option<u16>,
}

/// The objects to delete: one, or all of a kind that have certain labels.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Reference {
    pub(super) api_version: String,
    pub(super) kind: String,
    pub(super) name: String,
    pub(super) namespace: String,
    pub(super) labels: Map<String, Value>,
}

/// `kind: TestSuite`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct TestSuite {
    pub(super) crd_dir: Option<String>,
    pub(super) manifest_dirs: Vec<String>,
    pub(super) test_dirs: Vec<String>,
    /// In seconds.
    pub(super) timeout: Option<u64>,
    pub(super) namespace: Option<String>,
    pub(super) commands: Vec<Value>,
}

/// `kind: Simulation`: the behaviour of the simulated cluster from this step on. A real cluster
/// ignores it.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub(super) struct Simulation {
    /// The controllers that the cluster does not have, in all steps.
    pub(super) without: Vec<Part>,
    /// Seconds of virtual time before the asserts of this step.
    pub(super) pass: u64,
    /// The behaviour of Pods: the first entry that matches their image applies.
    pub(super) pods: Option<Vec<Pods>>,
}

/// A part of a simulated cluster that can be left out.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum Part {
    CronJobs,
    Jobs,
    Deployments,
    StatefulSets,
    ReplicaSets,
    Claims,
    Pods,
    Endpoints,
    Events,
    DaemonSets,
    ServiceAccounts,
    RootCertificates,
    HorizontalPodAutoscalers,
    GarbageCollector,
    Namespaces,
}

impl Part {
    pub(super) fn leave_out(self, controllers: &mut Controllers) {
        let workload = match self {
            Self::CronJobs => Workload::CronJobs,
            Self::Jobs => Workload::Jobs,
            Self::Deployments => Workload::Deployments,
            Self::StatefulSets => Workload::StatefulSets,
            Self::ReplicaSets => Workload::ReplicaSets,
            Self::Claims => Workload::Claims,
            Self::Pods => Workload::Pods,
            Self::Endpoints => Workload::Endpoints,
            Self::Events => Workload::Events,
            Self::DaemonSets => Workload::DaemonSets,
            Self::ServiceAccounts => Workload::ServiceAccounts,
            Self::RootCertificates => Workload::RootCertificates,
            Self::HorizontalPodAutoscalers => Workload::Autoscalers,
            Self::GarbageCollector => {
                controllers.garbage_collector = false;
                return;
            }
            Self::Namespaces => {
                controllers.namespaces = false;
                return;
            }
        };
        controllers.workloads = controllers.workloads.without(workload);
    }
}

/// The behaviour of Pods of an image. Times are seconds, or `never`.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Pods {
    image: String,
    #[serde(default)]
    pulls: Option<bool>,
    #[serde(default)]
    start_after: Option<Time>,
    #[serde(default)]
    ready_after: Option<Time>,
    #[serde(default)]
    ends_after: Option<Time>,
    #[serde(default)]
    exit_code: Option<i64>,
    /// In percent of what the Pods request.
    #[serde(default)]
    cpu_utilization: Option<i64>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(untagged)]
enum Time {
    Seconds(u32),
    Never(Never),
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Never {
    Never,
}

impl Simulation {
    /// The behaviour of Pods, if the document has one.
    pub(super) fn script(&self) -> Option<PodScript> {
        let rules = self.pods.as_ref()?.iter().map(Pods::rule).collect();
        Some(PodScript { rules, ..PodScript::default() })
    }

    pub(super) fn passing(&self) -> Duration {
        Duration::from_secs(self.pass)
    }
}

impl Pods {
    fn rule(&self) -> PodRule {
        let mut rule = PodRule::new(&self.image);
        let set = |time: Option<Time>, rule: &mut Option<SignedDuration>| match time {
            None => {}
            Some(Time::Seconds(seconds)) => {
                *rule = Some(SignedDuration::from_secs(i64::from(seconds)));
            }
            Some(Time::Never(Never::Never)) => *rule = None,
        };
        set(self.start_after, &mut rule.start_after);
        set(self.ready_after, &mut rule.ready_after);
        set(self.ends_after, &mut rule.ends_after);
        rule.ends_without_job = self.ends_after.is_some();
        rule.pulls = self.pulls.unwrap_or(rule.pulls);
        rule.exit_code = self.exit_code.unwrap_or(rule.exit_code);
        rule.cpu_utilization = self.cpu_utilization.or(rule.cpu_utilization);
        rule
    }
}
