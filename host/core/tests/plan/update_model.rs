//! A model of update groups: whatever happens, no more objects are unavailable than the group
//! allows, and an update of healthy objects ends.

use std::collections::BTreeMap;

use innkeeper_contract::{IntOrPercent, UpdateMethod};
use innkeeper_core::in_sync::LastApplied;
use innkeeper_core::plan::{Action, Plan, PlannerState, UpdateState};
use innkeeper_core::primary_revision::{EARLIER_CALLS_MAX, groups_over_limit, substitute};
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::case::{Case, NOW, case, desired_object, entry};

/// A sequence of numbers that look random (xorshift).
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}

/// A Pod in the cluster.
#[derive(Clone, Debug)]
struct Pod {
    body: Value,
    uid: u64,
    applied: i64,
    status: &'static str,
    is_terminating: bool,
}

/// A cluster with a group of Pods, and the host that updates them.
struct Model {
    numbers: Numbers,
    group: Value,
    max: usize,
    count: usize,
    image: u64,
    pods: BTreeMap<String, Pod>,
    state: PlannerState,
    now: i64,
    uids: u64,
    /// The images of earlier revisions, oldest first; `None` without a history.
    earlier: Option<Vec<u64>>,
    /// The body that each Pod had last.
    last: BTreeMap<String, Value>,
}

