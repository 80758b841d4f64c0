//! The cases of each law: scenarios made from the samples, with each fault at each write.

use std::rc::Rc;

use innkeeper_contract::Kind;
use innkeeper_faults::{CrashPoint, Fault, FaultPlan, PlannedFault};
use serde_json::{Value, json};

use crate::fault_lists::{crashes, failures, late, watch_faults};
use crate::law::{Case, Expectation, Law};
use crate::outcome::Outcome;
use crate::scenario::{Scenario, Step, controllers};
use crate::subject::Subject;

/// The most steps of one case of [`Law::Totality`]: many objects are checked at once.
const OBJECTS_TOGETHER: usize = 20;

/// What the cases are made from.
pub(crate) struct Material<'a> {
    pub(crate) subject: &'a Subject,
    pub(crate) seed: u64,
    /// Primaries made from the samples by the schema of their kind.
    pub(crate) variants: &'a [Value],
    /// The life of each sample without faults: applied, settled, deleted.
    pub(crate) lives: &'a [(Scenario, Rc<Outcome>)],
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
            Law::Convergence => alone.map(|one| case(one, Expectation::Nothing)).collect(),
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
            Law::Crash => self.faults_at_writes(&crashes(), law),
            Law::FailedWrites => self.faults_at_writes(&failures(), law),
            Law::Staleness => self.late_watches(law),
            Law::DriftRepair => {
                self.drifts().map(|one| case(one, Expectation::AsBeforeTheOtherClient)).collect()
            }
            Law::OneOwner => {
                self.several().map(|one| case(one, Expectation::ControllersStay)).collect()
            }
            Law::Scope => {
                self.foreign_objects().map(|one| case(one, Expectation::OthersAsBefore)).collect()
            }
            Law::NoLeak if self.subject.secret_values().is_empty() => Vec::new(),
            Law::NoLeak => alone.map(|one| case(one, Expectation::Nothing)).collect(),
            Law::Upgrade if self.subject.earlier_module.is_none() => Vec::new(),
            Law::Upgrade => alone
                .map(|mut life| {
                    life.steps.push(Step::Upgrade);
                    case(life, Expectation::AsWithTheLastSpecAlone)
                })
                .collect(),
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

    /// Two specs after each other under one name, with and without time in between.
    fn paths(&self) -> impl Iterator<Item = Scenario> {
        let mut scenarios = Vec::new();
        let samples = &self.subject.samples;
        for sample in samples {
            let others = samples.iter().filter(|other| *other != sample).chain(self.variants);
            for other in others {
                let other = named_as(other.clone(), sample);
                for between in [Some(Step::Settle), None, Some(Step::Pass(1))] {
                    let mut steps = vec![Step::Apply(sample.clone())];
                    steps.extend(between);
                    steps.push(Step::Replace(other.clone()));
                    scenarios.push(Scenario::new(self.seed, steps));
                }
            }
        }
        scenarios.into_iter()
    }

    /// Each fault at each write of each life, then at each two and at each six writes in a row.
    fn faults_at_writes(&self, faults: &[Fault], law: Law) -> Vec<Case> {
        let mut cases = Vec::new();
        for (life, outcome) in self.lives {
            let writes = u32::try_from(outcome.writes().count()).unwrap_or(u32::MAX);
            // The client repeats some requests four times.
            for count in [1, 2, 6] {
                for write in 1..=writes {
                    for fault in faults {
                        let once = PlannedFault::at_write(write, fault.clone());
                        let planned = PlannedFault { count, ..once };
                        let scenario = life.with_faults(FaultPlan { faults: vec![planned] });
                        let expectation = Expectation::AsWithoutFaults;
                        cases.push(Case { law, scenario, expectation });
                    }
                }
            }
        }
        cases
    }

    /// Each sample deleted a second after it was applied, with a write that fails before.
    fn faults_before_deletion(&self) -> Vec<Scenario> {
        let mut scenarios = Vec::new();
        for (life, outcome) in self.lives {
            let writes = u32::try_from(outcome.writes().count()).unwrap_or(u32::MAX);
            let Some(Step::Apply(sample)) = life.steps.first() else { continue };
            for write in 1..=writes {
                for fault in [Fault::Hang {}, Fault::Crash { point: CrashPoint::BeforeRequest }] {
                    let faults = vec![PlannedFault::at_write(write, fault)];
                    let steps = [
                        Step::Apply(sample.clone()),
                        Step::Pass(1),
                        Step::Delete(reference(sample)),
                    ];
                    let scenario = Scenario::new(self.seed, steps.to_vec());
                    scenarios.push(scenario.with_faults(FaultPlan { faults }));
                }
            }
        }
        scenarios
    }

    /// Each kind's watch late in each way, alone and with all others.
    fn late_watches(&self, law: Law) -> Vec<Case> {
        let resources = self.watched();
        let mut cases = Vec::new();
        for (life, _) in self.lives {
            // Watches begin again within a minute, so all faults have their time.
            let alone = resources.iter().map(std::slice::from_ref);
            for resources in alone.chain([&*resources]) {
                for (fault, count) in watch_faults() {
                    let late = |resource: &String| late(resource, count, fault);
                    let faults = resources.iter().map(late).collect();
                    let scenario = Scenario {
                        steps: [Step::Pass(60)].into_iter().chain(life.steps.clone()).collect(),
                        ..life.with_faults(FaultPlan { faults })
                    };
                    cases.push(Case { law, scenario, expectation: Expectation::AsWithoutFaults });
                }
            }
        }
        cases
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

    /// Each object of each life deleted or changed by another client.
    fn drifts(&self) -> impl Iterator<Item = Scenario> {
        let mut scenarios = Vec::new();
        for sample in &self.subject.samples {
            let start = life(self.seed, sample);
            let life = self.lives.iter().find(|(life, _)| life.steps[0] == start.steps[0]);
            let Some((_, outcome)) = life else { continue };
            let settled = &outcome.states[0];
            let is_owned = |object: &Value| !self.subject.is_primary(object);
            for (name, _) in settled.objects().filter(|(_, object)| is_owned(object)) {
                let is_applied = |path: &[String]| settled.is_applied(name, path);
                let Some(object) = settled.stored(name) else { continue };
                let mut drifts = Vec::new();
                // An object into which the guest merges fields belongs to somebody else.
                if is_controlled(object) {
                    drifts.push(Step::Delete(reference(object)));
                }
                drifts.extend(other_values(object, is_applied).into_iter().map(Step::Merge));
                for drift in drifts {
                    let mut steps = start.steps.clone();
                    steps.push(drift);
                    scenarios.push(Scenario::new(self.seed, steps));
                }
            }
        }
        scenarios.into_iter()
    }

    /// Each object of each life, but made by another client before.
    fn foreign_objects(&self) -> impl Iterator<Item = Scenario> {
        let merges = |object: &Value| {
            let owned = self.subject.manifest.owned.iter().filter(|owned| owned.merges);
            owned.into_iter().any(|owned| object["kind"] == owned.kind.kind.as_str())
        };
        let mut scenarios = Vec::new();
        for (sample, (_, outcome)) in self.subject.samples.iter().zip(self.lives) {
            let settled = &outcome.states[0];
            let made = settled.objects().filter(|(_, object)| is_controlled(object));
            for (name, object) in made.filter(|(_, object)| !merges(object)) {
                let foreign = foreign(settled.stored(name).unwrap_or(object));
                let steps = [Step::Apply(foreign), Step::Settle, Step::Apply(sample.clone())];
                scenarios.push(Scenario::new(self.seed, steps.to_vec()));
            }
        }
        scenarios.into_iter()
    }

    /// Several primaries: all samples, and the first sample under two names.
    fn several(&self) -> impl Iterator<Item = Scenario> {
        let samples = &self.subject.samples;
        let renamed = |sample: &Value| {
            let mut second = sample.clone();
            let name = sample["metadata"]["name"].as_str().unwrap_or("primary");
            second["metadata"]["name"] = format!("{name}-2").into();
            second
        };
        let mut scenarios = Vec::new();
        for sample in samples {
            let (first, second) = (Step::Apply(sample.clone()), Step::Apply(renamed(sample)));
            let steps = vec![first, Step::Settle, second];
            scenarios.push(Scenario::new(self.seed, steps.clone()));
            // The host decides about both again.
            let again = [Step::Settle, Step::Restart, Step::Pass(60)];
            scenarios.push(Scenario::new(self.seed, steps.into_iter().chain(again).collect()));
        }
        if samples.len() > 1 {
            let mut steps: Vec<Step> = samples.iter().cloned().map(Step::Apply).collect();
            steps.insert(1, Step::Settle);
            scenarios.push(Scenario::new(self.seed, steps));
        }
        scenarios.into_iter()
    }
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

/// Whether an object has a controller, as the objects have that the host makes.
fn is_controlled(object: &Value) -> bool {
    controllers(object).next().is_some()
}

/// An object as another client makes it: without owners, labels and annotations of the host.
fn foreign(object: &Value) -> Value {
    let mut foreign = object.clone();
    let mut metadata = reference(object)["metadata"].take();
    metadata["annotations"] = json!({"example.com/of": "another client"});
    foreign["metadata"] = metadata;
    foreign
}

/// The step that replaces an object by the one that the first step applied.
fn back_to(first: Step) -> Step {
    match first {
        Step::Apply(object) => Step::Replace(object),
        other => other,
    }
}

/// Patches that give applied fields of an object other values: each label removed, and each number
/// and boolean changed.
fn other_values(object: &Value, is_applied: impl Fn(&[String]) -> bool) -> Vec<Value> {
    let mut patches = Vec::new();
    let mut patch = |pointer: &[String], value: Value| {
        if !is_applied(pointer) {
            return;
        }
        let mut patch = value;
        for part in pointer.iter().rev() {
            patch = json!({part: patch});
        }
        let mut whole = reference(object);
        merge(&mut whole, patch);
        patches.push(whole);
    };
    let labels = object["metadata"]["labels"].as_object();
    for name in labels.into_iter().flat_map(serde_json::Map::keys) {
        patch(&["metadata".into(), "labels".into(), name.clone()], Value::Null);
    }
    for root in ["spec", "data", "rules"] {
        fields(&object[root], &mut vec![root.to_owned()], &mut |pointer, value| {
            patch(pointer, value);
        });
    }
    patches
}

/// Calls `found` with each scalar below maps and another value for it. Lists stay as they are: a
/// merge patch replaces them whole.
fn fields(value: &Value, pointer: &mut Vec<String>, found: &mut impl FnMut(&[String], Value)) {
    match value {
        Value::Object(members) => {
            for (name, member) in members {
                pointer.push(name.clone());
                fields(member, pointer, found);
                pointer.pop();
            }
        }
        Value::Number(number) => {
            let number = number.as_i64().unwrap_or(1);
            found(pointer, (number + 1).into());
        }
        Value::Bool(flag) => found(pointer, (!flag).into()),
        _ => {}
    }
}

fn merge(target: &mut Value, patch: Value) {
    match (target, patch) {
        (Value::Object(target), Value::Object(patch)) => {
            for (name, value) in patch {
                merge(target.entry(name).or_insert(Value::Null), value);
            }
        }
        (target, patch) => *target = patch,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::name_of;

    #[test]
    fn applied_numbers_and_labels_are_changed_and_the_rest_is_not() {
        let object = json!({"apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"name": "web", "namespace": "a", "labels": {"app": "web"}},
            "spec": {"replicas": 2, "paused": false, "strategy": {"type": "Recreate"},
                "containers": [{"name": "a"}]}});
        let is_applied = |path: &[String]| path != ["spec", "paused"];
        let patches: Vec<Value> = other_values(&object, is_applied)
            .into_iter()
            .map(|mut patch| {
                assert_eq!(name_of(&patch), "Deployment a/web");
                json!([patch["metadata"]["labels"].take(), patch["spec"].take()])
            })
            .collect();
        assert_eq!(patches, [json!([{"app": null}, null]), json!([null, {"replicas": 3}]),]);
    }
}
