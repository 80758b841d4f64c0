//! How a new version comes to serve, and what it would do if it did.

use std::fmt::Write as _;
use std::time::Duration;

use serde::Serialize;

use crate::machine::{Again, Verdict};

/// After a swap, so long is the new version held against the one before, unless the Module says
/// otherwise.
pub const PROBATION: Duration = Duration::from_mins(2);

/// The longest probation that a Module may ask for.
pub const PROBATION_MAX: Duration = Duration::from_hours(24);

/// So many objects are named of what a candidate would do.
pub const EXAMPLES_MAX: usize = 10;

/// When a candidate serves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Strategy {
    /// As soon as it is checked.
    Immediate,
    /// When it has been rehearsed, and would do nothing that needs a person's word.
    #[default]
    Guarded,
    /// When it has been rehearsed, and a person has approved it.
    Manual,
}

/// How a new version comes to serve.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rollout {
    /// When it serves.
    pub strategy: Strategy,
    /// So many objects may be deleted without a person's word.
    pub deletions_max: u32,
    /// So much of what is there may be changed without a person's word, in percent.
    pub changed_percent_max: u32,
    /// So many primaries may fail that do not fail now: without a person's word before the swap,
    /// and without going back after it.
    pub failures_max: u32,
    /// So long after the swap the new version is held against the one before; zero for not at all.
    pub probation: Duration,
}

impl Default for Rollout {
    fn default() -> Self {
        Self {
            strategy: Strategy::default(),
            deletions_max: 0,
            changed_percent_max: 100,
            failures_max: 0,
            probation: PROBATION,
        }
    }
}

/// What a candidate would do with one object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub enum Deed {
    /// Its run fails for this primary, which does not fail now.
    Fail,
    /// It would delete it.
    Delete,
    /// It would delete it and make it anew.
    Recreate,
    /// It would change it.
    Change,
    /// It would make it.
    Create,
}

impl Deed {
    /// The word for people and for the status.
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

/// One object, and what a candidate would do with it. The most telling order first.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Example {
    /// What.
    pub deed: Deed,
    /// The object: `Deployment web/a`; the primary, if it is its run that fails.
    pub object: String,
    /// The fields that change, as in `.spec.replicas`; why it fails.
    pub fields: Vec<String>,
}

/// What a candidate would do with the primaries that there are, against what serves. Nothing has
/// been written to find out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rehearsal {
    /// The primaries that there are.
    pub primaries: u32,
    /// For so many of them it was run.
    pub rehearsed: u32,
    /// The objects of these that there are.
    pub objects: u32,
    /// So many objects would be made.
    pub creates: u32,
    /// So many would be changed, those included that would be made anew.
    pub changes: u32,
    /// So many would be deleted, those included that would be made anew.
    pub deletes: u32,
    /// For so many primaries it fails where what serves does not.
    pub failures: u32,
    /// At most [`EXAMPLES_MAX`], the worst first.
    pub examples: Vec<Example>,
}

impl Rehearsal {
    /// Counts one deed.
    pub fn add(&mut self, deed: Deed, object: String, fields: Vec<String>) {
        match deed {
            Deed::Fail => self.failures += 1,
            Deed::Delete => self.deletes += 1,
            Deed::Recreate => {
                self.deletes += 1;
                self.changes += 1;
            }
            Deed::Change => self.changes += 1,
            Deed::Create => self.creates += 1,
        }
        let example = Example { deed, object, fields };
        let at = self.examples.partition_point(|other| other.deed <= example.deed);
        self.examples.insert(at, example);
        self.examples.truncate(EXAMPLES_MAX);
    }

    /// Why it may not serve without a person's word; `None` if it may.
    pub fn held_by(&self, rollout: &Rollout) -> Option<Verdict> {
        let verdict = |reason: &str, message: String| {
            Some(Verdict::new(reason, format!("{message}{}", self.telling()), Again::Never))
        };
        if self.deletes > rollout.deletions_max {
            return verdict(
                "WouldDelete",
                format!(
                    "it would delete {} and rollout.maxDeletions is {}",
                    objects(self.deletes),
                    rollout.deletions_max
                ),
            );
        }
        if self.failures > rollout.failures_max {
            return verdict(
                "WouldFail",
                format!(
                    "it fails for {} of {} primaries that do not fail now, and rollout.maxFailures is {}",
                    self.failures, self.rehearsed, rollout.failures_max
                ),
            );
        }
        // In whole numbers: a share of what is there, rounded up.
        let changed = (u64::from(self.changes) * 100).div_ceil(u64::from(self.objects.max(1)));
        if changed > u64::from(rollout.changed_percent_max) {
            return verdict(
                "WouldExceedChangeLimit",
                format!(
                    "it would change {} % of {} and rollout.maxChangedPercent is {}",
                    changed,
                    objects(self.objects),
                    rollout.changed_percent_max
                ),
            );
        }
        (rollout.strategy == Strategy::Manual).then(|| {
            let message = format!("every version needs approval{}", self.telling());
            Verdict::new("NeedsApproval", message, Again::Never)
        })
    }

