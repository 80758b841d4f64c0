use serde::Serialize;

use super::PodTemplate;
use crate::{Apply, Metadata, Resource};

/// A Job: pods that run until they succeed. Its template is immutable. Its pods carry the
/// label [`JOB_NAME_LABEL`] with its name.
#[derive(Clone, Debug, Serialize)]
pub struct Job {
    /// Its metadata.
    pub metadata: Metadata,
    /// What it runs.
    pub spec: JobSpec,
}

/// The label of a Job's pods that holds the Job's name.
pub const JOB_NAME_LABEL: &str = "batch.kubernetes.io/job-name";

/// What a Job runs.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct JobSpec {
    /// How many pods may fail before the Job has failed; the server's default is 6.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backoff_limit: Option<i32>,
    /// After so many seconds it has failed, whatever its pods do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub active_deadline_seconds: Option<i64>,
    /// Its pods.
    pub template: PodTemplate,
}

impl JobSpec {
    /// Runs pods of this template, whose restart policy must be `Never` or `OnFailure`.
    pub fn new(template: PodTemplate) -> Self {
        Self { backoff_limit: None, active_deadline_seconds: None, template }
    }

    /// So many pods may fail.
    pub fn backoff_limit(mut self, limit: i32) -> Self {
        self.backoff_limit = Some(limit);
        self
    }

    /// It may take so many seconds.
    pub fn deadline_seconds(mut self, seconds: i64) -> Self {
        self.active_deadline_seconds = Some(seconds);
        self
    }
}

impl Job {
    /// A Job of this name.
    pub fn new(name: impl Into<String>, spec: JobSpec) -> Self {
        Self { metadata: Metadata::named(name), spec }
    }
}

impl Resource for Job {
    const API_VERSION: &'static str = "batch/v1";
    const KIND: &'static str = "Job";
    const PLURAL: &'static str = "jobs";
}

impl Apply for Job {
    fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    fn metadata_mut(&mut self) -> &mut Metadata {
        &mut self.metadata
    }
}
