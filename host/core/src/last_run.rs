//! The counts of a primary's last run (`status.lastRun`), for kinds whose schema has that field.

use serde_json::{Value, json};

use crate::schema;

/// The member of `status` that holds the counts.
pub const MEMBER: &str = "lastRun";

/// The counts of one run, which Ansible operators show as `ansibleResult`.
///
/// A run is all rounds from the trigger until no write is left.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LastRun {
    /// Objects that are in sync at the end of the run, with those that the run changed.
    pub ok: usize,
    /// Objects that the run created, changed or deleted.
    pub changed: usize,
    /// Objects that the run left as they are without being in sync and without a failure: a pause
    /// holds them back, they wait for another one, or the cluster does not serve their kind.
    pub skipped: usize,
    /// Objects that the run could not apply, and failures of the guest.
    pub failures: usize,
}

/// Whether the schema of a status has the field. Otherwise the host does not write the counts: they
/// change with each repair, and each change costs a write.
pub fn has_last_run(status: &Value) -> bool {
    schema::at(status, &[MEMBER, "completionTime"]).is_some()
}

impl LastRun {
    /// Returns the value of `status.lastRun`: these counts with `time` as completion time, or the
    /// `live` value if the run changed nothing and had as many failures as the live one. So neither
    /// a run that finds everything in sync nor one that repeats a failure writes the status.
    pub fn to_status(&self, live: Option<&Value>, time: &str) -> Option<Value> {
        let failed = live.map_or(Some(0), |live| live["failures"].as_u64());
        if self.changed == 0 && failed == u64::try_from(self.failures).ok() {
            return live.cloned();
        }
        Some(json!({
            "ok": self.ok,
            "changed": self.changed,
            "failures": self.failures,
            "completionTime": time,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: &str = "2026-11-22T10:00:00Z";

    fn live() -> Value {
        json!({"ok": 3, "changed": 3, "failures": 1, "completionTime": "2020-01-01T00:00:00Z"})
    }

    #[test]
    fn run_that_changed_something_is_shown_with_its_time() {
        let last_run = LastRun { ok: 4, changed: 1, skipped: 0, failures: 0 };
        let shown = json!({"ok": 4, "changed": 1, "failures": 0, "completionTime": NOW});
        assert_eq!(last_run.to_status(None, NOW), Some(shown.clone()));
        assert_eq!(last_run.to_status(Some(&live()), NOW), Some(shown));
    }

    #[test]
    fn run_that_changed_nothing_keeps_the_live_counts() {
        let last_run = LastRun { ok: 4, changed: 0, skipped: 2, failures: 1 };
        assert_eq!(last_run.to_status(Some(&live()), NOW), Some(live()));
    }

    #[test]
    fn change_of_failures_is_shown_when_the_run_changed_nothing() {
        for failures in [0, 2] {
            let shown =
                LastRun { ok: 4, changed: 0, skipped: 0, failures }.to_status(Some(&live()), NOW);
            assert_eq!(
                shown,
                Some(json!({"ok": 4, "changed": 0, "failures": failures, "completionTime": NOW}))
            );
        }
    }

    #[test]
    fn first_run_without_changes_or_failures_is_not_shown() {
        let last_run = LastRun { ok: 4, ..LastRun::default() };
        assert_eq!(last_run.to_status(None, NOW), None);
    }

    #[test]
    fn counts_are_shown_only_when_the_schema_has_the_field() {
        let of = |properties: Value| {
            json!({"type": "object", "properties": {"lastRun": {
            "type": "object", "properties": properties}}})
        };
        assert!(has_last_run(&of(json!({"completionTime": {"type": "string"}}))));
        assert!(!has_last_run(&of(json!({"at": {"type": "string"}}))), "a lastRun of another form");
        assert!(!has_last_run(&json!({"x-kubernetes-preserve-unknown-fields": true})));
    }
}