    /// What it would do, in a few words.
    pub fn summary(&self) -> String {
        let mut text = format!(
            "{} to create, {} to change, {} to delete, {} failing, of {} and {} primaries",
            self.creates,
            self.changes,
            self.deletes,
            self.failures,
            objects(self.objects),
            self.rehearsed
        );
        if self.rehearsed < self.primaries {
            let _ = write!(text, " (of {})", self.primaries);
        }
        text
    }

    fn telling(&self) -> String {
        match self.examples.first() {
            Some(Example { deed, object, fields }) => {
                let fields = if fields.is_empty() {
                    String::new()
                } else {
                    format!(" ({})", fields.join(", "))
                };
                format!("; for example {} {object}{fields}", deed.as_str().to_lowercase())
            }
            None => String::new(),
        }
    }
}

fn objects(count: u32) -> String {
    format!("{count} {}", if count == 1 { "object" } else { "objects" })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rehearsal(deeds: &[(Deed, u32)]) -> Rehearsal {
        let mut rehearsal =
            Rehearsal { primaries: 10, rehearsed: 10, objects: 20, ..Rehearsal::default() };
        for (deed, count) in deeds {
            for index in 0..*count {
                rehearsal.add(*deed, format!("Deployment web/{index}"), vec![".spec".to_owned()]);
            }
        }
        rehearsal
    }

    fn reason(rehearsal: &Rehearsal, rollout: &Rollout) -> Option<String> {
        rehearsal.held_by(rollout).map(|verdict| verdict.reason)
    }

    #[test]
    fn any_deletion_and_any_new_failure_needs_a_word_and_changes_do_not() {
        let rollout = Rollout::default();
        assert_eq!(reason(&rehearsal(&[(Deed::Change, 20), (Deed::Create, 9)]), &rollout), None);
        let deletes = rehearsal(&[(Deed::Change, 3), (Deed::Delete, 1)]);
        assert_eq!(
            deletes.held_by(&rollout).unwrap().message,
            "it would delete 1 object and rollout.maxDeletions is 0; for example delete Deployment web/0 (.spec)"
        );
        assert_eq!(reason(&rehearsal(&[(Deed::Recreate, 1)]), &rollout).unwrap(), "WouldDelete");
        assert_eq!(reason(&rehearsal(&[(Deed::Fail, 1)]), &rollout).unwrap(), "WouldFail");
    }

    #[test]
    fn limits_are_inclusive() {
        let rollout = Rollout {
            deletions_max: 2,
            failures_max: 1,
            changed_percent_max: 50,
            ..Rollout::default()
        };
        let deeds = [(Deed::Delete, 2), (Deed::Fail, 1), (Deed::Change, 10)];
        assert_eq!(reason(&rehearsal(&deeds), &rollout), None);
        let more = rehearsal(&[(Deed::Change, 11)]);
        assert_eq!(reason(&more, &rollout).unwrap(), "WouldExceedChangeLimit");
        assert!(more.held_by(&rollout).unwrap().message.contains("55 % of 20 objects"));
    }

    #[test]
    fn manual_holds_what_would_do_nothing() {
        let rollout = Rollout { strategy: Strategy::Manual, ..Rollout::default() };
        assert_eq!(reason(&rehearsal(&[]), &rollout).unwrap(), "NeedsApproval");
    }

    #[test]
    fn ten_examples_are_kept_and_the_worst_come_first() {
        let all =
            rehearsal(&[(Deed::Create, 30), (Deed::Change, 8), (Deed::Delete, 1), (Deed::Fail, 1)]);
        let deeds: Vec<_> = all.examples.iter().map(|example| example.deed.as_str()).collect();
        assert_eq!(deeds[..3], ["Fail", "Delete", "Change"]);
        assert_eq!(deeds.len(), EXAMPLES_MAX);
        assert_eq!((all.creates, all.changes, all.deletes, all.failures), (30, 8, 1, 1));
        assert_eq!(
            all.summary(),
            "30 to create, 8 to change, 1 to delete, 1 failing, of 20 objects and 10 primaries"
        );
    }
}
