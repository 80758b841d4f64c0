//! Decides whether what happened in a scenario breaks a law.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use innkeeper_faults::{Fault, FaultPlan, LogEntry, RequestRecord};

use crate::cluster_state::ClusterState;
use crate::copied_uids::copied_uids;
use crate::explore::Signature;
use crate::facts::{contradictions, has_unready_workload, lost_data};
use crate::findings::{
    broken_invariant, compare, controllers_changed, leaked, others_changed, owned_objects, refused,
    violation, writes_after_restart,
};
use crate::incident::Incident;
use crate::law::{Case, Expectation, Judgement, Violation};
use crate::outcome::Outcome;
use crate::request_counts::more_requests;
use crate::run_error::RunError;
use crate::runner::ScenarioRunner;
use crate::scenario::{Scenario, Step, name_of};
use crate::subject::Subject;

/// Runs cases and decides about them. Keeps what happened in scenarios that are compared with.
pub(crate) struct Oracle<'a> {
    runner: &'a ScenarioRunner,
    references: BTreeMap<String, Rc<Outcome>>,
    /// Values of Secrets, as texts of JSON have them.
    secrets: Vec<String>,
    pub(crate) scenarios_run: u64,
    /// The faults of the last judged case that affected no request, by their place.
    pub(crate) unused_faults: Vec<usize>,
    /// The virtual time of all scenarios.
    pub(crate) simulated: Duration,
    /// What the last judged case showed.
    signature: Signature,
}

/// The values of the Secrets among the samples, as bodies of requests have them.
pub(crate) fn secret_texts(subject: &Subject) -> Vec<String> {
    let escaped = |value: String| {
        let text = serde_json::to_string(&value).unwrap_or_default();
        text.trim_matches('"').to_owned()
    };
    subject.secret_values().into_iter().map(escaped).collect()
}

impl<'a> Oracle<'a> {
    pub(crate) fn new(runner: &'a ScenarioRunner) -> Self {
        let secrets = secret_texts(runner.subject());
        Self {
            runner,
            references: BTreeMap::new(),
            secrets,
            scenarios_run: 0,
            unused_faults: Vec::new(),
            simulated: Duration::ZERO,
            signature: Signature::default(),
        }
    }

    /// What happens in a scenario; run once.
    ///
    /// # Errors
    /// If the scenario cannot be run.
    pub(crate) fn reference(&mut self, scenario: &Scenario) -> Result<Rc<Outcome>, RunError> {
        let key = serde_json::to_string(scenario).unwrap_or_default();
        if let Some(known) = self.references.get(&key) {
            return Ok(Rc::clone(known));
        }
        let mut outcome = self.run(scenario)?;
        // There can be thousands.
        for entry in &mut outcome.log {
            if let LogEntry::Request(request) = entry {
                request.body = Bytes::new();
            }
        }
        let outcome = Rc::new(outcome);
        self.references.insert(key, Rc::clone(&outcome));
        Ok(outcome)
    }

    fn run(&mut self, scenario: &Scenario) -> Result<Outcome, RunError> {
        self.scenarios_run += 1;
        let outcome = self.runner.run(scenario)?;
        self.simulated += outcome.simulated;
        Ok(outcome)
    }

    /// What the last judged case showed.
    pub(crate) fn take_signature(&mut self) -> Signature {
        std::mem::take(&mut self.signature)
    }

    /// Runs a case and decides about it.
    ///
    /// # Errors
    /// If a scenario cannot be run.
    pub(crate) fn judge(&mut self, case: &Case) -> Result<Judgement, RunError> {
        let scenario = &case.scenario;
        let outcome = match self.run(scenario) {
            // Undisturbed, the Module became active before, in the baselines.
            Err(RunError::Inactive(reason)) if scenario.is_disturbed() => {
                let what = "the host does not become active again";
                return Ok(Judgement::Broken(Violation::new(what, vec![reason])));
            }
            outcome => outcome?,
        };
        self.signature = Signature::of(scenario, &outcome);
        self.unused_faults.clone_from(&outcome.unused_faults);
        let leaks = || leaked(&outcome, &self.secrets);
        let untrue = || self.untrue(scenario, &outcome);
        if let Some(violation) = broken_invariant(&outcome).or_else(leaks).or_else(untrue) {
            return Ok(Judgement::Broken(violation));
        }
        if is_untried(scenario, &outcome) {
            return Ok(Judgement::Inconclusive);
        }
        // Of many objects the API server may refuse some.
        let refused_max = match case.expectation {
            Expectation::AllAccepted => scenario.steps.len().saturating_sub(1),
            _ => 0,
        };
        if outcome.refused_steps.len() > refused_max {
            return Ok(Judgement::Inconclusive);
        }
        self.compare_as_expected(case, &outcome)
    }

