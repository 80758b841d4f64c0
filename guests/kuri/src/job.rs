use innkeeper_sdk::kinds::{Container, Job, JobSpec, PodTemplate, RestartPolicy};
use innkeeper_sdk::serde_json::Value;
use innkeeper_sdk::{Apply as _, Labels, kind};
use serde::Deserialize;

use crate::{KuriResult, KuriRun, KuriSpec};

/// A Job from the cluster, as JSON: types for the few fields that the guest reads would add a tenth
/// to the size of the component.
#[derive(Clone, Debug, Deserialize)]
#[serde(transparent)]
pub(crate) struct ObservedJob(Value);

kind!(Resource for ObservedJob = Job::KIND, Job::API_VERSION, Job::PLURAL);

impl ObservedJob {
    /// Returns the time at which the Job was created.
    pub(crate) fn created(&self) -> Option<&str> {
        self.0["metadata"]["creationTimestamp"].as_str()
    }

    /// Returns whether the Job is being deleted.
    pub(crate) fn is_terminating(&self) -> bool {
        self.0["metadata"]["deletionTimestamp"].is_string()
    }

    /// Returns whether the host has applied the Job. It deletes no Job that it has never applied,
    /// such as one of the original operator.
    pub(crate) fn is_applied(&self) -> bool {
        self.0["metadata"]["annotations"][APPLIED_ANNOTATION].is_string()
    }

    /// Returns whether the Job is one that this guest has applied for a periodic Kuri.
    pub(crate) fn is_periodic(&self) -> bool {
        self.0["metadata"]["labels"][PERIODIC_LABEL].is_string()
    }

    /// Returns whether the Job has succeeded. (By the rules of kstatus a Job is ready when it
    /// starts.)
    pub(crate) fn is_complete(&self) -> bool {
        self.condition("Complete").is_some()
    }

    /// Returns why the Job has failed; `None` if it has not.
    pub(crate) fn failure(&self) -> Option<&str> {
        let failed = self.condition("Failed")?;
        Some(match text(&failed["message"]) {
            "" => text(&failed["reason"]),
            message => message,
        })
    }

    /// Returns the run that the Job stands for, if it has ended.
    pub(crate) fn run(&self) -> Option<KuriRun> {
        let start = self.created()?;
        let (result, end) = if let Some(failed) = self.condition("Failed") {
            (KuriResult::Failed, failed["lastTransitionTime"].as_str())
        } else {
            let complete = self.condition("Complete")?;
            let completed = self.0["status"]["completionTime"].as_str();
            (KuriResult::Succeeded, completed.or(complete["lastTransitionTime"].as_str()))
        };
        let end = end.unwrap_or(start).to_owned();
        Some(KuriRun { start: start.to_owned(), end, result })
    }

    /// Returns this Job as the desired one of a periodic Kuri: with its own template, which is
    /// immutable, and with this deadline.
    pub(crate) fn desired(&self, deadline_seconds: Option<i64>) -> Job {
        let found = &self.0["spec"]["template"];
        let has_label = found["metadata"]["labels"][LABEL.0] == LABEL.1;
        let labels = if has_label { innkeeper_sdk::labels([LABEL]) } else { Labels::new() };
        let mut template = PodTemplate::new(&labels);
        for one in items(&found["spec"]["containers"]) {
            let command = items(&one["command"]).filter_map(Value::as_str);
            let container = Container::new(text(&one["name"]), text(&one["image"]));
            template = template.container(container.command(command));
        }
        let policy = match text(&found["spec"]["restartPolicy"]) {
            "OnFailure" => RestartPolicy::OnFailure,
            _ => RestartPolicy::Never,
        };
        let (name, template) = (text(&self.0["metadata"]["name"]), template.restart_policy(policy));
        periodic(with_deadline(name, template, deadline_seconds))
    }

    fn condition(&self, type_: &str) -> Option<&Value> {
        items(&self.0["status"]["conditions"])
            .find(|one| one["type"] == type_ && one["status"] == "True")
    }
}

fn items(list: &Value) -> impl Iterator<Item = &Value> {
    list.as_array().into_iter().flatten()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// The label of the Job's pods.
const LABEL: (&str, &str) = ("app", "kuri");

/// The annotation that the host puts on each object that it applies.
const APPLIED_ANNOTATION: &str = "innkeeper.dev/applied";

/// The label of the Jobs of periodic Kuris.
const PERIODIC_LABEL: &str = "kuri.example.com/periodic";

/// Returns the Job with the label of a periodic Kuri's Job.
pub(crate) fn periodic(job: Job) -> Job {
    job.label(PERIODIC_LABEL, "true")
}

/// Returns the Job of a Kuri.
pub(crate) fn job(name: &str, spec: &KuriSpec, deadline_seconds: Option<i64>) -> Job {
    let container = Container::new("kuri", &spec.image).command(&spec.command);
    let template = PodTemplate::new(&innkeeper_sdk::labels([LABEL]))
        .container(container)
        .restart_policy(RestartPolicy::Never);
    with_deadline(name, template, deadline_seconds)
}

fn with_deadline(name: &str, template: PodTemplate, deadline_seconds: Option<i64>) -> Job {
    let mut spec = JobSpec::new(template);
    spec.active_deadline_seconds = deadline_seconds;
    Job::new(name, spec)
}
