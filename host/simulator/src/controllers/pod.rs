//! Pods live: a scheduler and a kubelet of one large node.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::client::{CLAIMS, Client, KUBELET, PODS, condition, number, text, time};
use super::event::Said;
use super::pod_script::{PodRule, PodScript};
use super::pod_status::{State, Written};
use super::replica_set::{has_ended, is_ready};
use super::workload::Workload;
use crate::cluster::{Cluster, later};
use crate::object::{is_terminating, meta, with_status};
use crate::store::Key;
use crate::tracked::Tracked;

const SCHEDULER: Client = Client::scheduler();
/// The one node.
const NODE: &str = "node-1";

/// How long a container takes to end when it is told to.
const STOP: SignedDuration = SignedDuration::from_secs(1);
/// After how long a failed pull is tried again, and a Pod that cannot be scheduled.
const RETRY: SignedDuration = SignedDuration::from_secs(10);
/// The longest wait of a container before it is started again.
const RESTART_MAX_S: i64 = 300;

/// What a node knows of its Pods.
#[derive(Debug, Default)]
pub(crate) struct PodLives {
    script: PodScript,
    /// What happens next to the Pod of a uid, and when.
    next: BTreeMap<String, (Step, Timestamp)>,
    /// Events that may be said again.
    pub(super) told: BTreeMap<String, Key>,
    addresses: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Start,
    GetReady,
    End,
    Stop,
}

impl Cluster {
    /// Says what becomes of Pods from here on.
    pub(crate) fn script_pods(&mut self, script: PodScript) {
        self.pods.script = script;
        let Some(pods) = self.store.collection(&PODS.key()) else { return };
        let keys: Vec<Key> = pods.objects.keys().cloned().collect();
        for key in keys {
            if let Some(pod) = self.read(&PODS, &key)
                && !is_terminating(&pod)
            {
                self.pods.next.remove(meta(&pod, "uid"));
                self.following.wake(self.controllers, Workload::Pods, &key);
            }
        }
    }

    /// Looks at a Pod.
    pub(super) fn live(&mut self, key: &Key) {
        let Some(pod) = self.read(&PODS, key) else { return };
        if text(&pod["spec"]["nodeName"]).is_empty() {
            if !is_terminating(&pod) {
                self.schedule(key, Arc::unwrap_or_clone(pod));
            }
            return;
        }
        let uid = meta(&pod, "uid").to_owned();
        let next = self.pods.next.get(&uid).copied();
        if is_terminating(&pod) {
            return self.stop(key, &pod, next);
        }
        if has_ended(&pod) {
            self.pods.next.remove(&uid);
            return;
        }
        let rule = self.pods.script.rule(&pod);
        match next {
            Some((_, at)) if at > self.now() => {}
            Some((step, _)) => {
                self.pods.next.remove(&uid);
                self.step(key, &pod, step, &rule);
            }
            None => self.plan(key, &pod, &rule),
        }
    }

    /// Gives a Pod the node, when its claims have volumes.
    fn schedule(&mut self, key: &Key, mut pod: Tracked) {
        if self.controllers.workloads.has(Workload::Claims)
            && let Some(claim) = self.missing_claim(&pod)
        {
            let known = condition(&pod["status"], "PodScheduled");
            if known.is_none_or(|known| known["message"] != claim) {
                let why = claim.as_str();
                pod["status"]["conditions"] = json!([{
                    "type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": why,
                    "lastProbeTime": null, "lastTransitionTime": self.time(),
                    "observedGeneration": crate::object::generation(&pod),
                }]);
                let said = Said::warning("default-scheduler", "FailedScheduling", why);
                self.say(&SCHEDULER, &pod, &said);
                let _ = self.replace_as(&SCHEDULER, &PODS, "status", pod);
            }
            let again = later(self.now(), RETRY);
            self.following.wake_at(again, Workload::Pods, key);
            return;
        }
        // A binding is no write of the Pod.
        pod["spec"]["nodeName"] = NODE.into();
        let now = self.time();
        let state = State::Waiting("ContainerCreating", "");
        pod["status"] =
            Written { pod: &pod, now: &now, state, is_over: false, address: "" }.status();
        let pod = self.put(&PODS.key(), key, pod);
        let message = format!("Successfully assigned {}/{} to {NODE}", key.0, key.1);
        let said = Said::normal("default-scheduler", "Scheduled", &message);
        self.say(&SCHEDULER, &pod, &said);
    }

