//! The rollback window: for some time after a swap the host compares the failures of the active
//! revision with what the previous revision does for the same primaries.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use innkeeper_core::ObjectKey;
use innkeeper_modules::{Digest, Event, Rejection, RetryPolicy};

use super::event::SupervisorEvent;
use super::health::{Failing, RollbackWindow, without_single_namespace};
use super::open_revision::OpenRevision;
use super::supervisor::Supervisor;
use crate::preview;

impl Supervisor {
    /// Counts new failures of a module from now on, for `time`.
    pub(super) fn begin_rollback_window(
        &mut self,
        name: &str,
        digest: Digest,
        failures_max: u32,
        time: Duration,
    ) {
        // The first check looks at the namespaces of the primaries.
        let window = RollbackWindow { digest, failures_max, many_namespaces: false };
        self.shared.health.begin_rollback_window(&name.into(), window);
        let replaced = self.rollback.replaced.take();
        self.rollback.previous.extend(replaced.map(|before| (name.to_owned(), before)));
        self.watch_policy(name, digest, failures_max);
        self.send_after(name, time, Event::RollbackWindowOver(digest));
    }

    /// Drops the previous revision of a module; its failures cause no rollback any more.
    pub(super) fn end_rollback_window(&mut self, name: &str) {
        self.rollback.previous.remove(name);
        self.latest.rollback_checks.remove(name);
        self.latest.policy_windows.remove(name);
        self.shared.health.end_rollback_window(name);
    }

    /// Asks for a rollback of the revision `digest` if more than `failures_max` primaries fail that
    /// succeed with the previous revision. Primaries that fail with both do not count: a user may
    /// have broken them in the meantime. Nor do primaries for which the previous revision needs the
    /// same missing right: a rollback would not help. Nor does a right that is missing in one of
    /// the namespaces with primaries only.
    pub(super) fn check_rollback_window(
        &mut self,
        name: &str,
        digest: Digest,
        new_failures: BTreeMap<ObjectKey, Failing>,
        failures_max: u32,
    ) {
        let Some(previous) = self.rollback.previous.get(name).cloned() else { return };
        let (shared, outbox, module) =
            (self.shared.clone(), self.outbox.clone(), Arc::<str>::from(name));
        let task = self.shared.env.spawn("check rollback window", async move {
            let many_namespaces = has_many_namespaces(&previous);
            let (mut excluded, mut counted) = (Vec::new(), BTreeMap::new());
            for (key, failing) in without_single_namespace(new_failures, many_namespaces) {
                if preview::fails(&shared, &previous, &key, failing.forbidden.as_deref()).await {
                    excluded.push(key);
                } else {
                    counted.insert(key, failing);
                }
            }
            let counted: Vec<Failing> =
                without_single_namespace(counted, many_namespaces).into_values().collect();
            if let Some(rejection) = failure_threshold_exceeded(&counted, failures_max) {
                let event = Event::FailureThresholdExceeded { digest, rejection };
                let _ = outbox.send(SupervisorEvent::input(&*module, event));
            } else {
                let window = RollbackWindow { digest, failures_max, many_namespaces };
                shared.health.continue_rollback_window(&module, window, excluded);
            }
        });
        self.latest.rollback_checks.insert(name.to_owned(), task);
    }
}

/// Whether a revision reconciles primaries in more than one namespace.
fn has_many_namespaces(revision: &OpenRevision) -> bool {
    let mut primaries = revision.primaries();
    primaries.retain(|primary| revision.selects(primary));
    let first = primaries.first().map(|primary| primary.key.namespace().to_owned());
    primaries.iter().any(|primary| Some(primary.key.namespace()) != first.as_deref())
}

/// Why the active revision is rolled back, if it is: the failures are those that the previous
/// revision does not have.
fn failure_threshold_exceeded(failures: &[Failing], failures_max: u32) -> Option<Rejection> {
    let Failing { reason, message, .. } = failures.first()?;
    if failures.len() <= usize::try_from(failures_max).unwrap_or(usize::MAX) {
        return None;
    }
    let count = failures.len();
    let primaries = if count == 1 { "primary fails" } else { "primaries fail" };
    let message = format!(
        "{count} {primaries} where the previous revision does not, for example with {reason}: {message}"
    );
    Some(Rejection::new(reason, message, RetryPolicy::Later))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rollback_needs_more_failures_than_the_maximum() {
        let failing = || Failing {
            reason: "GuestTrapped".to_owned(),
            message: "unreachable".to_owned(),
            forbidden: None,
        };
        for (failures, failures_max, expected) in [
            (0, 0, None),
            (1, 1, None),
            (
                1,
                0,
                Some(
                    "1 primary fails where the previous revision does not, for example with GuestTrapped: unreachable",
                ),
            ),
            (
                2,
                1,
                Some(
                    "2 primaries fail where the previous revision does not, for example with GuestTrapped: unreachable",
                ),
            ),
        ] {
            let failures = vec![failing(); failures];
            let rejection = failure_threshold_exceeded(&failures, failures_max);
            assert_eq!(rejection.map(|one| one.message).as_deref(), expected);
        }
    }
}
