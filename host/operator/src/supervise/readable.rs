//! What a module may and can read, as conditions of its Module.

use innkeeper_cluster::KindState;
use innkeeper_cluster::error::KIND_MISMATCH;
use innkeeper_contract::{Condition, ConditionStatus};

use crate::active_module::ActiveModule;

/// What a module may not or cannot read: a condition each, which names verb, resource and
/// namespace.
pub(super) fn readable(active: &ActiveModule) -> Vec<Condition> {
    let (mut denied, mut unserved, mut failing) = (Vec::new(), Vec::new(), Vec::new());
    let mut mismatched = Vec::new();
    let mut syncing = false;
    for (kind, state) in active.view.states() {
        match state {
            KindState::Forbidden(denial) => denied.push(denial.to_string()),
            KindState::NotServed => unserved.push(kind.to_string()),
            KindState::Mismatched(mismatch) => mismatched.push(mismatch.to_string()),
            KindState::Failing(why) => failing.push(format!("{kind}: {why}")),
            KindState::Syncing => syncing = true,
            KindState::Synced => {}
        }
    }
    let good = if syncing { ConditionStatus::Unknown } else { ConditionStatus::True };
    let make = |type_: &str, bad: &[String], ok: (&str, &str), not: (&str, &str)| Condition {
        type_: type_.to_owned(),
        status: if bad.is_empty() { good } else { ConditionStatus::False },
        reason: (if bad.is_empty() { ok.0 } else { not.0 }).to_owned(),
        message: if bad.is_empty() {
            ok.1.to_owned()
        } else {
            format!("{}{}", not.1, bad.join("; "))
        },
    };
    let mut permitted = make(
        "Authorized",
        &denied,
        ("Granted", "The ServiceAccount may read all declared kinds."),
        ("Forbidden", ""),
    );
    // A right that nobody answers for is not known to be granted.
    if denied.is_empty() && !failing.is_empty() {
        permitted.status = ConditionStatus::Unknown;
        "Failing".clone_into(&mut permitted.reason);
        permitted.message = failing.join("; ");
    }
    let mut conditions = vec![
        permitted,
        if mismatched.is_empty() {
            make(
                "KindsAvailable",
                &unserved,
                ("AllKindsServed", "The cluster serves all declared kinds."),
                ("NotServed", "The cluster does not serve "),
            )
        } else {
            mismatched.extend(unserved.iter().map(|kind| format!("{kind} is not served")));
            make("KindsAvailable", &mismatched, ("", ""), (KIND_MISMATCH, ""))
        },
    ];
    if !failing.is_empty() {
        conditions.push(make("Reading", &failing, ("", ""), ("Failing", "")));
    }
    conditions
}
