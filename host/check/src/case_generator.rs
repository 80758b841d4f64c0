//! The cases of each law: scenarios made from the samples, with each fault at each write.

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

/// What the cases are made from.
pub(crate) struct Material<'a> {
    pub(crate) subject: &'a Subject,
    pub(crate) seed: u64,
    /// Whether a hostile guest can run on the same host.
    pub(crate) has_neighbor: bool,
    /// Primaries made from the samples by the schema of their kind.
    pub(crate) variants: &'a [Value],
    /// The life of each sample without faults: applied, settled, deleted.
    pub(crate) lives: &'a [(Scenario, Rc<Outcome>)],
    /// The life of each sample together with a second primary of the same spec; none if the law
    /// [`Law::Exploration`] is not checked.
    pub(crate) pairs: &'a [(Scenario, Rc<Outcome>)],
}

/// The life of a sample: applied, and settled.
pub(crate) fn life(seed: u64, sample: &Value) -> Scenario {
    Scenario::new(seed, vec![Step::Apply(sample.clone()), Step::Settle])
}

/// A life with its end: the sample is deleted when everything is quiet.
pub(crate) fn whole_life(seed: u64, sample: &Value) -> Scenario {
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

impl Material<'_> {
    /// The cases of a law, in the order in which they are checked.
    pub(crate) fn cases(&self, law: Law) -> Vec<Case> {
        let case = |scenario, expectation| Case { law, scenario, expectation };
        let samples = &self.subject.samples;
        let alone = samples.iter().map(|sample| life(self.seed, sample));
        match law {
            Law::Totality => {
                self.all_variants().map(|one| case(one, Expectation::AllAccepted)).collect()
            }
            Law::Convergence => alone
                .map(|one| case(one, Expectation::Nothing))
                .chain(self.defaulted(law))
                .collect(),
            Law::Determinism => {
                alone.map(|one| case(one, Expectation::AsWithAnotherSeed)).collect()
            }
            Law::Fixpoint => alone
                .map(|mut life| {
                    life.steps.extend([Step::Restart, Step::Pass(60)]);
                    case(life, Expectation::NoWriteAfterRestart)
                })
                .collect(),
            Law::PathIndependence => {
                self.paths().map(|one| case(one, Expectation::AsWithTheLastSpecAlone)).collect()
            }
            Law::Rollback => self
                .paths()
                .map(|mut one| {
                    let first = one.steps[0].clone();
                    one.steps.extend([Step::Settle, back_to(first)]);
                    case(one, Expectation::AsWithTheLastSpecAlone)
                })
                .collect(),
            Law::ImmutableFields => {
                let changed = self.paths().filter(|one| one.steps.get(1) == Some(&Step::Settle));
                changed.map(|one| case(one, Expectation::FollowsOrReports)).collect()
            }
            Law::Crash => {
                let mut cases = self.faults_at_writes(&crashes(), law);
                cases.extend(self.incidents_at_writes(&interruptions(), law));
                cases
            }
            Law::FailedWrites => {
                let mut cases = self.faults_at_writes(&failures(), law);
                cases.extend(self.incidents_at_writes(&outages(), law));
                cases
            }
            Law::Staleness => {
                let mut cases = self.late_watches(law);
                cases.extend(self.restores(law));
                cases
            }
            Law::DriftRepair => self
                .drifts()
                .map(|one| case(one, Expectation::AsBeforeTheOtherClient))
                .chain(self.rewritten(law))
                .collect(),
            Law::OneOwner => {
                self.several().map(|one| case(one, Expectation::ControllersStay)).collect()
            }
            Law::Scope => self
                .foreign_objects()
                .map(|one| case(one, Expectation::OthersAsBefore))
                .chain(self.with_hostile_neighbor(law))
                .collect(),
            Law::NoLeak if self.subject.secret_values().is_empty() => Vec::new(),
            Law::NoLeak => alone.map(|one| case(one, Expectation::Nothing)).collect(),
            // Without an earlier component the code stays the same.
            Law::Upgrade if self.subject.earlier_module.is_none() => {
                self.incidents_at_writes(&[Incident::Swap {}], law)
            }
            Law::Upgrade => alone
                .map(|mut life| {
                    life.steps.push(Step::Upgrade);
                    case(life, Expectation::AsWithTheLastSpecAlone)
                })
                .chain(self.swaps_and_back(law))
                .collect(),
            Law::Exploration => self.interleavings(law),
            Law::Finalizing => {
                let faults = self.faults_before_deletion().into_iter();
                let faults = faults.map(|one| case(one, Expectation::NothingOwned));
                samples
                    .iter()
                    .flat_map(|sample| {
                        let apply = Step::Apply(sample.clone());
                        let delete = Step::Delete(reference(sample));
                        [
                            vec![apply.clone(), Step::Settle, delete.clone()],
                            vec![apply.clone(), delete.clone()],
                            vec![apply.clone(), Step::Pass(1), delete.clone()],
                            vec![apply, Step::Settle, Step::Restart, delete],
                        ]
                    })
                    .map(|steps| case(Scenario::new(self.seed, steps), Expectation::NothingOwned))
                    .chain(faults)
                    .chain(self.deletions(law))
                    .collect()
            }
        }
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

    /// The most writes of a life.
    pub(crate) fn writes_max(&self) -> u32 {
        self.lives.iter().map(|(_, outcome)| outcome.write_count()).max().unwrap_or_default()
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
