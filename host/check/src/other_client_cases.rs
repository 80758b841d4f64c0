//! Cases with objects of others: of another client, and of other primaries.

use serde_json::{Value, json};

use crate::case_generator::{CaseGenerator, apply_and_settle, reference, second};
use crate::scenario::{Scenario, Step, controllers};

impl CaseGenerator<'_> {
    /// Each object of each baseline deleted or changed by another client.
    pub(crate) fn drifts(&self) -> impl Iterator<Item = Scenario> {
        let mut scenarios = Vec::new();
        for sample in &self.subject.samples {
            let start = apply_and_settle(self.seed, sample);
            let mut baselines = self.baselines.iter();
            let baseline = baselines.find(|one| one.scenario.steps[0] == start.steps[0]);
            let Some(baseline) = baseline else { continue };
            let settled = &baseline.outcome.states[0];
            let is_owned = |object: &Value| !self.subject.is_primary(object);
            for (name, _) in settled.objects().filter(|(_, object)| is_owned(object)) {
                let is_applied = |path: &[String]| settled.is_applied(name, path);
                let Some(object) = settled.stored(name) else { continue };
                let mut drifts = Vec::new();
                // An object into which the guest merges fields belongs to somebody else.
                if is_controlled(object) {
                    drifts.push(Step::Delete(reference(object)));
                }
                let patches = other_values(object, is_applied);
                drifts.extend(forced(object, &patches).map(Step::Apply));
                drifts.extend(patches.into_iter().map(Step::MergePatch));
                for drift in drifts {
                    let mut steps = start.steps.clone();
                    steps.push(drift);
                    scenarios.push(Scenario::new(self.seed, steps));
                }
            }
        }
        scenarios.into_iter()
    }

    /// Each sample, and each field that the host does not apply changed by another client: of the
    /// objects that the guest makes, and of those that it reads.
    pub(crate) fn other_fields(&self) -> impl Iterator<Item = Scenario> {
        let mut scenarios = Vec::new();
        for (sample, baseline) in self.subject.samples.iter().zip(self.baselines) {
            let start = apply_and_settle(self.seed, sample);
            let mut patches = Vec::new();
            let settled = &baseline.outcome.states[0];
            for (name, object) in settled.objects() {
                if !self.subject.is_primary(object) {
                    let object = settled.stored(name).unwrap_or(object);
                    patches.extend(other_values(object, |path| !settled.is_applied(name, path)));
                    patches.push(annotated(object));
                }
            }
            let preexisting = self.subject.preexisting.iter();
            for object in preexisting.filter(|object| self.subject.is_read(object)) {
                patches.extend(other_values(object, |_| true));
                patches.push(annotated(object));
            }
            scenarios.push(start.clone());
            scenarios.extend(patches.into_iter().map(|patch| {
                let mut scenario = start.clone();
                scenario.steps.push(Step::MergePatch(patch));
                scenario
            }));
        }
        scenarios.into_iter()
    }

    /// Each object of each baseline, but made by another client before.
    pub(crate) fn foreign_objects(&self) -> impl Iterator<Item = Scenario> {
        let merges = |object: &Value| {
            let owned = self.subject.manifest.owned.iter().filter(|owned| owned.merges);
            owned.into_iter().any(|owned| object["kind"] == owned.kind.kind.as_str())
        };
        let mut scenarios = Vec::new();
        for (sample, baseline) in self.subject.samples.iter().zip(self.baselines) {
            let settled = &baseline.outcome.states[0];
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
    pub(crate) fn several(&self) -> impl Iterator<Item = Scenario> {
        let samples = &self.subject.samples;
        let mut scenarios = Vec::new();
        for sample in samples {
            let (first, second) = (Step::Apply(sample.clone()), Step::Apply(second(sample)));
            let steps = vec![first, Step::Settle, second];
            scenarios.push(Scenario::new(self.seed, steps.clone()));
            // The host decides about both again.
            let again = [Step::Settle, Step::Restart, Step::Wait(60)];
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

/// A patch that adds an annotation of another client.
fn annotated(object: &Value) -> Value {
    let mut patch = reference(object);
    patch["metadata"]["annotations"] = json!({"example.com/of": "another client"});
    patch
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
    // What the guest generated is nobody's to print.
    if foreign["kind"] == "Secret" {
        foreign["data"] = json!({});
    }
    foreign
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

/// The apply that takes the fields of all patches that set one, if there is any.
fn forced(object: &Value, patches: &[Value]) -> Option<Value> {
    let mut whole = reference(object);
    let start = whole.clone();
    for patch in patches.iter().filter(|patch| patch["metadata"]["labels"].is_null()) {
        merge(&mut whole, patch.clone());
    }
    (whole != start).then_some(whole)
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
        let patches = other_values(&object, is_applied);
        let taken = forced(&object, &patches).unwrap_or_default();
        assert_eq!(
            (&taken["spec"], &taken["metadata"]["labels"]),
            (&json!({"replicas": 3}), &Value::Null)
        );
        let patches: Vec<Value> = patches
            .into_iter()
            .map(|mut patch| {
                assert_eq!(name_of(&patch), "Deployment a/web");
                json!([patch["metadata"]["labels"].take(), patch["spec"].take()])
            })
            .collect();
        assert_eq!(patches, [json!([{"app": null}, null]), json!([null, {"replicas": 3}]),]);
    }
}