    /// What the scheduler says of a claim that has no volume.
    fn missing_claim(&self, pod: &Value) -> Option<String> {
        let volumes = pod["spec"]["volumes"].as_array().into_iter().flatten();
        for name in volumes.filter_map(|one| one["persistentVolumeClaim"]["claimName"].as_str()) {
            let key = (meta(pod, "namespace").to_owned(), name.to_owned());
            let claim = self.read(&CLAIMS, &key);
            match claim {
                None => {
                    return Some(format!(
                        "0/1 nodes are available: persistentvolumeclaim {name:?} not found. preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling."
                    ));
                }
                Some(claim) if claim["status"]["phase"] != "Bound" => {
                    let why = "0/1 nodes are available: pod has unbound immediate PersistentVolumeClaims. preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling.";
                    return Some(why.to_owned());
                }
                Some(_) => {}
            }
        }
        None
    }

    fn at(&mut self, key: &Key, pod: &Value, step: Step, wait: Option<SignedDuration>) {
        let Some(wait) = wait else { return };
        let at = later(self.now(), wait);
        self.pods.next.insert(meta(pod, "uid").to_owned(), (step, at));
        self.following.wake_at(at, Workload::Pods, key);
    }

    /// Says what happens next.
    fn plan(&mut self, key: &Key, pod: &Value, rule: &PodRule) {
        let container = &pod["status"]["containerStatuses"][0];
        if container["state"]["running"].is_null() {
            let wait = match rule.start_after {
                Some(wait) if container["lastState"]["terminated"].is_object() => {
                    Some(wait.max(restart_wait(container)))
                }
                other => other,
            };
            return self.at(key, pod, Step::Start, wait);
        }
        // It is not unready for having been told so late, but for the script.
        let probe = pod["spec"]["containers"].as_array().into_iter().flatten();
        let probe = probe.map(|one| &one["readinessProbe"]).find(|probe| probe.is_object());
        let wait = probe.map_or(Some(SignedDuration::ZERO), |probe| {
            let delay = SignedDuration::from_secs(number(&probe["initialDelaySeconds"]));
            rule.ready_after.map(|after| after + delay)
        });
        let wait = if rule.ready_after.is_none() { None } else { wait };
        match wait {
            None if is_ready(pod) => {
                self.report_pod(pod, State::Running { is_ready: false }, false);
            }
            Some(wait) if !is_ready(pod) => return self.at(key, pod, Step::GetReady, Some(wait)),
            _ => {}
        }
        let started = time(&container["state"]["running"]["startedAt"]);
        let passed = self.now().duration_since(started);
        self.at(key, pod, Step::End, rule.ends_after.map(|after| after - passed));
    }

    fn step(&mut self, key: &Key, pod: &Value, step: Step, rule: &PodRule) {
        match step {
            Step::Start if !rule.pulls => self.fail_to_pull(key, pod),
            Step::Start => self.start(pod, rule),
            Step::GetReady => self.report_pod(pod, State::Running { is_ready: true }, false),
            Step::End => {
                let policy = text(&pod["spec"]["restartPolicy"]);
                let over = policy == "Never" || (policy == "OnFailure" && rule.exit_code == 0);
                self.report_pod(pod, State::Ended { code: rule.exit_code }, over);
                if !over && let Some(pod) = self.read(&PODS, key) {
                    let message = "back-off restarting failed container";
                    self.report_pod(&pod, State::Waiting("CrashLoopBackOff", message), false);
                }
            }
            Step::Stop => {}
        }
    }

