//! What a law finds in what happened: one function for each thing that may not happen.

use std::collections::BTreeMap;

use innkeeper_faults::{RequestInfo, RequestRecord};
use serde_json::Value;

use crate::cluster_state::{ClusterState, Difference};
use crate::law::Violation;
use crate::outcome::Outcome;
use crate::scenario::controllers;
use crate::subject::Subject;

/// The reasons of calls that gave no usable answer. A failure that a guest reports is an answer.
const BROKEN_CALLS: [&str; 17] = [
    "GuestTrapped",
    "GuestTimeout",
    "GuestOutOfMemory",
    "GuestTableTooLarge",
    "OutputTooLarge",
    "OutputUnreadable",
    "TooManyObjects",
    "TooManyReads",
    "ReadTooLarge",
    "ReadsTooLarge",
    "ObservedTooLarge",
    "UndeclaredKind",
    "CrossNamespace",
    "MalformedObject",
    "MalformedStatus",
    "MalformedReadFields",
    "ValueSourceNotGranted",
];

/// The most objects that a violation names.
const OBJECTS_MAX: usize = 10;

/// Whether calls with this reason of a failure gave no usable answer.
pub(crate) fn is_broken_call(reason: &str) -> bool {
    BROKEN_CALLS.contains(&reason)
}

/// Finds what breaks a rule that holds for each scenario, whatever the law.
pub(crate) fn broken_invariant(outcome: &Outcome) -> Option<Violation> {
    let broken: Vec<String> = outcome
        .guest_failures
        .iter()
        .filter(|(reason, _)| is_broken_call(reason))
        .map(|(reason, count)| format!("{reason}: {count}"))
        .collect();
    if !broken.is_empty() {
        return Some(Violation::new("calls of the guest gave no usable answer", broken));
    }
    if !outcome.is_quiet {
        let writes: Vec<String> = outcome.writes().map(|one| one.info.to_string()).collect();
        let last = writes.iter().rev().take(OBJECTS_MAX).rev().cloned().collect();
        return Some(Violation::new("the writes do not end; the last ones are", last));
    }
    if !outcome.writes_after_lease_loss.is_empty() {
        let writes = outcome.writes_after_lease_loss.iter().take(OBJECTS_MAX).cloned().collect();
        return Some(Violation::new("a host writes after another one took its Lease", writes));
    }
    if outcome.panics > 0 {
        let panics = vec![format!("{} panics; standard error has the messages", outcome.panics)];
        return Some(Violation::new("the host, or the simulated cluster, panics", panics));
    }
    if !outcome.is_ended_well {
        return Some(Violation::new("the host does not stop", Vec::new()));
    }
    let shared: Vec<String> = outcome
        .states
        .iter()
        .flat_map(ClusterState::objects)
        .filter(|(_, object)| controllers(object).count() > 1)
        .map(|(name, _)| name.to_owned())
        .collect();
    if shared.is_empty() {
        return None;
    }
    Some(Violation::new("objects have two controllers", shared))
}

/// Writes that the API server refused as invalid.
pub(crate) fn refused(outcome: &Outcome) -> Option<Violation> {
    let is_invalid = |one: &&RequestRecord| matches!(one.code, Some(400 | 422));
    let line = |one: &RequestRecord| {
        let body = String::from_utf8_lossy(&one.body);
        format!("{}: {}", one.info, shown_body(&one.info, &body))
    };
    let mut found: Vec<String> = outcome.writes().filter(is_invalid).map(line).collect();
    found.dedup();
    found.truncate(OBJECTS_MAX);
    if found.is_empty() {
        return None;
    }
    Some(Violation::new("the API server refuses what the guest desires", found))
}

/// The body of a request as people may see it: not that of a Secret.
pub(crate) fn shown_body<'b>(info: &RequestInfo, body: &'b str) -> &'b str {
    let is_secret = info.group.is_empty() && info.resource == "secrets";
    if is_secret { "(of a Secret)" } else { body }
}

