//! How a candidate becomes active, and what its preview found.

use std::fmt::Write as _;
use std::time::Duration;

use innkeeper_core::counted;
use serde::Serialize;

pub use crate::abandoned::{Abandoned, AbandonedBy};
use crate::machine::{Rejection, RetryPolicy};
use crate::policy_preview::PolicyPreview;

/// The rollback window, unless the Module sets another one.
pub const ROLLBACK_WINDOW: Duration = Duration::from_mins(2);

/// The longest rollback window that a Module may set.
pub const ROLLBACK_WINDOW_MAX: Duration = Duration::from_hours(24);

/// The most objects that a preview names.
pub const EXAMPLES_MAX: usize = 10;

/// What becomes of a candidate that would leave primaries without a controller.
const AGAIN_WITHOUT_PRIMARIES: &str = "; the host repeats the preview, at least every five minutes, and activates the candidate once it leaves out no primary";

/// When a candidate becomes active.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Strategy {
    /// As soon as it is checked.
    Immediate,
    /// After its preview, if that shows nothing that requires an approval.
    #[default]
    Guarded,
    /// After its preview, once a user has approved it.
    Manual,
}

/// How a candidate becomes active.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rollout {
    /// When it becomes active.
    pub strategy: Strategy,
    /// Maximum number of objects that it may delete without an approval.
    pub deletions_max: u32,
    /// Maximum percentage of the existing objects that it may change without an approval.
    pub changed_percent_max: u32,
    /// Maximum number of newly failing primaries before an approval is required or the swap is
    /// rolled back.
    pub failures_max: u32,
    /// Maximum number of existing objects and recent requests that a candidate of a policy may
    /// newly deny without an approval.
    pub newly_denied_max: u32,
    /// Time after the swap in which failures roll it back; zero for never.
    pub rollback_window: Duration,
}

impl Default for Rollout {
    fn default() -> Self {
        Self {
            strategy: Strategy::default(),
            deletions_max: 0,
            changed_percent_max: 100,
            failures_max: 0,
            newly_denied_max: 0,
            rollback_window: ROLLBACK_WINDOW,
        }
    }
}

/// What a candidate would do with one object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub enum PlannedChange {
    /// Its run fails for this primary, which does not fail now.
    Fail,
    /// It would delete it.
    Delete,
    /// It would delete it and create it again.
    Recreate,
    /// It would change it.
    Change,
    /// It would create it.
    Create,
}

impl PlannedChange {
    /// The name in the status.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Fail => "Fail",
            Self::Delete => "Delete",
            Self::Recreate => "Recreate",
            Self::Change => "Change",
            Self::Create => "Create",
        }
    }
}

/// One object, and what a candidate would do with it. The most important change comes first.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Example {
    /// The change.
    pub change: PlannedChange,
    /// The object: `Deployment web/a`; the primary, if it is its run that fails.
    pub object: String,
    /// The fields that change, as in `.spec.replicas`; why it fails.
    pub fields: Vec<String>,
}

/// What a candidate would change for the present primaries, compared with the active revision. The
/// host has written nothing to find out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Preview {
    /// The primaries that exist.
    pub primaries: u32,
    /// The primaries for which the candidate ran.
    pub previewed: u32,
    /// The existing objects of these primaries.
    pub objects: u32,
    /// The objects that it would create.
    pub creates: u32,
    /// The objects that it would change, with those that it would recreate.
    pub changes: u32,
    /// The objects that it would delete, with those that it would recreate.
    pub deletes: u32,
    /// The primaries for which it fails and the active revision does not.
    pub failures: u32,
    /// At most [`EXAMPLES_MAX`], the worst first.
    pub examples: Vec<Example>,
    /// What a policy would decide otherwise; `None` if the candidate has none.
    pub policy: Option<PolicyPreview>,
    /// The primaries that it would leave without a controller; `None` if there are none.
    pub abandoned: Option<Abandoned>,
    /// The rights that the module's account lacked to read what the candidate reads.
    pub missing_rights: Vec<String>,
}

impl Preview {
    /// Counts one change.
    pub fn add(&mut self, change: PlannedChange, object: String, fields: Vec<String>) {
        match change {
            PlannedChange::Fail => self.failures += 1,
            PlannedChange::Delete => self.deletes += 1,
            PlannedChange::Recreate => {
                self.deletes += 1;
                self.changes += 1;
            }
            PlannedChange::Change => self.changes += 1,
            PlannedChange::Create => self.creates += 1,
        }
        let example = Example { change, object, fields };
        let at = self.examples.partition_point(|other| other.change <= example.change);
        self.examples.insert(at, example);
        self.examples.truncate(EXAMPLES_MAX);
    }

    /// Whether a further change of this sort would be one of its examples.
    pub fn would_name(&self, change: PlannedChange) -> bool {
        self.examples.len() < EXAMPLES_MAX
            || self.examples.last().is_some_and(|last| last.change > change)
    }

