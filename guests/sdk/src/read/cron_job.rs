use serde::Deserialize;
use serde_json::Value;

use crate::{Metadata, Resource};

/// A `CronJob`'s metadata and status.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct CronJob {
    /// Its metadata.
    pub metadata: Metadata,
    /// What its controller says.
    pub status: CronJobStatus,
}

/// What the `CronJob` controller says. Times are RFC 3339 in UTC and whole seconds, so that
/// they can be compared as texts.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct CronJobStatus {
    /// Jobs that run now.
    pub active: Vec<Value>,
    /// When a Job was started last.
    pub last_schedule_time: Option<String>,
    /// When a Job succeeded last.
    pub last_successful_time: Option<String>,
}

impl CronJobStatus {
    /// The Job that was started last has ended without success.
    pub fn has_last_failed(&self) -> bool {
        self.active.is_empty()
            && self.last_schedule_time.is_some()
            && self.last_successful_time < self.last_schedule_time
    }
}

impl Resource for CronJob {
    const API_VERSION: &'static str = "batch/v1";
    const KIND: &'static str = "CronJob";
    const PLURAL: &'static str = "cronjobs";
}
