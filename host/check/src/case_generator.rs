//! Generates the cases of each law: scenarios made from the samples, with each fault at each write.

use std::rc::Rc;

use innkeeper_contract::Kind;
use serde_json::{Value, json};

use crate::fault_lists::{crashes, failures, interruptions, outages};
use crate::incident::Incident;
use crate::law::{Case, Expectation, Law};
use crate::outcome::Outcome;
use crate::scenario::{Scenario, Step};
use crate::subject::Subject;

/// The most steps of one case of [`Law::Totality`]: many objects are checked at once.
const OBJECTS_TOGETHER: usize = 20;

/// A scenario without faults, with which others are compared, and its outcome.
pub(crate) struct Baseline {
    pub(crate) scenario: Scenario,
    pub(crate) outcome: Rc<Outcome>,
}

impl Baseline {
    /// The sample whose lifecycle this is.
    pub(crate) fn sample(&self) -> Option<&Value> {
        match self.scenario.steps.first() {
            Some(Step::Apply(sample)) => Some(sample),
            _ => None,
        }
    }

    /// How many writes the host makes until everything is quiet for the first time.
    pub(crate) fn first_settled_writes(&self) -> u32 {
        self.outcome.settled_writes.first().copied().unwrap_or(0)
    }
}

/// Generates the cases of each law.
pub(crate) struct CaseGenerator<'a> {
    pub(crate) subject: &'a Subject,
    pub(crate) seed: u64,
    /// Whether a hostile guest can run on the same host.
    pub(crate) has_hostile_module: bool,
    /// Primaries made from the samples by the schema of their kind.
    pub(crate) variants: &'a [Value],
    /// The lifecycle of each sample: applied, settled, deleted.
    pub(crate) baselines: &'a [Baseline],
    /// The lifecycle of each sample together with a second primary of the same spec; none if the
    /// law [`Law::Exploration`] is not checked.
    pub(crate) two_primary_baselines: &'a [Baseline],
}

/// The scenario in which a sample is applied, and the host settles.
pub(crate) fn apply_and_settle(seed: u64, sample: &Value) -> Scenario {
    Scenario::new(seed, vec![Step::Apply(sample.clone()), Step::Settle])
}

/// The scenario in which a sample is applied, the host settles, and the sample is deleted.
pub(crate) fn lifecycle(seed: u64, sample: &Value) -> Scenario {
    let steps = [Step::Apply(sample.clone()), Step::Settle, Step::Delete(reference(sample))];
    Scenario::new(seed, steps.to_vec())
}

/// API version, kind, namespace and name of an object.
pub(crate) fn reference(object: &Value) -> Value {
    let mut metadata = json!({"name": object["metadata"]["name"]});
    if object["metadata"]["namespace"].is_string() {
        metadata["namespace"] = object["metadata"]["namespace"].clone();
    }
    json!({"apiVersion": object["apiVersion"], "kind": object["kind"], "metadata": metadata})
}

