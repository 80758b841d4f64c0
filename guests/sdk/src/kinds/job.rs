use serde::Serialize;

use super::PodTemplate;
use crate::Metadata;

/// A Job. Its pod template is immutable. Its pods carry the label [`JOB_NAME_LABEL`] with the
/// Job's name.
#[derive(Clone, Debug, Serialize)]
pub struct Job {
    /// Metadata.
    pub metadata: Metadata,
    /// Spec.
    pub spec: JobSpec,
}

/// The label of a Job's pods that holds the Job's name.
pub const JOB_NAME_LABEL: &str = "batch.kubernetes.io/job-name";

/// The spec of a Job.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct JobSpec {
    /// Number of pods that may fail before the Job fails; the API server's default is 6.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backoff_limit: Option<i32>,
    /// Seconds until the Job fails, whatever its pods do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub active_deadline_seconds: Option<i64>,
    /// Template of the pods.
    pub template: PodTemplate,
}

impl JobSpec {
    /// Creates a spec. The restart policy of the template must be `Never` or `OnFailure`.
    pub fn new(template: PodTemplate) -> Self {
        Self { backoff_limit: None, active_deadline_seconds: None, template }
    }

    /// Sets how many pods may fail before the Job fails.
    pub fn backoff_limit(mut self, limit: i32) -> Self {
        self.backoff_limit = Some(limit);
        self
    }

    /// Sets the seconds until the Job fails.
    pub fn deadline_seconds(mut self, seconds: i64) -> Self {
        self.active_deadline_seconds = Some(seconds);
        self
    }
}

impl Job {
    /// Creates a Job.
    pub fn new(name: impl Into<String>, spec: JobSpec) -> Self {
        Self { metadata: Metadata::named(name), spec }
    }
}

crate::kind!(Apply for Job, "batch/v1", "jobs");
