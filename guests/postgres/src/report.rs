use innkeeper_sdk::{Condition, Observed, condition, read};

use crate::pods::Pods;
use crate::{Names, PostgreSQL, PostgreSQLStatus, restored};

/// The reason of `BackedUp` when the last backup failed.
pub(crate) const LAST_FAILED: &str = "LastFailed";

/// Returns the status.
pub(crate) fn status(
    observed: &Observed<PostgreSQL>,
    names: &Names,
    pods: &Pods,
) -> PostgreSQLStatus {
    let (pod, app_ready) = match pods.first() {
        Some((pod, app_ready)) => (Some(pod.to_owned()), app_ready),
        None => (None, false),
    };
    PostgreSQLStatus {
        pod,
        app_ready,
        last_backup: job(observed, names).last_successful_time,
        restored_from: restored::read(observed, pods),
    }
}

/// Returns the condition `BackedUp`.
pub(crate) fn backed_up(observed: &Observed<PostgreSQL>, names: &Names) -> Condition {
    const TYPE: &str = "BackedUp";
    let job = job(observed, names);
    if job.has_last_failed() {
        let message = format!(
            "the last Job of CronJob {} failed; existing backups are unchanged; see the log of its pod",
            names.backup_job
        );
        return condition::is_false(TYPE, LAST_FAILED, message);
    }
    if job.last_successful_time.is_none() {
        return condition::is_false(TYPE, "NoneYet", "there is no backup yet");
    }
    condition::is_true(TYPE, "LastSucceeded", "the last backup succeeded")
}

fn job(observed: &Observed<PostgreSQL>, names: &Names) -> read::CronJobStatus {
    let job = observed.owned::<read::CronJob>(&names.backup_job);
    job.map(|job| job.object.status).unwrap_or_default()
}
