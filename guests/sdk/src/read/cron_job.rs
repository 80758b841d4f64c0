use serde::Deserialize;
use serde_json::Value;

use crate::Metadata;

/// A `CronJob`: its metadata and status.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct CronJob {
    /// Metadata.
    pub metadata: Metadata,
    /// Status.
    pub status: CronJobStatus,
}

/// The status of a `CronJob`. Times are RFC 3339 in UTC with whole seconds, so comparing them as
/// text compares the times.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct CronJobStatus {
    /// Jobs that are running.
    pub active: Vec<Value>,
    /// Time at which the last Job was started.
    pub last_schedule_time: Option<String>,
    /// Time at which the last successful Job completed.
    pub last_successful_time: Option<String>,
}

impl CronJobStatus {
    /// Returns whether the last Job ended without success.
    pub fn has_last_failed(&self) -> bool {
        self.active.is_empty()
            && self.last_schedule_time.is_some()
            && self.last_successful_time < self.last_schedule_time
    }
}

crate::kind!(Primary for CronJob, "batch/v1", "cronjobs");
