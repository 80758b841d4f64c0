//! Decides whether what happened in a scenario breaks a law.

use std::collections::BTreeMap;
use std::rc::Rc;

use bytes::Bytes;
use innkeeper_faults::{FaultPlan, Recorded, Verb};
use serde_json::Value;

use crate::cluster_state::{ClusterState, Difference};
use crate::law::{Case, Expectation, Judgement, Violation};
use crate::outcome::Outcome;
use crate::player::{PlayError, Player};
use crate::scenario::{Scenario, Step, controllers, name_of};

/// The reasons of calls that gave no usable answer. A failure that a guest reports is an answer.
const BROKEN_CALLS: [&str; 16] = [
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
    "ValueSourceNotGranted",
];

/// The most objects that a violation names.
const OBJECTS_MAX: usize = 10;

/// Plays cases and decides about them. Keeps what happened in scenarios that are compared with.
pub(crate) struct Oracle<'a> {
    player: &'a Player,
    references: BTreeMap<String, Rc<Outcome>>,
    /// Values of Secrets, as texts of JSON have them.
    secrets: Vec<String>,
    pub(crate) played: u64,
}

impl<'a> Oracle<'a> {
    pub(crate) fn new(player: &'a Player) -> Self {
        let escaped = |value: String| {
            let text = serde_json::to_string(&value).unwrap_or_default();
            text.trim_matches('"').to_owned()
        };
        let secrets = player.subject().secret_values().into_iter().map(escaped).collect();
        Self { player, references: BTreeMap::new(), secrets, played: 0 }
    }

    /// What happens in a scenario; played once.
    ///
    /// # Errors
    /// If the scenario cannot be played.
    pub(crate) fn reference(&mut self, scenario: &Scenario) -> Result<Rc<Outcome>, PlayError> {
        let key = serde_json::to_string(scenario).unwrap_or_default();
        if let Some(known) = self.references.get(&key) {
            return Ok(Rc::clone(known));
        }
        let mut outcome = self.play(scenario)?;
        // There can be thousands.
        outcome.requests.iter_mut().for_each(|request| request.body = Bytes::new());
        let outcome = Rc::new(outcome);
        self.references.insert(key, Rc::clone(&outcome));
        Ok(outcome)
    }

    fn play(&mut self, scenario: &Scenario) -> Result<Outcome, PlayError> {
        self.played += 1;
        self.player.play(scenario)
    }

    /// Plays a case and decides about it.
    ///
    /// # Errors
    /// If a scenario cannot be played.
    pub(crate) fn judge(&mut self, case: &Case) -> Result<Judgement, PlayError> {
        let scenario = &case.scenario;
        let outcome = match self.play(scenario) {
            // Without faults the Module became active before, with the lives of the samples.
            Err(PlayError::Inactive(reason)) if !scenario.faults.faults.is_empty() => {
                let what = "the host does not become active again after a crash";
                return Ok(Judgement::Broken(Violation::new(what, vec![reason])));
            }
            outcome => outcome?,
        };
        let leaks = || leaked(&outcome, &self.secrets);
        if let Some(violation) = always(&outcome).or_else(leaks) {
            return Ok(Judgement::Broken(violation));
        }
        // Of many objects the API server may refuse some.
        let refused_max = match case.expectation {
            Expectation::AllAccepted => scenario.steps.len().saturating_sub(1),
            _ => 0,
        };
        if outcome.refused_steps.len() > refused_max {
            return Ok(Judgement::NotJudged);
        }
        let violation = match case.expectation {
            Expectation::Nothing => None,
            Expectation::AllAccepted => refused(&outcome),
            Expectation::AsWithoutFaults => {
                let reference = self.reference(&scenario.with_faults(FaultPlan::default()))?;
                let mut states = outcome.states.iter().zip(&reference.states);
                // What Kubernetes makes of the objects meanwhile depends on the time, such as the
                // Pods of a CronJob.
                let differ = |(end, expected): (&ClusterState, &ClusterState)| {
                    violation(&end.differences_in_applied_fields(expected), "without the faults")
                };
                more_deletions(&outcome, &reference).or_else(|| states.find_map(differ))
            }
            Expectation::AsWithAnotherSeed => {
                let other =
                    Scenario { seed: scenario.seed.wrapping_add(1_000), ..scenario.clone() };
                let reference = self.reference(&other)?;
                compare(outcome.end(), reference.end(), "with other uids")
            }
            Expectation::AsWithTheLastSpecAlone => {
                let reference = self.reference(&last_specs(scenario))?;
                // Not an end that the last spec alone decides.
                if reference.partial_answers > 0 || !reference.refused_steps.is_empty() {
                    return Ok(Judgement::NotJudged);
                }
                self.compare_paths(outcome.end(), reference.end())
            }
            Expectation::AsBeforeTheOtherClient => {
                let reference = self.reference(&before_other_client(scenario))?;
                compare(outcome.end(), reference.end(), "before the other client's change")
            }
            Expectation::ControllersStay => controllers_changed(&outcome),
            Expectation::OthersAsBefore => others_changed(&outcome),
            Expectation::NoWriteAfterRestart => {
                let steps = scenario.steps.iter();
                let steps = steps.filter(|step| **step != Step::Restart).cloned().collect();
                let reference = self.reference(&Scenario::new(scenario.seed, steps))?;
                let is_settled = scenario
                    .steps
                    .windows(2)
                    .any(|pair| matches!(pair, [Step::Settle, Step::Restart]));
                writes_after_restart(&outcome, &reference).filter(|_| is_settled)
            }
            Expectation::NothingOwned => owned_objects(outcome.end(), self.player),
        };
        Ok(violation.into())
    }
}

