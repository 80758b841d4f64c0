//! The result of a primary's last run in its condition `Running`, as Ansible operators show it.
//!
//! The host writes it where the schema of the status declares the member, or where the Module asks
//! for it and the schema keeps unknown members.

use std::time::Duration;

use innkeeper_contract::{Condition, ConditionStatus};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::{LastRun, schema};

/// The type of the condition. It is the host's alone where the host writes the result.
pub const CONDITION: &str = "Running";

/// The member of the condition that holds the result.
pub const MEMBER: &str = "ansibleResult";

/// The shortest time between two renewals of a result that did not change: at most 360 writes an
/// hour for one primary, whatever its resync period is.
pub const RENEWAL_MIN: Duration = Duration::from_secs(10);

/// The members of the result.
const COUNTS: [&str; 4] = ["ok", "changed", "skipped", "failures"];
const COMPLETION: &str = "completion";

/// When the host renews a result that did not change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ResultRenewal {
    /// The age of the live result at which this run renews it; `None` for a run that does not.
    pub age_min: Option<Duration>,
}

/// Whether the host writes the result into a status with this schema (`None` if nothing is known of
/// it): the schema declares the member, or the Module asks for the result, and the schema keeps all
/// of it. Of a part the host could not tell whether it is the live one.
pub fn is_shown(status: Option<&Value>, is_asked_for: bool) -> bool {
    match status {
        Some(status) => (is_asked_for || is_declared(status)) && is_kept(status),
        None => is_asked_for,
    }
}

/// Whether the schema of a status declares the member in the items of its conditions.
fn is_declared(status: &Value) -> bool {
    let items = schema::at(status, &["conditions"]).and_then(|list| list.get("items"));
    items.and_then(|items| schema::at(items, &[MEMBER])).is_some()
}

/// Whether a status of this schema keeps the whole result: it declares or preserves all members.
fn is_kept(status: &Value) -> bool {
    let whole = json!({"conditions": [
        {"type": CONDITION, MEMBER: LastRun::default().to_result("")}
    ]});
    let mut kept = whole.clone();
    schema::prune(status, &mut kept);
    kept == whole
}

/// The condition of a run with these counts, without the result.
pub fn condition(last_run: &LastRun) -> Condition {
    let (status, reason) = match last_run.failures {
        0 => (ConditionStatus::True, "Successful"),
        _ => (ConditionStatus::False, "Failed"),
    };
    Condition {
        type_: CONDITION.to_owned(),
        status,
        reason: reason.to_owned(),
        message: "Awaiting next reconciliation".to_owned(),
    }
}

impl LastRun {
    /// The value of `ansibleResult`, with `time` as completion.
    pub(crate) fn to_result(self, time: &str) -> Value {
        json!({
            "ok": self.ok,
            "changed": self.changed,
            "skipped": self.skipped,
            "failures": self.failures,
            COMPLETION: time,
        })
    }
}

