use serde::Serialize;

use super::JobSpec;
use crate::Metadata;

/// A `CronJob`: Jobs on a schedule. Its name has at most 52 characters.
#[derive(Clone, Debug, Serialize)]
pub struct CronJob {
    /// Metadata.
    pub metadata: Metadata,
    /// Spec.
    pub spec: CronJobSpec,
}

/// The spec of a `CronJob`.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CronJobSpec {
    /// Schedule in the five fields of cron.
    pub schedule: String,
    /// What to do if the previous Job still runs; the API server's default is `Allow`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub concurrency_policy: Option<ConcurrencyPolicy>,
    /// Number of succeeded Jobs to keep; the API server's default is 3.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub successful_jobs_history_limit: Option<i32>,
    /// Number of failed Jobs to keep; the API server's default is 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failed_jobs_history_limit: Option<i32>,
    /// Template of the Jobs.
    pub job_template: JobTemplate,
}

/// What a `CronJob` does when a Job is due while the previous one still runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum ConcurrencyPolicy {
    /// Start the new Job.
    Allow,
    /// Skip the new Job.
    Forbid,
    /// Replace the previous Job by the new one.
    Replace,
}

/// The template of a `CronJob`'s Jobs.
#[derive(Clone, Debug, Serialize)]
pub struct JobTemplate {
    /// Labels and annotations of the Jobs.
    #[serde(skip_serializing_if = "Metadata::is_empty")]
    pub metadata: Metadata,
    /// Spec of the Jobs.
    pub spec: JobSpec,
}

impl CronJob {
    /// Creates a `CronJob`. `schedule` has the five fields of cron.
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

    /// Sets what to do when a Job is due while the previous one still runs.
    pub fn concurrency(mut self, policy: ConcurrencyPolicy) -> Self {
        self.spec.concurrency_policy = Some(policy);
        self
    }

    /// Sets how many succeeded and how many failed Jobs to keep.
    pub fn history(mut self, successful: i32, failed: i32) -> Self {
        self.spec.successful_jobs_history_limit = Some(successful);
        self.spec.failed_jobs_history_limit = Some(failed);
        self
    }
}

crate::kind!(Apply for CronJob, "batch/v1", "cronjobs");
