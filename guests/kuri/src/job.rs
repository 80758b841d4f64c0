use innkeeper_sdk::kinds::{Container, Job, JobSpec, PodTemplate, RestartPolicy};
use innkeeper_sdk::{Apply as _, Labels, Metadata, Resource};
use serde::Deserialize;

use crate::{KuriResult, KuriRun, KuriSpec};

/// A Job from the cluster.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct ObservedJob {
    metadata: Metadata,
    spec: ObservedSpec,
    status: Status,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct ObservedSpec {
    template: Template,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Template {
    metadata: Metadata,
    spec: PodSpec,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct PodSpec {
    containers: Vec<ObservedContainer>,
    restart_policy: String,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct ObservedContainer {
    name: String,
    image: String,
    command: Vec<String>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Status {
    completion_time: Option<String>,
    conditions: Vec<StatusCondition>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct StatusCondition {
    #[serde(rename = "type")]
    type_: String,
    status: String,
    last_transition_time: Option<String>,
}

impl Resource for ObservedJob {
    const API_VERSION: &'static str = Job::API_VERSION;
    const KIND: &'static str = Job::KIND;
    const PLURAL: &'static str = Job::PLURAL;
}

impl ObservedJob {
    /// Returns the time at which the Job was created.
    pub(crate) fn created(&self) -> Option<&str> {
        self.metadata.creation_timestamp.as_deref()
    }

    /// Returns whether the Job is being deleted.
    pub(crate) fn is_terminating(&self) -> bool {
        self.metadata.deletion_timestamp.is_some()
    }

    /// Returns whether the Job is one that this guest has applied for a periodic Kuri. The host
    /// deletes no Job that it has never applied, such as one of the original operator.
    pub(crate) fn is_periodic(&self) -> bool {
        self.metadata.labels.contains_key(PERIODIC_LABEL)
    }

    /// Returns the run that the Job stands for, if it has ended.
    pub(crate) fn run(&self) -> Option<KuriRun> {
        let start = self.created()?;
        let (result, end) = if let Some(failed) = self.condition("Failed") {
            (KuriResult::Failed, failed.last_transition_time.as_ref())
        } else {
            let complete = self.condition("Complete")?;
            let completed = self.status.completion_time.as_ref();
            (KuriResult::Succeeded, completed.or(complete.last_transition_time.as_ref()))
        };
        let end = end.map_or(start, String::as_str).to_owned();
        Some(KuriRun { start: start.to_owned(), end, result })
    }

    /// Returns this Job as the desired one of a periodic Kuri: with its own template, which is
    /// immutable, and with this deadline.
    pub(crate) fn desired(&self, deadline_seconds: Option<i64>) -> Job {
        let found = &self.spec.template;
        let label = found.metadata.labels.get_key_value(LABEL.0).filter(|(_, app)| *app == LABEL.1);
        let label = label.map(|(key, value)| (key.clone(), value.clone()));
        let mut template = PodTemplate::new(&label.into_iter().collect::<Labels>());
        for one in &found.spec.containers {
            template =
                template.container(Container::new(&one.name, &one.image).command(&one.command));
        }
        let policy = match &*found.spec.restart_policy {
            "OnFailure" => RestartPolicy::OnFailure,
            _ => RestartPolicy::Never,
        };
        let template = template.restart_policy(policy);
        periodic(with_deadline(&self.metadata.name, template, deadline_seconds))
    }

    fn condition(&self, type_: &str) -> Option<&StatusCondition> {
        self.status.conditions.iter().find(|one| one.type_ == type_ && one.status == "True")
    }
}

/// The label of the Job's pods.
const LABEL: (&str, &str) = ("app", "kuri");

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
