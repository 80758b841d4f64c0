use serde::Deserialize;

use super::{StatusCondition, is_true};
use crate::Metadata;

/// A Job: its metadata and status.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Job {
    /// Metadata.
    pub metadata: Metadata,
    /// Status.
    pub status: JobStatus,
}

/// The status of a Job.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct JobStatus {
    /// Number of pending and running pods.
    pub active: i32,
    /// Number of pods that succeeded.
    pub succeeded: i32,
    /// Number of pods that failed.
    pub failed: i32,
    /// Conditions.
    pub conditions: Vec<StatusCondition>,
}

impl Job {
    /// Returns whether the Job has succeeded. (By the rules of kstatus a Job is ready when it
    /// starts.)
    pub fn is_complete(&self) -> bool {
        is_true(&self.status.conditions, "Complete")
    }

    /// Returns why the Job has failed; `None` if it has not.
    pub fn failure(&self) -> Option<&str> {
        let conditions = &self.status.conditions;
        let failed = conditions.iter().find(|one| one.type_ == "Failed" && one.status == "True")?;
        Some(if failed.message.is_empty() { &failed.reason } else { &failed.message })
    }
}

crate::kind!(Primary for Job, "batch/v1", "jobs");