impl Model {
    fn new(seed: u64, has_history: bool) -> Self {
        let mut numbers = Numbers(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        let method = if numbers.below(2) == 0 {
            UpdateMethod::RollingInPlace
        } else {
            UpdateMethod::RollingRecreate
        };
        let max = usize::try_from(numbers.below(4)).unwrap() + 1;
        let count = usize::try_from(numbers.below(11)).unwrap() + 2;
        let limit = IntOrPercent::Int(u32::try_from(max).unwrap());
        let group = json!({"name": "pods", "method": method, "maxUnavailable": limit,
            "minReadySeconds": numbers.below(2) * 10});
        Self {
            numbers,
            group,
            max,
            count,
            image: 0,
            pods: BTreeMap::new(),
            state: PlannerState { clean: true, ..PlannerState::default() },
            now: NOW,
            uids: 0,
            earlier: has_history.then(Vec::new),
            last: BTreeMap::new(),
        }
    }

    /// The user changes the image; the host stores the earlier one.
    fn change(&mut self, image: u64) {
        let earlier = self.earlier.iter_mut();
        earlier.for_each(|images| {
            images.retain(|one| *one != image && *one != self.image);
            images.push(self.image);
            images.retain(|one| *one != image);
        });
        self.image = image;
    }

    /// The case of the planner for the present cluster.
    fn case(&self) -> Case {
        self.case_of(self.image)
    }

    /// The same of a primary with this image.
    fn case_of(&self, image: u64) -> Case {
        let objects: Value = (0..self.count)
            .map(|index| desired_object("Pod", &format!("p{index}"), &json!({ "image": image })))
            .collect();
        let mut case = case(&objects).group(&self.group);
        case.now = self.now;
        for pod in self.pods.values() {
            case.put("Pod", &pod.json());
        }
        case
    }

    /// Whether a Pod serves, as the group counts it. An outdated Pod that serves counts.
    fn unavailable(&self, case: &Case) -> usize {
        let min_ready = self.group["minReadySeconds"].as_i64().unwrap();
        let is_available = |name: &str, pod: &Pod| {
            let object =
                case.desired_state.objects.iter().find(|one| one.object_ref.key.name() == name);
            let is_current = object.is_some_and(|object| object.body == pod.body);
            let waits = is_current && pod.applied + min_ready > self.now;
            pod.status == "ready" && !pod.is_terminating && !waits
        };
        self.count - self.pods.iter().filter(|(name, pod)| is_available(name, pod)).count()
    }

    /// The images for which the host calls the guest, in the order of the calls.
    fn tried(&self) -> &[u64] {
        let earlier = self.earlier.as_deref().unwrap_or_default();
        &earlier[earlier.len().saturating_sub(EARLIER_CALLS_MAX)..]
    }

    /// Plans as the host does: twice if an earlier revision has missing objects over the limit.
    fn plan(&self, case: &mut Case) -> Plan {
        let plan = case.plan();
        let present = case.lookups();
        let mut groups =
            groups_over_limit(&plan.updates, &case.desired_state, &present, &case.primary);
        let replaced: usize = self
            .tried()
            .iter()
            .map(|image| {
                let old = self.case_of(*image).desired_state;
                substitute(&mut case.desired_state, &old, &mut groups)
            })
            .sum();
        if replaced > 0 { case.plan() } else { plan }
    }

    /// Checks that the host makes no object of an earlier version new while as many others as the
    /// group allows are in flight, or the group is stopped or paused.
    fn check_creates(&self, plan: &Plan, case: &Case, present: &Case) {
        let creates: Vec<_> =
            plan.steps.iter().filter(|step| step.action == Action::Create).collect();
        if creates.is_empty() {
            return;
        }
        let earlier: Vec<Value> = self
            .tried()
            .iter()
            .flat_map(|image| self.case_of(*image).desired_state.objects)
            .map(|object| object.body)
            .collect();
        let is_proven =
            self.pods.values().any(|pod| earlier.contains(&pod.body) && !is_desired(present, pod));
        if !is_proven {
            return;
        }
        let bodies = creates.iter().map(|step| {
            let body = &case.desired_state.objects[step.desired_index.unwrap()].body;
            (step.object_ref.key.name(), body)
        });
        let made_new = bodies
            .filter(|(name, body)| {
                let last = self.last.get(*name);
                is_body(present, name, body) && last.is_some_and(|last| last != *body)
            })
            .count();
        let in_flight = self
            .pods
            .values()
            .filter(|pod| pod.is_terminating || is_desired(present, pod) && pod.status != "ready");
        let is_stopped =
            matches!(plan.updates[0].state, UpdateState::Failed(..) | UpdateState::Paused);
        let places = if is_stopped { 0 } else { self.max.saturating_sub(in_flight.count()) };
        assert!(made_new <= places, "{made_new} > {places}: {:?}", lines(plan));
    }

    /// One round of the host: plans, and applies the plan. Gives whether it wrote.
    fn round(&mut self) -> bool {
        let mut case = self.case();
        case.state = self.state.clone();
        let plan = self.plan(&mut case);
        // A host that has just started plans the same.
        let mut restarted = self.case();
        assert_eq!(lines(&self.plan(&mut restarted)), lines(&plan));
        assert_eq!(restarted.desired_state, case.desired_state);
        let present = self.case();
        self.check_creates(&plan, &case, &present);
        let before = self.unavailable(&present);
        for step in &plan.steps {
            let Some(index) = step.desired_index else { continue };
            let object = &case.desired_state.objects[index];
            let name = step.object_ref.key.name().to_owned();
            match &step.action {
                Action::Create => {
                    self.uids += 1;
                    let pod = Pod {
                        body: object.body.clone(),
                        uid: self.uids,
                        applied: self.now,
                        status: "pending",
                        is_terminating: false,
                    };
                    self.last.insert(name.clone(), pod.body.clone());
                    self.pods.insert(name.clone(), pod);
                }
                Action::Apply { .. } => {
                    let pod = self.pods.get_mut(&name).unwrap();
                    pod.body = object.body.clone();
                    pod.applied = self.now;
                    pod.status = "pending";
                    self.last.insert(name.clone(), object.body.clone());
                }
                Action::Recreate { .. } if self.numbers.below(2) == 0 => {
                    self.pods.remove(&name);
                    self.state.applied.remove(&step.object_ref);
                    continue;
                }
                Action::Recreate { .. } => {
                    self.pods.get_mut(&name).unwrap().is_terminating = true;
                    self.state.applied.remove(&step.object_ref);
                    continue;
                }
                _ => continue,
            }
            let mut answer = self.case();
            answer.live.retain(|(object_ref, _)| *object_ref == step.object_ref);
            let manager = &answer.primary.manager;
            let applied = LastApplied::with_digest(object.digest(), &answer.live[0].1, manager);
            self.state.applied.insert(step.object_ref.clone(), applied.unwrap());
        }
        let after = self.unavailable(&present);
        assert!(after <= before.max(self.max), "{before} -> {after}: {:?}", lines(&plan));
        plan.steps.iter().any(|step| !matches!(step.action, Action::Skip(_)))
    }

    /// Something happens in the cluster.
    fn event(&mut self) {
        let index = self.numbers.below(u64::try_from(self.count).unwrap());
        let name = format!("p{index}");
        match self.numbers.below(12) {
            0 => self.change(self.image + 1),
            1 => self.change(self.image.saturating_sub(1)),
            2 => self.state = PlannerState { clean: true, ..PlannerState::default() },
            3 => {
                self.pods.remove(&name);
            }
            4 => {
                if let Some(pod) = self.pods.get_mut(&name) {
                    pod.status = ["failed", "pending"][usize::from(pod.uid % 2 == 0)];
                }
            }
            5 => self.now += 7,
            6 => self.evict(),
            7 if self.earlier.is_some() => {
                self.group["paused"] = (!self.group["paused"].as_bool().unwrap_or(false)).into();
            }
            _ => self.heal(&name),
        }
    }

    /// A node is drained: about half of the Pods vanish at once, or after a while.
    fn evict(&mut self) {
        let names: Vec<String> = self.pods.keys().cloned().collect();
        for name in names {
            match self.numbers.below(4) {
                0 => {
                    self.pods.remove(&name);
                }
                1 => self.pods.get_mut(&name).unwrap().is_terminating = true,
                _ => {}
            }
        }
    }

    fn heal(&mut self, name: &str) {
        if self.pods.get(name).is_some_and(|pod| pod.is_terminating) {
            self.pods.remove(name);
        } else if let Some(pod) = self.pods.get_mut(name) {
            pod.status = "ready";
        }
    }
}

impl Pod {
    fn json(&self) -> Value {
        let mut value = self.body.clone();
        let metadata = &mut value["metadata"];
        metadata["uid"] = format!("uid-{}", self.uid).into();
        if self.is_terminating {
            metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
        }
        let time = Timestamp::from_second(self.applied).unwrap().to_string();
        metadata["managedFields"] = json!([{"manager": "innkeeper/podroute/u1", "operation": "Apply",
            "time": time, "fieldsV1": entry(&self.body)}]);
        value["status"] = match self.status {
            "ready" => {
                json!({"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]})
            }
            "failed" => json!({"phase": "Failed"}),
            _ => json!({"phase": "Pending"}),
        };
        value
    }
}

/// Whether a Pod is as it is desired now.
fn is_desired(present: &Case, pod: &Pod) -> bool {
    present.desired_state.objects.iter().any(|object| object.body == pod.body)
}

/// Whether a body is the one that the Pod of this name is to have now.
fn is_body(present: &Case, name: &str, body: &Value) -> bool {
    let mut objects = present.desired_state.objects.iter();
    objects.any(|object| object.object_ref.key.name() == name && object.body == *body)
}

fn lines(plan: &Plan) -> Vec<String> {
    plan.steps.iter().map(ToString::to_string).collect()
}

#[test]
fn update_keeps_its_limit_whatever_happens_and_ends_when_objects_are_healthy() {
    for seed in 1..=40 {
        let mut model = Model::new(seed, seed % 2 == 0);
        for _ in 0..40 {
            model.event();
            model.round();
        }
        model.group["paused"] = false.into();
        let mut rounds = 0;
        loop {
            let wrote = model.round();
            let names: Vec<String> = model.pods.keys().cloned().collect();
            let mut is_healthy = names.len() == model.count;
            for name in &names {
                let pod = &model.pods[name];
                is_healthy &= pod.status == "ready" && !pod.is_terminating;
                model.heal(name);
            }
            model.now += 10;
            let case = model.case();
            let is_current = case.desired_state.objects.iter().all(|object| {
                let pod = model.pods.get(object.object_ref.key.name());
                pod.is_some_and(|pod| pod.body == object.body)
            });
            if !wrote && is_healthy && is_current {
                break;
            }
            rounds += 1;
            assert!(rounds < 100, "seed {seed}: the update does not end");
        }
    }
}