impl CaseGenerator<'_> {
    /// The cases of a law, in the order in which they are checked.
    pub(crate) fn cases(&self, law: Law) -> Vec<Case> {
        match law {
            Law::Totality => cases(law, Expectation::AllAccepted, self.all_variants()),
            Law::Convergence => {
                let alone = cases(law, Expectation::Nothing, self.alone());
                [alone, self.defaulted(law)].concat()
            }
            Law::Determinism => cases(law, Expectation::AsWithAnotherSeed, self.alone()),
            Law::Fixpoint => cases(law, Expectation::NoWriteAfterRestart, self.restarted()),
            Law::PathIndependence => cases(law, Expectation::AsWithTheLastSpecAlone, self.paths()),
            Law::Rollback => cases(law, Expectation::AsWithTheLastSpecAlone, self.paths_and_back()),
            Law::ImmutableFields => cases(law, Expectation::FollowsOrReports, self.settled_paths()),
            Law::Crash => {
                let crashed = self.faults_at_writes(&crashes(), law);
                [crashed, self.incidents_at_writes(&interruptions(), law)].concat()
            }
            Law::FailedWrites => {
                let failed = self.faults_at_writes(&failures(), law);
                [failed, self.incidents_at_writes(&outages(), law)].concat()
            }
            Law::Staleness => [self.late_watches(law), self.restores(law)].concat(),
            Law::DriftRepair => {
                let drifted = cases(law, Expectation::AsBeforeTheOtherClient, self.drifts());
                [drifted, self.rewritten(law)].concat()
            }
            Law::ReadFields => cases(law, Expectation::AsWithEveryField, self.other_fields()),
            Law::OneOwner => cases(law, Expectation::ControllersStay, self.several()),
            Law::Scope => {
                let foreign = cases(law, Expectation::OthersAsBefore, self.foreign_objects());
                [foreign, self.with_hostile_module(law)].concat()
            }
            Law::NoLeak if self.subject.secret_values().is_empty() => Vec::new(),
            Law::NoLeak => cases(law, Expectation::Nothing, self.alone()),
            Law::Upgrade => self.upgrades(law),
            Law::Exploration => self.interleavings(law),
            Law::Finalizing => self.finalizations(law),
        }
    }

    /// Each sample applied alone.
    fn alone(&self) -> impl Iterator<Item = Scenario> {
        self.subject.samples.iter().map(|sample| apply_and_settle(self.seed, sample))
    }

    /// Each sample, and a restart of the host when everything is quiet.
    fn restarted(&self) -> impl Iterator<Item = Scenario> {
        self.alone().map(|mut scenario| {
            scenario.steps.extend([Step::Restart, Step::Wait(60)]);
            scenario
        })
    }

    /// The paths to another spec, and back to the first one.
    fn paths_and_back(&self) -> impl Iterator<Item = Scenario> {
        self.paths().map(|mut scenario| {
            let first = scenario.steps[0].clone();
            scenario.steps.extend([Step::Settle, back_to(first)]);
            scenario
        })
    }

    /// The paths to another spec when everything is quiet.
    fn settled_paths(&self) -> impl Iterator<Item = Scenario> {
        self.paths().filter(|scenario| scenario.steps.get(1) == Some(&Step::Settle))
    }

    /// Upgrades from an earlier component. Without one the code stays the same.
    fn upgrades(&self, law: Law) -> Vec<Case> {
        if self.subject.earlier_module.is_none() {
            return self.incidents_at_writes(&[Incident::Swap {}], law);
        }
        let upgraded = self.alone().map(|mut scenario| {
            scenario.steps.push(Step::Upgrade);
            scenario
        });
        let upgraded = cases(law, Expectation::AsWithTheLastSpecAlone, upgraded);
        [upgraded, self.swaps_and_back(law)].concat()
    }

    /// Each sample deleted at different times, with and without faults before.
    fn finalizations(&self, law: Law) -> Vec<Case> {
        let deleted = self.subject.samples.iter().flat_map(|sample| {
            let apply = Step::Apply(sample.clone());
            let delete = Step::Delete(reference(sample));
            [
                vec![apply.clone(), Step::Settle, delete.clone()],
                vec![apply.clone(), delete.clone()],
                vec![apply.clone(), Step::Wait(1), delete.clone()],
                vec![apply, Step::Settle, Step::Restart, delete],
            ]
        });
        let deleted = deleted.map(|steps| Scenario::new(self.seed, steps));
        let scenarios = deleted.chain(self.faults_before_deletion());
        [cases(law, Expectation::NothingOwned, scenarios), self.deletions(law)].concat()
    }

    /// All variants, many in each scenario under names of their own.
    fn all_variants(&self) -> impl Iterator<Item = Scenario> {
        let numbered = self.variants.iter().enumerate().map(|(index, variant)| {
            let mut variant = variant.clone();
            variant["metadata"]["name"] = format!("variant-{index}").into();
            Step::Apply(variant)
        });
        let steps: Vec<Step> = numbered.collect();
        let scenarios: Vec<Scenario> = steps
            .chunks(OBJECTS_TOGETHER)
            .map(|steps| Scenario::new(self.seed, steps.to_vec()))
            .collect();
        scenarios.into_iter()
    }

    /// The most writes of a baseline.
    pub(crate) fn writes_max(&self) -> u32 {
        let counts = self.baselines.iter().map(|baseline| baseline.outcome.write_count());
        counts.max().unwrap_or_default()
    }

    /// The resources that the host watches for the guest.
    pub(crate) fn watched(&self) -> Vec<String> {
        let kinds = self.subject.kinds().into_iter().chain(&self.subject.manifest.reads);
        let resource = |kind: &Kind| match kind.group() {
            "" => kind.plural.clone(),
            group => format!("{group}/{}", kind.plural),
        };
        kinds.map(resource).collect()
    }
}

/// Cases of these scenarios with one expectation.
fn cases(
    law: Law,
    expectation: Expectation,
    scenarios: impl Iterator<Item = Scenario>,
) -> Vec<Case> {
    scenarios.map(|scenario| Case { law, scenario, expectation }).collect()
}

/// The same primary under a second name.
pub(crate) fn second(primary: &Value) -> Value {
    let mut second = primary.clone();
    let name = primary["metadata"]["name"].as_str().unwrap_or("primary");
    second["metadata"]["name"] = format!("{name}-2").into();
    second
}

/// A primary under the namespace and name of another one.
pub(crate) fn named_as(mut primary: Value, other: &Value) -> Value {
    if let Some(metadata) = primary["metadata"].as_object_mut() {
        for member in ["namespace", "name"] {
            match other["metadata"].get(member) {
                Some(value) => drop(metadata.insert(member.to_owned(), value.clone())),
                None => drop(metadata.remove(member)),
            }
        }
    }
    primary
}

/// The step that replaces an object by the one that the first step applied.
fn back_to(first: Step) -> Step {
    match first {
        Step::Apply(object) => Step::Replace(object),
        other => other,
    }
}
