//! A model of update groups: whatever happens, no more objects are unavailable than the group
//! allows, and an update of healthy objects ends.

use std::collections::BTreeMap;

use innkeeper_contract::{IntOrPercent, UpdateMethod};
use innkeeper_core::in_sync::LastApplied;
use innkeeper_core::plan::{Action, Plan, PlanState};
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
    state: PlanState,
    now: i64,
    uids: u64,
}

impl Model {
    fn new(seed: u64) -> Self {
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
            state: PlanState { clean: true, ..PlanState::default() },
            now: NOW,
            uids: 0,
        }
    }

    /// The case of the planner for the present cluster.
    fn case(&self) -> Case {
        let objects: Value = (0..self.count)
            .map(|index| desired_object("Pod", &format!("p{index}"), &json!({"image": self.image})))
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

    /// One round of the host: plans, and applies the plan. Gives whether it wrote.
    fn round(&mut self) -> bool {
        let mut case = self.case();
        case.state = self.state.clone();
        let plan = case.plan();
        // A host that has just started plans the same.
        case.state = PlanState { clean: true, ..PlanState::default() };
        assert_eq!(lines(&case.plan()), lines(&plan));
        let before = self.unavailable(&case);
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
                    self.pods.insert(name.clone(), pod);
                }
                Action::Apply { .. } => {
                    let pod = self.pods.get_mut(&name).unwrap();
                    pod.body = object.body.clone();
                    pod.applied = self.now;
                    pod.status = "pending";
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
        let after = self.unavailable(&case);
        assert!(after <= before.max(self.max), "{before} -> {after}: {:?}", lines(&plan));
        plan.steps.iter().any(|step| !matches!(step.action, Action::Skip(_)))
    }

    /// Something happens in the cluster.
    fn event(&mut self) {
        let index = self.numbers.below(u64::try_from(self.count).unwrap());
        let name = format!("p{index}");
        match self.numbers.below(9) {
            0 => self.image += 1,
            1 => self.image = self.image.saturating_sub(1),
            2 => self.state = PlanState { clean: true, ..PlanState::default() },
            3 => {
                self.pods.remove(&name);
            }
            4 => {
                if let Some(pod) = self.pods.get_mut(&name) {
                    pod.status = ["failed", "pending"][usize::from(pod.uid % 2 == 0)];
                }
            }
            5 => self.now += 7,
            _ => self.heal(&name),
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

fn lines(plan: &Plan) -> Vec<String> {
    plan.steps.iter().map(ToString::to_string).collect()
}

#[test]
fn update_keeps_its_limit_whatever_happens_and_ends_when_objects_are_healthy() {
    for seed in 1..=40 {
        let mut model = Model::new(seed);
        for _ in 0..40 {
            model.event();
            model.round();
        }
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
