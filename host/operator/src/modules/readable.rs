//! What a module may and can read, as conditions of its Module.

use std::collections::BTreeMap;
use std::sync::Arc;

use innkeeper_cluster::KindState;
use innkeeper_cluster::error::KIND_MISMATCH;
use innkeeper_contract::{Condition, ConditionStatus, Kind};

/// The condition of what the ServiceAccount may read.
pub(super) const AUTHORIZED_CONDITION: &str = "Authorized";

/// The condition of what the API server serves.
const KINDS_AVAILABLE_CONDITION: &str = "KindsAvailable";

/// A condition for each obstacle to reading; it names verb, resource and namespace.
pub(super) fn conditions(states: &BTreeMap<Arc<Kind>, KindState>) -> Vec<Condition> {
    let (mut denied, mut unserved, mut failing) = (Vec::new(), Vec::new(), Vec::new());
    let mut mismatched = Vec::new();
    let mut is_syncing = false;
    for (kind, state) in states {
        match state {
            KindState::Forbidden(denial) if !kind.is_namespaced() => denied.push(format!(
                "{denial}: {} is cluster-scoped, so it takes a ClusterRole",
                kind.kind
            )),
            KindState::Forbidden(denial) => denied.push(denial.to_string()),
            KindState::NotServed => unserved.push(kind.to_string()),
            KindState::Mismatched(mismatch) => mismatched.push(mismatch.to_string()),
            KindState::Failing(why) => failing.push(format!("{kind}: {why}")),
            KindState::Syncing => is_syncing = true,
            KindState::Synced => {}
        }
    }
    let good = if is_syncing { ConditionStatus::Unknown } else { ConditionStatus::True };
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
    let mut authorized = make(
        AUTHORIZED_CONDITION,
        &denied,
        ("Granted", "The ServiceAccount may read all declared kinds."),
        ("Forbidden", ""),
    );
    // As long as the API server does not answer, the rights are unknown.
    if denied.is_empty() && !failing.is_empty() {
        authorized.status = ConditionStatus::Unknown;
        "Failing".clone_into(&mut authorized.reason);
        authorized.message = failing.join("; ");
    }
    let available = if mismatched.is_empty() {
        make(
            KINDS_AVAILABLE_CONDITION,
            &unserved,
            ("AllKindsServed", "The cluster serves all declared kinds."),
            ("NotServed", "The cluster does not serve "),
        )
    } else {
        mismatched.extend(unserved.iter().map(|kind| format!("{kind} is not served")));
        make(KINDS_AVAILABLE_CONDITION, &mismatched, ("", ""), (KIND_MISMATCH, ""))
    };
    let mut conditions = vec![authorized, available];
    if !failing.is_empty() {
        conditions.push(make("Reading", &failing, ("", ""), ("Failing", "")));
    }
    conditions
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_follow_from_the_worst_state_of_the_kinds() {
        let failing = || KindState::Failing("timeout".to_owned());
        for (states, expected) in [
            (
                vec![KindState::Synced],
                vec!["Authorized=True Granted", "KindsAvailable=True AllKindsServed"],
            ),
            (
                vec![KindState::Synced, KindState::Syncing],
                vec!["Authorized=Unknown Granted", "KindsAvailable=Unknown AllKindsServed"],
            ),
            (
                vec![KindState::Synced, KindState::NotServed],
                vec!["Authorized=True Granted", "KindsAvailable=False NotServed"],
            ),
            (
                vec![failing(), KindState::Synced],
                vec![
                    "Authorized=Unknown Failing",
                    "KindsAvailable=True AllKindsServed",
                    "Reading=False Failing",
                ],
            ),
        ] {
            let kind = |index| Arc::new(Kind::namespaced("v1", format!("Kind{index}"), "kinds"));
            let states = states.into_iter().enumerate().map(|(index, state)| (kind(index), state));
            let shown: Vec<_> = conditions(&states.collect())
                .iter()
                .map(|one| format!("{}={} {}", one.type_, one.status.as_str(), one.reason))
                .collect();
            assert_eq!(shown, expected);
        }
    }
}