    /// Why it requires an approval; `None` if it does not. The host repeats the preview if the
    /// cause may go by itself ([`RetryPolicy::Later`]).
    pub fn held_by(&self, rollout: &Rollout) -> Option<Rejection> {
        let rejection = |reason: &str, message: String| {
            let message = format!("{message}{}", self.most_important_examples());
            Some(Rejection::new(reason, message, RetryPolicy::Never))
        };
        if let Some(abandoned) = &self.abandoned {
            let message = format!("{abandoned}{AGAIN_WITHOUT_PRIMARIES}");
            return Some(Rejection::new("WouldAbandonPrimaries", message, RetryPolicy::Later));
        }
        if self.deletes > rollout.deletions_max {
            return rejection(
                "WouldDelete",
                format!(
                    "it would delete {} and rollout.maxDeletions is {}",
                    objects(self.deletes),
                    rollout.deletions_max
                ),
            );
        }
        if self.failures > rollout.failures_max {
            let failing = format!(
                "it newly fails for {} of {}, and rollout.maxFailures is {}",
                self.failures,
                primaries(self.previewed),
                rollout.failures_max
            );
            // What it fails for may only be that it cannot read.
            return rejection("WouldFail", failing).map(|held| match &*self.missing_rights {
                [] => held,
                missing => {
                    let message = format!("{}{}", held.message, advice_on(missing));
                    Rejection::new("WouldFail", message, RetryPolicy::Later)
                }
            });
        }
        // In whole numbers: a share of what is there, rounded up.
        let changed = (u64::from(self.changes) * 100).div_ceil(u64::from(self.objects.max(1)));
        if changed > u64::from(rollout.changed_percent_max) {
            return rejection(
                "WouldExceedChangeLimit",
                format!(
                    "it would change {} % of {} and rollout.maxChangedPercent is {}",
                    changed,
                    objects(self.objects),
                    rollout.changed_percent_max
                ),
            );
        }
        let (denied_max, failures_max) = (rollout.newly_denied_max, rollout.failures_max);
        let of_policy =
            self.policy.as_ref().and_then(|policy| policy.held_by(denied_max, failures_max));
        if of_policy.is_some() {
            return of_policy;
        }
        (rollout.strategy == Strategy::Manual).then(|| {
            let message =
                format!("every candidate needs approval{}", self.most_important_examples());
            Rejection::new("NeedsApproval", message, RetryPolicy::Never)
        })
    }

    /// The counts, in one line.
    pub fn summary(&self) -> String {
        let mut text = format!(
            "{} to create, {} to change, {} to delete, {} failing, of {} and {}",
            self.creates,
            self.changes,
            self.deletes,
            self.failures,
            objects(self.objects),
            primaries(self.previewed)
        );
        if self.previewed < self.primaries {
            let _ = write!(text, " (of {})", self.primaries);
        }
        text
    }

    fn most_important_examples(&self) -> String {
        match self.examples.first() {
            Some(Example { change, object, fields }) => {
                let fields = if fields.is_empty() {
                    String::new()
                } else {
                    format!(" ({})", fields.join(", "))
                };
                format!("; for example {} {object}{fields}", change.as_str().to_lowercase())
            }
            None => String::new(),
        }
    }
}

/// What to do about rights that the preview lacked.
fn advice_on(missing: &[String]) -> String {
    format!(
        "; the ServiceAccount of the Module lacks rights: {}; apply the rules that `innkeeper rbac` prints for the candidate, and the host repeats the preview",
        missing.join(", ")
    )
}

fn objects(count: u32) -> String {
    counted(count, "object", "objects")
}

