use innkeeper_sdk::{Desired, Observed, condition, event};

use crate::pods::Pods;
use crate::{PostgreSQL, RestoredFrom};

/// Returns the backup from which the current data was restored; `None` if it was not restored.
/// While no pod is prepared, the guest keeps what it last reported.
pub(crate) fn read(observed: &Observed<PostgreSQL>, pods: &Pods) -> Option<RestoredFrom> {
    match pods.prepare_message() {
        Some(message) => RestoredFrom::parse(message),
        None => reported(observed).cloned(),
    }
}

/// Adds the condition `Restored`, and an Event when the guest reports this backup for the first
/// time.
pub(crate) fn report(
    desired: Desired,
    observed: &Observed<PostgreSQL>,
    restored: Option<&RestoredFrom>,
) -> Desired {
    let Some(restored) = restored else { return desired };
    let RestoredFrom { backup, time } = restored;
    let message = format!(
        "there was no data, and it was restored from the backup {backup}: changes after {time} are lost"
    );
    let desired = desired.condition(condition::is_true("Restored", "FromBackup", message.clone()));
    if reported(observed) == Some(restored) {
        return desired;
    }
    desired.event(event::warning("RestoredFromBackup", message))
}

fn reported<'a>(observed: &'a Observed<PostgreSQL>) -> Option<&'a RestoredFrom> {
    observed.primary().status.as_ref()?.restored_from.as_ref()
}
