use serde::Deserialize;

use super::{StatusCondition, is_true};
use crate::{Metadata, Resource};

/// A Job's metadata and status.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Job {
    /// Its metadata.
    pub metadata: Metadata,
    /// What its controller says.
    pub status: JobStatus,
}

/// What the Job controller says.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct JobStatus {
    /// Pods that run or wait to.
    pub active: i32,
    /// Pods that succeeded.
    pub succeeded: i32,
    /// Pods that failed.
    pub failed: i32,
    /// Its conditions.
    pub conditions: Vec<StatusCondition>,
}

impl Job {
    /// It has succeeded. (A Job is *ready* from its start, by the rules of kstatus.)
    pub fn is_complete(&self) -> bool {
        is_true(&self.status.conditions, "Complete")
    }

    /// Why it has failed for good, if it has.
    pub fn failure(&self) -> Option<&str> {
        let conditions = &self.status.conditions;
        let failed = conditions.iter().find(|one| one.type_ == "Failed" && one.status == "True")?;
        Some(if failed.message.is_empty() { &failed.reason } else { &failed.message })
    }
}

impl Resource for Job {
    const API_VERSION: &'static str = "batch/v1";
    const KIND: &'static str = "Job";
    const PLURAL: &'static str = "jobs";
}