fn primaries(count: u32) -> String {
    counted(count, "primary", "primaries")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn preview(changes: &[(PlannedChange, u32)]) -> Preview {
        let mut preview =
            Preview { primaries: 10, previewed: 10, objects: 20, ..Preview::default() };
        for (change, count) in changes {
            for index in 0..*count {
                preview.add(*change, format!("Deployment web/{index}"), vec![".spec".to_owned()]);
            }
        }
        preview
    }

    fn reason(preview: &Preview, rollout: &Rollout) -> Option<String> {
        preview.held_by(rollout).map(|rejection| rejection.reason)
    }

    #[test]
    fn deletions_and_new_failures_require_approval_and_changes_do_not() {
        let rollout = Rollout::default();
        assert_eq!(
            reason(&preview(&[(PlannedChange::Change, 20), (PlannedChange::Create, 9)]), &rollout),
            None
        );
        let deletes = preview(&[(PlannedChange::Change, 3), (PlannedChange::Delete, 1)]);
        assert_eq!(
            deletes.held_by(&rollout).unwrap().message,
            "it would delete 1 object and rollout.maxDeletions is 0; for example delete Deployment web/0 (.spec)"
        );
        assert_eq!(
            reason(&preview(&[(PlannedChange::Recreate, 1)]), &rollout).unwrap(),
            "WouldDelete"
        );
        assert_eq!(reason(&preview(&[(PlannedChange::Fail, 1)]), &rollout).unwrap(), "WouldFail");
    }

    #[test]
    fn candidate_that_leaves_primaries_without_a_controller_is_held_until_they_are_gone() {
        let abandoned = Abandoned {
            primaries: Some(1),
            kind: "Page of example.com".to_owned(),
            by: AbandonedBy::NoKind,
        };
        let preview = Preview { abandoned: Some(abandoned), ..preview(&[]) };
        let held = preview.held_by(&Rollout::default()).unwrap();
        assert_eq!((&*held.reason, held.retry), ("WouldAbandonPrimaries", RetryPolicy::Later));
        assert!(held.message.ends_with(AGAIN_WITHOUT_PRIMARIES), "{}", held.message);
    }

    #[test]
    fn hold_after_a_preview_without_rights_names_them_and_is_not_final() {
        let mut blind = preview(&[(PlannedChange::Fail, 1)]);
        blind.missing_rights.push("the account may not list services".to_owned());
        let held = blind.held_by(&Rollout::default()).unwrap();
        assert_eq!((&*held.reason, held.retry), ("WouldFail", RetryPolicy::Later));
        assert!(
            held.message.contains("the account may not list services; apply the rules")
                && held.message.contains("`innkeeper rbac`"),
            "{}",
            held.message
        );
        let seeing = preview(&[(PlannedChange::Fail, 1)]).held_by(&Rollout::default()).unwrap();
        assert_eq!(seeing.retry, RetryPolicy::Never);
        // What it would delete stays held, whatever a later preview shows.
        blind.add(PlannedChange::Delete, "Service web/a".to_owned(), Vec::new());
        let held = blind.held_by(&Rollout::default()).unwrap();
        assert_eq!((&*held.reason, held.retry), ("WouldDelete", RetryPolicy::Never));
        blind.deletes = 0;
        // A hold that no right lifts stays until it is approved.
        let manual = Rollout { strategy: Strategy::Manual, failures_max: 9, ..Rollout::default() };
        let held = blind.held_by(&manual).unwrap();
        assert_eq!((&*held.reason, held.retry), ("NeedsApproval", RetryPolicy::Never));
    }

    #[test]
    fn candidate_at_the_limits_is_not_held_and_one_above_is() {
        let rollout = Rollout {
            deletions_max: 2,
            failures_max: 1,
            changed_percent_max: 50,
            ..Rollout::default()
        };
        let changes =
            [(PlannedChange::Delete, 2), (PlannedChange::Fail, 1), (PlannedChange::Change, 10)];
        assert_eq!(reason(&preview(&changes), &rollout), None);
        let more = preview(&[(PlannedChange::Change, 11)]);
        assert_eq!(reason(&more, &rollout).unwrap(), "WouldExceedChangeLimit");
        assert!(more.held_by(&rollout).unwrap().message.contains("55 % of 20 objects"));
    }

    #[test]
    fn one_object_and_one_primary_are_in_the_singular() {
        let mut one = Preview { primaries: 1, previewed: 1, objects: 1, ..Preview::default() };
        one.add(PlannedChange::Fail, "Page web/a".to_owned(), Vec::new());
        assert_eq!(
            one.summary(),
            "0 to create, 0 to change, 0 to delete, 1 failing, of 1 object and 1 primary"
        );
        assert_eq!(
            one.held_by(&Rollout::default()).unwrap().message,
            "it newly fails for 1 of 1 primary, and rollout.maxFailures is 0; for example fail Page web/a"
        );
    }

    #[test]
    fn manual_strategy_holds_a_candidate_without_changes() {
        let rollout = Rollout { strategy: Strategy::Manual, ..Rollout::default() };
        assert_eq!(reason(&preview(&[]), &rollout).unwrap(), "NeedsApproval");
    }

    #[test]
    fn ten_examples_are_kept_with_the_most_severe_first() {
        let all = preview(&[
            (PlannedChange::Create, 30),
            (PlannedChange::Change, 8),
            (PlannedChange::Delete, 1),
            (PlannedChange::Fail, 1),
        ]);
        let creates = preview(&[(PlannedChange::Create, 10)]);
        assert!(creates.would_name(PlannedChange::Change), "in place of a create");
        let changes = preview(&[(PlannedChange::Change, 10)]);
        assert!(!changes.would_name(PlannedChange::Change));
        assert!(changes.would_name(PlannedChange::Delete));
        let examples: Vec<_> = all.examples.iter().map(|example| example.change.as_str()).collect();
        assert_eq!(examples[..3], ["Fail", "Delete", "Change"]);
        assert_eq!(examples.len(), EXAMPLES_MAX);
        assert_eq!((all.creates, all.changes, all.deletes, all.failures), (30, 8, 1, 1));
        assert_eq!(
            all.summary(),
            "30 to create, 8 to change, 1 to delete, 1 failing, of 20 objects and 10 primaries"
        );
    }
}
