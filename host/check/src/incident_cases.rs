//! Cases with incidents: of the host, of the API server, and of others on the cluster.

use serde_json::{Value, json};

use crate::case_generator::{Baseline, CaseGenerator, apply_and_settle, named_as, reference};
use crate::incident::{Incident, PlannedIncident};
use crate::law::{Case, Expectation, Law};
use crate::scenario::{Scenario, Step, controllers};

/// A finalizer of somebody else.
const SLOW: &str = "example.com/slow";

/// The most variants of a sample with which a backup is restored.
const RESTORED_VARIANTS: usize = 3;

impl CaseGenerator<'_> {
    /// Each incident at each write of each baseline.
    pub(crate) fn incidents_at_writes(&self, incidents: &[Incident], law: Law) -> Vec<Case> {
        let mut cases = Vec::new();
        for Baseline { scenario: baseline, outcome } in self.baselines {
            let writes = outcome.write_count();
            for write in 1..=writes {
                for incident in incidents {
                    let planned = PlannedIncident { write, incident: *incident };
                    let scenario = baseline.with_incidents(vec![planned]);
                    let expectation = Expectation::AsWithoutFaults;
                    cases.push(Case { law, scenario, expectation });
                }
            }
        }
        cases
    }

    /// The earlier component instead of the present one at each write of each baseline, and the
    /// present one again at each later write, or when everything is quiet.
    pub(crate) fn swaps_and_back(&self, law: Law) -> Vec<Case> {
        let mut cases = Vec::new();
        for baseline in self.baselines {
            let Some(sample) = baseline.sample() else { continue };
            let writes = baseline.first_settled_writes();
            let mut start = apply_and_settle(self.seed, sample);
            start.steps.extend([Step::Incident(Incident::SwapBack {}), Step::Wait(60)]);
            for write in 1..=writes {
                let swap = PlannedIncident { write, incident: Incident::Swap {} };
                let back = PlannedIncident { write: write + 1, incident: Incident::SwapBack {} };
                for incidents in [vec![swap.clone()], vec![swap, back]] {
                    let scenario = start.with_incidents(incidents);
                    let expectation = Expectation::AsWithTheLastSpecAlone;
                    cases.push(Case { law, scenario, expectation });
                }
            }
        }
        cases
    }

    /// An older backup of etcd restored: after another spec or the deletion, when everything is
    /// quiet or in the middle of the writes that follow; and what users do then.
    pub(crate) fn restores(&self, law: Law) -> Vec<Case> {
        let mut cases = Vec::new();
        let mut add = |scenario: Scenario, expectation| {
            let scenario = Scenario { needs_long_quiet: true, ..scenario };
            cases.push(Case { law, scenario, expectation });
        };
        for bump in [true, false] {
            let restore = Step::Incident(Incident::Restore { bump });
            for sample in &self.subject.samples {
                let mut start = apply_and_settle(self.seed, sample);
                start.steps.push(Step::Incident(Incident::Backup {}));
                let with = |more: &[Step]| {
                    let mut scenario = start.clone();
                    scenario.steps.extend_from_slice(more);
                    scenario
                };
                let delete = Step::Delete(reference(sample));
                let later: Vec<Step> = self.others_of(sample).map(Step::Replace).collect();
                for change in later.iter().chain([&delete]) {
                    let change = change.clone();
                    for between in [Step::Settle, Step::Wait(1)] {
                        let steps = [change.clone(), between, restore.clone()];
                        add(with(&steps), Expectation::AsAtTheBackup);
                    }
                    for write in [1, 2, 4] {
                        let incident = Incident::Restore { bump };
                        let planned = vec![PlannedIncident { write, incident }];
                        let scenario = with(std::slice::from_ref(&change)).with_incidents(planned);
                        // Writes are counted from the first step; these come after the sample's.
                        let scenario = self.after_the_sample(sample, scenario);
                        add(scenario, Expectation::AsAtTheBackup);
                    }
                }
                if let [first, second, ..] = later.as_slice() {
                    let steps = [first.clone(), Step::Settle, restore.clone(), second.clone()];
                    add(with(&steps), Expectation::AsWithTheLastSpecAlone);
                }
            }
        }
        cases
    }

    /// The other specs under the name of a sample.
    fn others_of<'s>(&'s self, sample: &'s Value) -> impl Iterator<Item = Value> {
        let samples = &self.subject.samples;
        let others = samples.iter().filter(move |other| *other != sample).chain(self.variants);
        let others = others.map(move |other| named_as(other.clone(), sample));
        others.filter(move |other| other != sample).take(RESTORED_VARIANTS)
    }

    /// The scenario with its incidents counted from when everything is quiet after the sample was
    /// applied.
    fn after_the_sample(&self, sample: &Value, mut scenario: Scenario) -> Scenario {
        let mut baselines = self.baselines.iter();
        let baseline = baselines.find(|one| one.sample() == Some(sample));
        let writes = baseline.map_or(0, Baseline::first_settled_writes);
        for planned in &mut scenario.incidents {
            planned.write += writes;
        }
        scenario
    }

    /// Each sample with a webhook that adds to all written objects, through changes of its spec and
    /// a restart.
    pub(crate) fn defaulted(&self, law: Law) -> Vec<Case> {
        let mut cases = Vec::new();
        for sample in &self.subject.samples {
            let webhook = Step::Incident(Incident::Defaulting {});
            let mut early = apply_and_settle(self.seed, sample);
            early.steps.insert(0, webhook.clone());
            let mut late = apply_and_settle(self.seed, sample);
            late.steps.extend([webhook, Step::Restart, Step::Settle]);
            late.steps.extend(self.others_of(sample).next().map(Step::Replace));
            for scenario in [early, late] {
                cases.push(Case { law, scenario, expectation: Expectation::Nothing });
            }
        }
        cases
    }

    /// Each sample with the primaries of a hostile guest, which come before it or after.
    pub(crate) fn with_hostile_module(&self, law: Law) -> Vec<Case> {
        if !self.has_hostile_module {
            return Vec::new();
        }
        let hostile = Step::Incident(Incident::Neighbor {});
        let mut cases = Vec::new();
        for Baseline { scenario: baseline, .. } in self.baselines {
            for place in [0, 1, baseline.steps.len()] {
                let mut scenario = baseline.clone();
                scenario.steps.insert(place.min(scenario.steps.len()), hostile.clone());
                scenario.needs_long_quiet = true;
                cases.push(Case { law, scenario, expectation: Expectation::AsWithoutFaults });
            }
        }
        cases
    }

    /// Each object of each baseline without its owners. Without its annotations, too, it would be
    /// another client's, which the host leaves alone.
    pub(crate) fn rewritten(&self, law: Law) -> Vec<Case> {
        let mut cases = Vec::new();
        for baseline in self.baselines {
            let Some(sample) = baseline.sample() else { continue };
            let settled = &baseline.outcome.states[0];
            let made = settled.objects().filter(|(_, object)| controllers(object).next().is_some());
            for (name, _) in made {
                let Some(object) = settled.stored(name) else { continue };
                let mut without = reference(object);
                without["metadata"]["ownerReferences"] = Value::Null;
                let mut scenario = apply_and_settle(self.seed, sample);
                scenario.steps.push(Step::MergePatch(without));
                let expectation = Expectation::AsBeforeTheOtherClient;
                cases.push(Case { law, scenario, expectation });
            }
        }
        cases
    }

    /// Each sample deleted and made again under its name, and deleted while somebody else holds an
    /// object of it by a finalizer.
    pub(crate) fn deletions(&self, law: Law) -> Vec<Case> {
        let mut cases = Vec::new();
        for baseline in self.baselines {
            let Some(sample) = baseline.sample() else { continue };
            for between in [Step::Settle, Step::Wait(0), Step::Wait(1)] {
                let apply = Step::Apply(sample.clone());
                let steps = vec![apply, between, Step::Recreate(sample.clone())];
                let scenario = Scenario::new(self.seed, steps);
                let expectation = Expectation::AsWithTheLastSpecAlone;
                cases.push(Case { law, scenario, expectation });
            }
            let settled = &baseline.outcome.states[0];
            let made = settled.objects().filter(|(_, object)| controllers(object).next().is_some());
            for (name, _) in made {
                let Some(object) = settled.stored(name) else { continue };
                let with = |finalizers: Value| {
                    let mut patch = reference(object);
                    patch["metadata"]["finalizers"] = finalizers;
                    Step::MergePatch(patch)
                };
                let before = object["metadata"]["finalizers"].clone();
                let mut held: Vec<Value> = before.as_array().cloned().unwrap_or_default();
                held.push(SLOW.into());
                let mut scenario = apply_and_settle(self.seed, sample);
                scenario.steps.extend([
                    with(json!(held)),
                    Step::Delete(reference(sample)),
                    Step::Wait(90),
                    with(Value::Null),
                ]);
                let expectation = Expectation::NothingOwned;
                cases.push(Case { law, scenario, expectation });
            }
        }
        cases
    }
}