    /// Compares what came of a case with what it expects.
    fn compare_as_expected(
        &mut self,
        case: &Case,
        outcome: &Outcome,
    ) -> Result<Judgement, RunError> {
        let scenario = &case.scenario;
        let violation = match case.expectation {
            Expectation::Nothing => None,
            Expectation::AllAccepted => refused(outcome),
            Expectation::AsWithoutFaults => self.compare_without_faults(scenario, outcome)?,
            Expectation::AsWithAnotherSeed => self.compare_seeds(scenario, outcome)?,
            // It would be compared with itself.
            Expectation::AsWithEveryField if scenario.wakes_for_every_field => {
                return Ok(Judgement::Inconclusive);
            }
            Expectation::AsWithEveryField => {
                let other = Scenario { wakes_for_every_field: true, ..scenario.clone() };
                let reference = self.reference(&other)?;
                let what = "if the guest also runs for changes of fields that it does not report";
                compare(outcome.end(), reference.end(), what)
            }
            Expectation::AsWithTheLastSpecAlone => {
                return self.compare_with_the_last_spec(scenario, outcome);
            }
            Expectation::FollowsOrReports => return self.compare_or_report(scenario, outcome),
            Expectation::AsBeforeTheOtherClient => {
                let alone = without_other_client(scenario, self.runner.subject());
                let reference = self.reference(&alone)?;
                let differences = outcome.end().differences_in_applied_fields(reference.end());
                violation(&differences, "without the other client's change")
            }
            Expectation::AsAtTheBackup => return self.compare_with_the_backup(scenario, outcome),
            Expectation::ControllersStay => self.compare_controllers(scenario, outcome)?,
            Expectation::OthersAsBefore => others_changed(outcome),
            Expectation::NoWriteAfterRestart => return self.compare_restart(scenario, outcome),
            Expectation::NothingOwned => owned_objects(outcome.end(), self.runner.subject()),
        };
        Ok(violation.into())
    }

    fn compare_without_faults(
        &mut self,
        scenario: &Scenario,
        outcome: &Outcome,
    ) -> Result<Option<Violation>, RunError> {
        let reference = self.reference(&scenario.undisturbed())?;
        let mut states = outcome.states.iter().zip(&reference.states);
        // What Kubernetes makes of the objects meanwhile depends on the time, such as the Pods of a
        // CronJob.
        let differ = |(end, expected): (&ClusterState, &ClusterState)| {
            violation(&end.differences_in_applied_fields(expected), "without the faults")
        };
        let more = more_requests(outcome, &reference, sees_deletion_late(scenario));
        Ok(more.or_else(|| states.find_map(differ)))
    }

    fn compare_seeds(
        &mut self,
        scenario: &Scenario,
        outcome: &Outcome,
    ) -> Result<Option<Violation>, RunError> {
        let other = Scenario { seed: scenario.seed.wrapping_add(1_000), ..scenario.clone() };
        let reference = self.reference(&other)?;
        Ok(compare(outcome.end(), reference.end(), "with other uids").or_else(|| {
            let copied = copied_uids(outcome.end(), self.runner.subject());
            let what = "objects depend on the uid of their primary, which a restore changes";
            (!copied.is_empty()).then(|| Violation::new(what, copied))
        }))
    }

    fn compare_with_the_last_spec(
        &mut self,
        scenario: &Scenario,
        outcome: &Outcome,
    ) -> Result<Judgement, RunError> {
        let reference = self.reference(&last_specs(scenario))?;
        // Not an end that the last spec alone decides.
        if reference.partial_answers > 0 || !reference.refused_steps.is_empty() {
            return Ok(Judgement::Inconclusive);
        }
        Ok(self.compare_paths(outcome, &reference).into())
    }

    fn compare_or_report(
        &mut self,
        scenario: &Scenario,
        outcome: &Outcome,
    ) -> Result<Judgement, RunError> {
        let is_refused = |one: &RequestRecord| matches!(one.code, Some(400 | 403 | 422));
        let reference = self.reference(&last_specs(scenario))?;
        if !outcome.writes().any(is_refused)
            || reference.partial_answers > 0
            || !reference.refused_steps.is_empty()
        {
            return Ok(Judgement::Inconclusive);
        }
        let reports = outcome.end().has_false_condition(self.runner.subject());
        Ok(self.compare_paths(outcome, &reference).filter(|_| !reports).into())
    }

