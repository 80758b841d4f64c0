use serde::Serialize;

use super::JobSpec;
use crate::{Apply, Metadata, Resource};

/// A `CronJob`: a Job again and again. Its name has at most 52 characters.
#[derive(Clone, Debug, Serialize)]
pub struct CronJob {
    /// Its metadata.
    pub metadata: Metadata,
    /// What it runs, and when.
    pub spec: CronJobSpec,
}

/// What a `CronJob` runs, and when.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CronJobSpec {
    /// When, in cron's five fields.
    pub schedule: String,
    /// What happens when the Job before still runs; the server's default is `Allow`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub concurrency_policy: Option<ConcurrencyPolicy>,
    /// How many Jobs that succeeded are kept; the server's default is 3.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub successful_jobs_history_limit: Option<i32>,
    /// How many Jobs that failed are kept; the server's default is 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failed_jobs_history_limit: Option<i32>,
    /// The Jobs.
    pub job_template: JobTemplate,
}

/// What happens when a Job is due while the one before still runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum ConcurrencyPolicy {
    /// Both run.
    Allow,
    /// The new one is left out.
    Forbid,
    /// The old one is ended.
    Replace,
}

/// The Jobs of a `CronJob`.
#[derive(Clone, Debug, Serialize)]
pub struct JobTemplate {
    /// Labels and annotations of the Jobs.
    #[serde(skip_serializing_if = "Metadata::is_empty")]
    pub metadata: Metadata,
    /// What they run.
    pub spec: JobSpec,
}

impl CronJob {
    /// A `CronJob` of this name.
    pub fn new(name: impl Into<String>, schedule: impl Into<String>, job: JobSpec) -> Self {
        Self {
            metadata: Metadata::named(name),
            spec: CronJobSpec {
                schedule: schedule.into(),
                concurrency_policy: None,
                successful_jobs_history_limit: None,
                failed_jobs_history_limit: None,
                job_template: JobTemplate { metadata: Metadata::default(), spec: job },
            },
        }
    }

    /// When a Job is due while the one before still runs, do this.
    pub fn concurrency(mut self, policy: ConcurrencyPolicy) -> Self {
        self.spec.concurrency_policy = Some(policy);
        self
    }

    /// Keep so many Jobs that succeeded, and so many that failed.
    pub fn history(mut self, successful: i32, failed: i32) -> Self {
        self.spec.successful_jobs_history_limit = Some(successful);
        self.spec.failed_jobs_history_limit = Some(failed);
        self
    }
}

impl Resource for CronJob {
    const API_VERSION: &'static str = "batch/v1";
    const KIND: &'static str = "CronJob";
    const PLURAL: &'static str = "cronjobs";
}

impl Apply for CronJob {
    fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    fn metadata_mut(&mut self) -> &mut Metadata {
        &mut self.metadata
    }
}