impl ResultRenewal {
    /// The live result, if it stays after a run with these counts; `None` if a new one takes its
    /// place. A run that changed nothing keeps the number of changes of the run before.
    pub(crate) fn kept(
        self,
        live: Option<&Value>,
        last_run: LastRun,
        now: Timestamp,
    ) -> Option<Value> {
        let live = live?;
        let members = live.as_object()?;
        // The original operator writes its time without a zone: that result is replaced.
        let completion: Timestamp = live[COMPLETION].as_str()?.parse().ok()?;
        let is_whole = members.len() == COUNTS.len() + 1
            && COUNTS.iter().all(|count| live[*count].as_u64().is_some());
        let is = |count: &str, value: usize| live[count].as_u64() == u64::try_from(value).ok();
        let is_same = last_run.changed == 0
            && is("ok", last_run.ok)
            && is("skipped", last_run.skipped)
            && is("failures", last_run.failures);
        let age = now.duration_since(completion);
        let is_due = self.age_min.is_some_and(|age_min| {
            // A time in the future is none of the host's.
            age.is_negative()
                || age >= SignedDuration::try_from(age_min).unwrap_or(SignedDuration::MAX)
        });
        (is_whole && is_same && !is_due).then(|| live.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RUN: LastRun = LastRun { ok: 2, changed: 0, skipped: 1, failures: 0 };

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    fn live() -> Value {
        json!({"ok": 2, "changed": 1, "skipped": 1, "failures": 0,
            "completion": "2026-11-22T10:00:00Z"})
    }

    fn kept(age_min: Option<u64>, live: &Value, last_run: LastRun, now: &str) -> bool {
        let result = ResultRenewal { age_min: age_min.map(Duration::from_secs) };
        let kept = result.kept(Some(live), last_run, at(now));
        assert!(kept.is_none() || kept.as_ref() == Some(live), "{kept:?}");
        kept.is_some()
    }

    #[test]
    fn condition_says_whether_the_run_failed() {
        let of = |failures| condition(&LastRun { failures, ..RUN });
        assert_eq!((of(0).status, &*of(0).reason), (ConditionStatus::True, "Successful"));
        assert_eq!((of(2).status, &*of(2).reason), (ConditionStatus::False, "Failed"));
        assert_eq!(of(0).message, "Awaiting next reconciliation");
    }

    #[test]
    fn result_is_kept_for_ever_while_the_counts_are_the_same() {
        assert!(kept(None, &live(), RUN, "2036-11-22T10:00:00Z"));
        for other in [
            LastRun { ok: 1, ..RUN },
            LastRun { changed: 1, ..RUN },
            LastRun { skipped: 0, ..RUN },
            LastRun { failures: 1, ..RUN },
        ] {
            assert!(!kept(None, &live(), other, "2026-11-22T10:00:01Z"), "{other:?}");
        }
    }

    #[test]
    fn result_is_renewed_at_its_age_and_when_its_time_is_in_the_future() {
        assert!(kept(Some(90), &live(), RUN, "2026-11-22T10:01:29Z"));
        assert!(!kept(Some(90), &live(), RUN, "2026-11-22T10:01:30Z"));
        assert!(!kept(Some(90), &live(), RUN, "2026-11-22T09:00:00Z"));
        assert!(kept(Some(u64::MAX), &live(), RUN, "2036-11-22T10:00:00Z"));
    }

    #[test]
    fn result_of_the_original_or_of_another_form_is_replaced() {
        let with = |member: &str, value: Value| {
            let mut other = live();
            other[member] = value;
            other
        };
        for other in [
            with("completion", json!("2020-05-27T05:38:46.113867")),
            with("completion", json!(7)),
            with("ok", json!("2")),
            with("changed", json!(-1)),
            with("more", json!({})),
            json!("text"),
            Value::Null,
        ] {
            assert!(!kept(None, &other, RUN, "2026-11-22T10:00:01Z"), "{other}");
        }
        assert_eq!(ResultRenewal::default().kept(None, RUN, Timestamp::UNIX_EPOCH), None);
    }

    #[test]
    fn result_is_shown_where_the_schema_declares_it_or_the_module_asks_and_all_of_it_is_kept() {
        let of = |items: Value| json!({"type": "object", "properties": {"conditions": {"type": "array", "items": items}}});
        let any = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
        let whole = of(json!({"properties": {"type": {}, "ansibleResult": any}}));
        let part =
            of(json!({"properties": {"type": {}, "ansibleResult": {"properties": {"ok": {}}}}}));
        let other = of(json!({"properties": {"type": {}}}));
        let free = of(any.clone());
        let cases = [&whole, &part, &other, &free, &any].map(Some);
        let shown = |is_asked_for| cases.map(|status| is_shown(status, is_asked_for));
        assert_eq!(shown(false), [true, false, false, false, false]);
        assert_eq!(shown(true), [true, false, false, true, true]);
        assert_eq!([false, true].map(|asked| is_shown(None, asked)), [false, true]);
    }
}
