//! Figures of a primary's last run, which its status shows if its schema has room for them.

use serde_json::{Value, json};

use crate::schema;

/// The member of `status` that they stand in.
pub const MEMBER: &str = "lastRun";

/// What a run came to: what Ansible operators show as `ansibleResult`.
///
/// A run is all rounds from what woke the primary until nothing is left to write.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LastRun {
    /// Objects that are as the guest wants them, those that were changed to be so included.
    pub ok: usize,
    /// Objects that were created, changed or deleted.
    pub changed: usize,
    /// What could not be done: objects that could not be applied, or the run of the guest.
    pub failures: usize,
}

/// Whether a schema of a status has room for them. Only then they are written: they change with
/// each repair, so they cost a write that many do not want to pay for.
pub fn has_last_run(status: &Value) -> bool {
    schema::at(status, &[MEMBER, "completionTime"]).is_some()
}

impl LastRun {
    /// What to show where `live` is shown: these, completed at `time`, or the live ones again
    /// if nothing was changed and as much failed as before. So a run that finds all in order
    /// writes nothing, and one that fails again and again neither.
    pub fn over(&self, live: Option<&Value>, time: &str) -> Option<Value> {
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
    fn a_run_that_changed_something_is_told_with_its_time() {
        let figures = LastRun { ok: 4, changed: 1, failures: 0 };
        let told = json!({"ok": 4, "changed": 1, "failures": 0, "completionTime": NOW});
        assert_eq!(figures.over(None, NOW), Some(told.clone()));
        assert_eq!(figures.over(Some(&live()), NOW), Some(told));
    }

    #[test]
    fn a_run_that_changed_nothing_leaves_what_is_told() {
        let figures = LastRun { ok: 4, changed: 0, failures: 1 };
        assert_eq!(figures.over(Some(&live()), NOW), Some(live()));
    }

    #[test]
    fn a_failure_is_told_though_nothing_was_changed_and_so_is_its_end() {
        for failures in [0, 2] {
            let told = LastRun { ok: 4, changed: 0, failures }.over(Some(&live()), NOW);
            assert_eq!(
                told,
                Some(json!({"ok": 4, "changed": 0, "failures": failures, "completionTime": NOW}))
            );
        }
    }

    #[test]
    fn a_first_run_without_anything_to_do_is_not_told() {
        let figures = LastRun { ok: 4, changed: 0, failures: 0 };
        assert_eq!(figures.over(None, NOW), None);
    }

    #[test]
    fn only_a_schema_that_names_them_has_room() {
        let of = |properties: Value| {
            json!({"type": "object", "properties": {"lastRun": {
            "type": "object", "properties": properties}}})
        };
        assert!(has_last_run(&of(json!({"completionTime": {"type": "string"}}))));
        assert!(!has_last_run(&of(json!({"at": {"type": "string"}}))), "somebody's own");
        assert!(!has_last_run(&json!({"x-kubernetes-preserve-unknown-fields": true})));
    }
}