    fn start(&mut self, pod: &Value, rule: &PodRule) {
        let probed = pod["spec"]["containers"].as_array().into_iter().flatten();
        let probed = probed.into_iter().any(|one| one["readinessProbe"].is_object());
        for container in pod["spec"]["containers"].as_array().into_iter().flatten() {
            let image = text(&container["image"]);
            let name = text(&container["name"]);
            let present = format!("Container image {image:?} already present on machine");
            let created = format!("Container created: {name}");
            let started = format!("Container started: {name}");
            for (reason, message) in
                [("Pulled", &present), ("Created", &created), ("Started", &started)]
            {
                self.say(&KUBELET, pod, &Said::normal("kubelet", reason, message));
            }
        }
        let is_ready = !probed && rule.ready_after.is_some();
        self.report_pod(pod, State::Running { is_ready }, false);
    }

    fn fail_to_pull(&mut self, key: &Key, pod: &Value) {
        let image = text(&pod["spec"]["containers"][0]["image"]).to_owned();
        let pulling = format!("Pulling image {image:?}");
        self.say(&KUBELET, pod, &Said::normal("kubelet", "Pulling", &pulling));
        let failed = format!("Failed to pull image {image:?}: {image}: not found");
        self.say(&KUBELET, pod, &Said::warning("kubelet", "Failed", &failed));
        self.say(&KUBELET, pod, &Said::warning("kubelet", "Failed", "Error: ErrImagePull"));
        let waits = format!("Back-off pulling image {image:?}: ErrImagePull: {image}: not found");
        self.report_pod(pod, State::Waiting("ImagePullBackOff", &waits), false);
        self.at(key, pod, Step::Start, Some(RETRY));
    }

    /// Writes the status of a Pod.
    fn report_pod(&mut self, pod: &Value, state: State<'_>, is_over: bool) {
        let now = self.time();
        let address =
            if pod["status"]["podIP"].is_null() { self.pod_address() } else { String::new() };
        let status = Written { pod, now: &now, state, is_over, address: &address }.status();
        let _ = self.replace_as(&KUBELET, &PODS, "status", with_status(pod, status));
    }

    fn pod_address(&mut self) -> String {
        self.pods.addresses += 1;
        let [_, a, b, c] = (self.pods.addresses + 1).to_be_bytes();
        format!("10.{}.{b}.{c}", 128 + a)
    }

    /// Ends a Pod that is being deleted: its containers end, then it is gone.
    fn stop(&mut self, key: &Key, pod: &Value, next: Option<(Step, Timestamp)>) {
        let grace = number(&pod["metadata"]["deletionGracePeriodSeconds"]);
        match next {
            // It has been ended; its finalizers hold it.
            _ if grace == 0 => {
                self.pods.next.remove(meta(pod, "uid"));
            }
            Some((Step::Stop, at)) if at > self.now() => {}
            Some((Step::Stop, _)) => {
                self.pods.next.remove(meta(pod, "uid"));
                if !has_ended(pod) {
                    // What a process says that was ended by SIGTERM.
                    self.report_pod(pod, State::Ended { code: 143 }, true);
                }
                self.delete_as(&KUBELET, &PODS, pod, Some(0));
            }
            _ => {
                for container in pod["spec"]["containers"].as_array().into_iter().flatten() {
                    let message = format!("Stopping container {}", text(&container["name"]));
                    self.say(&KUBELET, pod, &Said::normal("kubelet", "Killing", &message));
                }
                let wait = STOP.min(SignedDuration::from_secs(grace));
                self.at(key, pod, Step::Stop, Some(wait));
            }
        }
    }
}

/// How long a container waits before it is started again: ten seconds, then twice as long each time.
fn restart_wait(container: &Value) -> SignedDuration {
    let times = u32::try_from(number(&container["restartCount"])).unwrap_or(0).min(10);
    SignedDuration::from_secs((10_i64 << times).min(RESTART_MAX_S))
}
