//! How often the host makes, deletes and writes objects, compared with a scenario without faults.

use std::collections::BTreeMap;

use innkeeper_faults::{RequestRecord, Verb};

use crate::law::Violation;
use crate::outcome::Outcome;

/// How many times as many accepted writes a scenario with faults may have.
const WRITES_FACTOR: usize = 2;

/// How many accepted writes more it may have: faults in a row make the host report each of them.
const WRITES_MORE: usize = 20;

/// How many times more the host may make an object after the deletion of its primary that a late
/// cache does not show. The host asks for the primary before it makes an object again, but one that
/// has started since it applied the object does not know that somebody deleted it.
const CREATIONS_LATE: usize = 1;

/// What the host does more often than without the faults: deletions, creations, writes as a whole.
/// `sees_deletion_late` is for a scenario in which a user deletes a primary while a cache is late:
/// see [`CREATIONS_LATE`].
pub(crate) fn more_requests(
    outcome: &Outcome,
    reference: &Outcome,
    sees_deletion_late: bool,
) -> Option<Violation> {
    let more = |counted: fn(&RequestRecord) -> bool, allowed: usize| {
        let expected = counts(reference, counted);
        let is_more = |(request, count): &(String, usize)| {
            *count > expected.get(request).copied().unwrap_or_default() + allowed
        };
        let requests = counts(outcome, counted).into_iter().filter(is_more);
        requests.map(|(request, _)| request).collect::<Vec<_>>()
    };
    let deleted = more(is_deletion, 0);
    if !deleted.is_empty() {
        let what = "the host deletes objects that it keeps without the faults";
        return Some(Violation::new(what, deleted));
    }
    let created = more(is_creation, if sees_deletion_late { CREATIONS_LATE } else { 0 });
    if !created.is_empty() {
        let what = "the host makes objects more often than without the faults";
        return Some(Violation::new(what, created));
    }
    let writes = |outcome: &Outcome| outcome.writes().filter(|one| is_accepted(one)).count();
    let (count, expected) = (writes(outcome), writes(reference));
    if count <= expected * WRITES_FACTOR + WRITES_MORE {
        return None;
    }
    let what = "the host writes many times more than without the faults";
    Some(Violation::new(what, vec![format!("{count} writes, and {expected} without the faults")]))
}

fn is_accepted(request: &RequestRecord) -> bool {
    request.code.is_some_and(|code| code < 300)
}

fn is_deletion(request: &RequestRecord) -> bool {
    matches!(request.info.verb, Verb::Delete | Verb::DeleteCollection) && is_accepted(request)
}

fn is_creation(request: &RequestRecord) -> bool {
    matches!(request.info.verb, Verb::Create | Verb::Apply) && request.code == Some(201)
}

/// The requests of a sort, each with how often the host sent it.
fn counts(outcome: &Outcome, is_counted: fn(&RequestRecord) -> bool) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for request in outcome.writes().filter(|one| is_counted(one)) {
        *counts.entry(request.info.to_string()).or_default() += 1;
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::tests::{answered_write, outcome};

    fn write(verb: Verb, name: &str, code: u16) -> RequestRecord {
        answered_write(verb, "configmaps", name, code)
    }

    fn found(requests: Vec<RequestRecord>, is_late: bool) -> Option<String> {
        let reference = outcome(vec![write(Verb::Apply, "a", 201)]);
        more_requests(&outcome(requests), &reference, is_late).map(|violation| violation.what)
    }

    #[test]
    fn more_deletions_creations_and_writes_than_without_faults_are_found() {
        let (create, delete) = (write(Verb::Apply, "a", 201), write(Verb::Delete, "a", 200));
        assert_eq!(found(vec![create.clone()], false), None);
        // A refused one changes nothing.
        assert_eq!(found(vec![create.clone(), write(Verb::Delete, "a", 403)], false), None);
        assert_eq!(
            found(vec![create.clone(), delete], true).unwrap_or_default(),
            "the host deletes objects that it keeps without the faults"
        );
        let twice = vec![create.clone(), create.clone()];
        assert_eq!(
            found(twice.clone(), false).unwrap_or_default(),
            "the host makes objects more often than without the faults"
        );
        assert_eq!(found(twice, true), None);
        let often = vec![create; CREATIONS_LATE + 2];
        assert_eq!(
            found(often, true).unwrap_or_default(),
            "the host makes objects more often than without the faults"
        );
        let change = write(Verb::Apply, "a", 200);
        let most = WRITES_FACTOR + WRITES_MORE;
        assert_eq!(found(vec![change.clone(); most], false), None);
        assert_eq!(
            found(vec![change; most + 1], false).unwrap_or_default(),
            "the host writes many times more than without the faults"
        );
    }
}