impl Oracle<'_> {
    /// Compares the ends of two ways to the same spec. They may differ where no guest can make them
    /// equal: in PersistentVolumeClaims, whose specs never change, and if the guest reports by a
    /// condition of its own that it cannot follow the spec.
    fn compare_paths(&self, end: &ClusterState, expected: &ClusterState) -> Option<Violation> {
        let subject = self.player.subject();
        let problems = end.reported_problems(subject);
        if !problems.is_subset(&expected.reported_problems(subject)) {
            return None;
        }
        let mut differences = end.differences_in_applied_fields(expected);
        differences.retain(|one| !one.object.starts_with("v1 PersistentVolumeClaim "));
        violation(&differences, "with the last spec alone")
    }
}

/// What holds at the end of each scenario.
fn always(outcome: &Outcome) -> Option<Violation> {
    let broken: Vec<String> = outcome
        .guest_failures
        .iter()
        .filter(|(reason, _)| BROKEN_CALLS.contains(&reason.as_str()))
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
fn refused(outcome: &Outcome) -> Option<Violation> {
    let is_invalid = |one: &&Recorded| matches!(one.code, Some(400 | 422));
    let line = |one: &Recorded| {
        let body = String::from_utf8_lossy(&one.body);
        format!("{}: {body}", one.info)
    };
    let mut found: Vec<String> = outcome.writes().filter(is_invalid).map(line).collect();
    found.dedup();
    found.truncate(OBJECTS_MAX);
    if found.is_empty() {
        return None;
    }
    Some(Violation::new("the API server refuses what the guest desires", found))
}

/// Requests for other objects than Secrets that have a value of a Secret.
fn leaked(outcome: &Outcome, secrets: &[String]) -> Option<Violation> {
    let has_secret = |one: &&Recorded| {
        let body = String::from_utf8_lossy(&one.body);
        one.info.resource != "secrets" && secrets.iter().any(|value| body.contains(value.as_str()))
    };
    let found: Vec<String> =
        outcome.requests.iter().filter(has_secret).map(|one| one.info.to_string()).collect();
    if found.is_empty() {
        return None;
    }
    Some(Violation::new("a value of a Secret is in other requests of the host", found))
}

fn compare(end: &ClusterState, expected: &ClusterState, with: &str) -> Option<Violation> {
    violation(&end.differences_from(expected), with)
}

fn violation(differences: &[Difference], with: &str) -> Option<Violation> {
    if differences.is_empty() {
        return None;
    }
    let lines = differences.iter().take(OBJECTS_MAX);
    let lines = lines.map(|one| format!("{}: {}", one.object, one.what)).collect();
    Some(Violation::new(format!("the result differs from the one {with}"), lines))
}

/// The objects that the host deleted, each with how often.
fn deletions(outcome: &Outcome) -> BTreeMap<String, usize> {
    let deletes = |one: &&Recorded| {
        matches!(one.info.verb, Verb::Delete | Verb::DeleteCollection)
            && one.code.is_some_and(|code| code < 300)
    };
    let mut counts = BTreeMap::new();
    for request in outcome.writes().filter(deletes) {
        *counts.entry(request.info.to_string()).or_default() += 1;
    }
    counts
}

fn more_deletions(outcome: &Outcome, reference: &Outcome) -> Option<Violation> {
    let expected = deletions(reference);
    let is_more = |(request, count): &(String, usize)| {
        expected.get(request).is_none_or(|expected| count > expected)
    };
    let more: Vec<String> =
        deletions(outcome).into_iter().filter(is_more).map(|(request, _)| request).collect();
    if more.is_empty() {
        return None;
    }
    Some(Violation::new("the host deletes objects that it keeps without the faults", more))
}

/// The writes after a restart that the host does not make at that time without one.
fn writes_after_restart(outcome: &Outcome, reference: &Outcome) -> Option<Violation> {
    let after = &outcome.writes_since_restart;
    let before = outcome.writes().count() - after.len();
    let mut expected: Vec<String> =
        reference.writes().skip(before).map(|one| one.info.to_string()).collect();
    let mut more = Vec::new();
    for (info, body) in after {
        match expected.iter().position(|one| *one == info.to_string()) {
            Some(index) => drop(expected.remove(index)),
            None => more.push(format!("{info}: {body}")),
        }
    }
    if more.is_empty() {
        return None;
    }
    more.truncate(OBJECTS_MAX);
    Some(Violation::new("the host writes after a restart, although nothing has changed", more))
}

/// The steps of a scenario that apply the last object of each name.
fn last_specs(scenario: &Scenario) -> Scenario {
    let mut steps: Vec<Step> = Vec::new();
    for step in &scenario.steps {
        let (Step::Apply(object) | Step::Replace(object)) = step else { continue };
        let name = name_of(object);
        steps.retain(|step| match step {
            Step::Apply(other) | Step::Replace(other) => name_of(other) != name,
            _ => true,
        });
        steps.push(Step::Replace(object.clone()));
    }
    Scenario::new(scenario.seed, steps)
}

/// The steps of a scenario before the first change by another client.
fn before_other_client(scenario: &Scenario) -> Scenario {
    let is_other = |step: &&Step| matches!(step, Step::Merge(_) | Step::Delete(_));
    let steps = scenario.steps.iter().take_while(|step| !is_other(step)).cloned().collect();
    Scenario::new(scenario.seed, steps)
}

/// The objects of the first state that have another controller at the end.
fn controllers_changed(outcome: &Outcome) -> Option<Violation> {
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
fn others_changed(outcome: &Outcome) -> Option<Violation> {
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
fn owned_objects(end: &ClusterState, player: &Player) -> Option<Violation> {
    let subject = player.subject();
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