    fn compare_with_the_backup(
        &mut self,
        scenario: &Scenario,
        outcome: &Outcome,
    ) -> Result<Judgement, RunError> {
        let is_restore = |one: &(Incident, u64)| matches!(one.0, Incident::Restore { .. });
        if !outcome.incidents.iter().any(is_restore) {
            return Ok(Judgement::Inconclusive);
        }
        let reference = self.reference(&before_the_backup(scenario))?;
        let differences = outcome.end().differences_in_applied_fields(reference.end());
        Ok(violation(&differences, "at the time of the backup").into())
    }

    fn compare_controllers(
        &mut self,
        scenario: &Scenario,
        outcome: &Outcome,
    ) -> Result<Option<Violation>, RunError> {
        let last = scenario.steps.iter().rev().find(|step| matches!(step, Step::Apply(_)));
        let alone = Scenario::new(scenario.seed, last.into_iter().cloned().collect());
        let reference = self.reference(&alone)?;
        Ok(controllers_changed(outcome).or_else(|| {
            let end = outcome.end();
            // The status can depend on the time, as that of a guest with a CronJob does.
            let subject = self.runner.subject();
            let mut differences = end.differences_but_in_status(reference.end(), subject);
            differences.retain(|one| reference.end().has(&one.object));
            // The host reports that an object belongs to another primary.
            let reports = end.has_false_condition(subject);
            violation(&differences, "without the other primaries").filter(|_| !reports)
        }))
    }

    fn compare_restart(
        &mut self,
        scenario: &Scenario,
        outcome: &Outcome,
    ) -> Result<Judgement, RunError> {
        let steps = scenario.steps.iter();
        let steps = steps.filter(|step| **step != Step::Restart).cloned().collect();
        let reference = self.reference(&Scenario::new(scenario.seed, steps))?;
        let mut pairs = scenario.steps.windows(2);
        if !pairs.any(|pair| matches!(pair, [Step::Settle, Step::Restart])) {
            return Ok(Judgement::Inconclusive);
        }
        Ok(writes_after_restart(outcome, &reference).into())
    }
}

impl Oracle<'_> {
    /// What the primaries report and the cluster does not show, and what data was lost.
    fn untrue(&self, scenario: &Scenario, outcome: &Outcome) -> Option<Violation> {
        let lost = lost_data(scenario, outcome);
        if !lost.is_empty() {
            return Some(Violation::new("objects with data are deleted and made again", lost));
        }
        let states = outcome.states.iter();
        let untrue: Vec<String> =
            states.flat_map(|state| contradictions(state, self.runner.subject())).collect();
        if untrue.is_empty() {
            return None;
        }
        Some(Violation::new("primaries report what is not so", untrue))
    }

    /// Compares the ends of two ways to the same spec. They may differ where no guest can make them
    /// equal: in PersistentVolumeClaims, whose specs never change; if the guest reports by a
    /// condition of its own that it cannot follow the spec; and in the status of primaries if the
    /// API server refused the last write of a claim, which the host reports.
    fn compare_paths(&self, outcome: &Outcome, reference: &Outcome) -> Option<Violation> {
        let subject = self.runner.subject();
        let (end, expected) = (outcome.end(), reference.end());
        let problems = end.reported_problems(subject);
        if !problems.is_subset(&expected.reported_problems(subject)) {
            return None;
        }
        // So does a rollout that stops in the middle: what it has made so far depends on the way.
        let is_special = |one: &Outcome| has_refused_claim(one) || has_unready_workload(one.end());
        let mut differences = if is_special(outcome) || is_special(reference) {
            end.differences_but_in_status(expected, subject)
        } else {
            end.differences_in_applied_fields(expected)
        };
        differences.retain(|one| !one.object.starts_with("v1 PersistentVolumeClaim "));
        violation(&differences, "with the last spec alone")
    }
}

/// Whether the API server refused the last write of a PersistentVolumeClaim, as it does if the
/// claim cannot grow.
fn has_refused_claim(outcome: &Outcome) -> bool {
    let claims = outcome.writes().filter(|one| one.info.resource == "persistentvolumeclaims");
    let last: BTreeMap<(&str, &str), Option<u16>> = claims
        .map(|one| ((one.info.namespace.as_str(), one.info.name.as_str()), one.code))
        .collect();
    last.values().any(|code| matches!(code, Some(403 | 422)))
}