/// Requests for other objects than Secrets that have a value of a Secret.
pub(crate) fn leaked(outcome: &Outcome, secrets: &[String]) -> Option<Violation> {
    let has_secret = |one: &&RequestRecord| {
        let body = String::from_utf8_lossy(&one.body);
        one.info.resource != "secrets" && secrets.iter().any(|value| body.contains(value.as_str()))
    };
    let found: Vec<String> =
        outcome.requests().filter(has_secret).map(|one| one.info.to_string()).collect();
    if found.is_empty() {
        return None;
    }
    Some(Violation::new("a value of a Secret is in other requests of the host", found))
}

pub(crate) fn compare(
    end: &ClusterState,
    expected: &ClusterState,
    with: &str,
) -> Option<Violation> {
    violation(&end.differences_from(expected), with)
}

pub(crate) fn violation(differences: &[Difference], with: &str) -> Option<Violation> {
    if differences.is_empty() {
        return None;
    }
    let lines = differences.iter().take(OBJECTS_MAX);
    let lines = lines.map(|one| format!("{}: {}", one.object, one.what)).collect();
    Some(Violation::new(format!("the result differs from the one {with}"), lines))
}

/// The writes after a restart that the host does not make at that time without one.
pub(crate) fn writes_after_restart(outcome: &Outcome, reference: &Outcome) -> Option<Violation> {
    let after = &outcome.writes_since_restart;
    let before = outcome.writes().count() - after.len();
    let mut expected: Vec<String> =
        reference.writes().skip(before).map(|one| one.info.to_string()).collect();
    let mut more = Vec::new();
    for (info, body) in after {
        match expected.iter().position(|one| *one == info.to_string()) {
            Some(index) => drop(expected.remove(index)),
            None => more.push(format!("{info}: {}", shown_body(info, body))),
        }
    }
    if more.is_empty() {
        return None;
    }
    more.truncate(OBJECTS_MAX);
    Some(Violation::new("the host writes after a restart, although nothing has changed", more))
}

/// The objects of the first state that have another controller at the end.
pub(crate) fn controllers_changed(outcome: &Outcome) -> Option<Violation> {
    let controller = |object: &Value| {
        controllers(object).next().map(|owner| format!("{} {}", owner["kind"], owner["name"]))
    };
    let end: BTreeMap<&str, &Value> = outcome.end().objects().collect();
    let mut changed = Vec::new();
    for (name, object) in outcome.states[0].objects() {
        let (Some(before), Some(after)) = (controller(object), end.get(name)) else { continue };
        let after = controller(after).unwrap_or_default();
        if before != after {
            changed.push(format!("{name}: {after}, not {before}"));
        }
    }
    if changed.is_empty() {
        return None;
    }
    Some(Violation::new("objects have another controller than before", changed))
}

/// The objects of the first state that are others at the end.
pub(crate) fn others_changed(outcome: &Outcome) -> Option<Violation> {
    let differences = outcome.end().differences_from(&outcome.states[0]);
    let others = differences.iter().filter(|one| outcome.states[0].has(&one.object));
    let lines: Vec<String> =
        others.map(|one| format!("{}: {}", one.object, one.what)).take(OBJECTS_MAX).collect();
    if lines.is_empty() {
        return None;
    }
    Some(Violation::new("the host changes objects of another client", lines))
}

/// The primaries at the end, and the objects that one owns.
pub(crate) fn owned_objects(end: &ClusterState, subject: &Subject) -> Option<Violation> {
    let is_owned = |object: &Value| controllers(object).next().is_some();
    let left: Vec<String> = end
        .objects()
        .filter(|(_, object)| subject.is_primary(object) || is_owned(object))
        .map(|(name, _)| name.to_owned())
        .collect();
    if left.is_empty() {
        return None;
    }
    Some(Violation::new("objects are left after the deletion of the primaries", left))
}