/// Whether a scenario has faults or planned incidents, and none of them has happened.
fn is_untried(scenario: &Scenario, outcome: &Outcome) -> bool {
    let planned = scenario.faults.faults.len() + scenario.incidents.len();
    let unused = outcome.unused_faults.len() + outcome.unused_incidents;
    planned > 0 && unused == planned && outcome.incidents.is_empty()
}

/// Whether a user deletes something while a cache of the host is late.
fn sees_deletion_late(scenario: &Scenario) -> bool {
    let mut faults = scenario.faults.faults.iter();
    faults.any(|planned| matches!(planned.fault, Fault::Watch(_)))
        && scenario.steps.iter().any(|step| matches!(step, Step::Delete(_)))
}

/// The steps of a scenario that apply the last object of each name.
fn last_specs(scenario: &Scenario) -> Scenario {
    let mut steps: Vec<Step> = Vec::new();
    for step in &scenario.steps {
        let (Step::Apply(object) | Step::Replace(object) | Step::Recreate(object)) = step else {
            continue;
        };
        let name = name_of(object);
        steps.retain(|step| match step {
            Step::Apply(other) | Step::Replace(other) => name_of(other) != name,
            _ => true,
        });
        steps.push(Step::Replace(object.clone()));
    }
    Scenario::new(scenario.seed, steps)
}

/// The steps of a scenario without those of another client, which changes objects of the guest. The
/// time that passes is the same: Kubernetes may start the Jobs of a CronJob meanwhile.
fn without_other_client(scenario: &Scenario, subject: &Subject) -> Scenario {
    let is_other = |step: &&Step| match step {
        Step::MergePatch(_) => true,
        Step::Delete(object) | Step::Apply(object) | Step::Recreate(object) => {
            !subject.is_primary(object)
        }
        _ => false,
    };
    let steps = scenario.steps.iter().filter(|step| !is_other(step)).cloned().collect();
    Scenario { steps, faults: FaultPlan::default(), ..scenario.clone() }
}

/// The steps of a scenario before the backup of etcd.
fn before_the_backup(scenario: &Scenario) -> Scenario {
    let is_backup = |step: &&Step| **step == Step::Incident(Incident::Backup {});
    let steps = scenario.steps.iter().take_while(|step| !is_backup(step)).cloned().collect();
    Scenario { steps, ..scenario.undisturbed() }
}

#[cfg(test)]
mod tests {
    use innkeeper_faults::Verb;
    use serde_json::json;

    use super::*;
    use crate::outcome::tests::{answered_write, outcome};
    use crate::subject::tests::shops;

    fn write(resource: &str, name: &str, code: u16) -> RequestRecord {
        answered_write(Verb::Apply, resource, name, code)
    }

    #[test]
    fn claim_counts_as_refused_if_its_last_write_was() {
        let claim = |name, code| write("persistentvolumeclaims", name, code);
        for code in [403, 422] {
            assert!(has_refused_claim(&outcome(vec![claim("a", 201), claim("a", code)])));
            let others = [claim("a", code), claim("b", 201)];
            assert!(has_refused_claim(&outcome(others.to_vec())));
            let later = [claim("a", code), claim("a", 200)];
            assert!(!has_refused_claim(&outcome(later.to_vec())));
            assert!(!has_refused_claim(&outcome(vec![write("configmaps", "a", code)])));
        }
        assert!(!has_refused_claim(&outcome(vec![claim("a", 409)])));
    }

    #[test]
    fn scenario_without_the_other_client_has_its_waits_and_the_steps_of_users() {
        let shop =
            json!({"apiVersion": "example.com/v1", "kind": "Shop", "metadata": {"name": "a"}});
        let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}});
        let scenario = Scenario::new(
            1,
            vec![
                Step::Apply(shop.clone()),
                Step::Settle,
                Step::Delete(map.clone()),
                Step::Wait(60),
                Step::MergePatch(map),
                Step::Settle,
                Step::Delete(shop.clone()),
            ],
        );
        assert_eq!(
            without_other_client(&scenario, &shops()).steps,
            [
                Step::Apply(shop.clone()),
                Step::Settle,
                Step::Wait(60),
                Step::Settle,
                Step::Delete(shop),
            ]
        );
    }
}
