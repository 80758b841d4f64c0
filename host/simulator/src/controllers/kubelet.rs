//! The scheduler and the kubelet of one large node.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::apply::managed_object::ManagedObject;
use crate::controllers::client;
use crate::controllers::client::{CLAIMS, Client, KUBELET, PODS};
use crate::controllers::event_recorder;
use crate::controllers::event_recorder::EventSpec;
use crate::controllers::pod_status::{State, Written};
use crate::controllers::replica_set::{has_ended, is_ready};
use crate::state::cluster::{Cluster, later};
use crate::state::controller_set::Workload;
use crate::state::kubelet::Step;
use crate::state::pod_script::{PodRule, PodScript};
use crate::types::members::{condition, number, text, time};
use crate::types::object::{generation, is_terminating, meta, with_status};
use crate::types::object_key::Key;

const SCHEDULER: Client = Client::scheduler();
/// The one node, of a cluster without Nodes.
pub(crate) const NODE: &str = "node-1";

/// How long a container takes to stop.
const STOP: SignedDuration = SignedDuration::from_secs(1);
/// The exit code of a container that ends by SIGTERM.
const STOPPED: i64 = 143;
/// The retry interval of a failed pull, and of a Pod that cannot be scheduled.
const RETRY: SignedDuration = SignedDuration::from_secs(10);
/// The longest wait of a container before it is started again.
const RESTART_MAX_S: i64 = 300;

/// Sets how Pods run from here on.
pub(crate) fn script_pods(cluster: &mut Cluster, script: PodScript) {
    cluster.kubelet.script = script;
    let Some(pods) = cluster.store.collection(&PODS.key()) else { return };
    let keys: Vec<Key> = pods.objects.keys().cloned().collect();
    for key in keys {
        if let Some(pod) = client::get(cluster, &PODS, &key)
            && !is_terminating(&pod)
        {
            cluster.kubelet.next.remove(meta(&pod, "uid"));
            cluster.work_queue.wake(cluster.controllers, Workload::Pods, &key);
        }
    }
}

/// Reconciles one object.
pub(crate) fn sync(cluster: &mut Cluster, key: &Key) {
    let Some(pod) = client::get(cluster, &PODS, key) else { return };
    if text(&pod["spec"]["nodeName"]).is_empty() {
        if !is_terminating(&pod) {
            schedule(cluster, key, Arc::unwrap_or_clone(pod));
        }
        return;
    }
    let uid = meta(&pod, "uid").to_owned();
    let next = cluster.kubelet.next.get(&uid).copied();
    if is_terminating(&pod) {
        return stop(cluster, key, &pod, next);
    }
    if has_ended(&pod) {
        cluster.kubelet.next.remove(&uid);
        return;
    }
    let rule = cluster.kubelet.script.rule(&pod);
    match next {
        Some((_, at)) if at > cluster.now() => {}
        Some((step, _)) => {
            cluster.kubelet.next.remove(&uid);
            perform(cluster, key, &pod, step, &rule);
        }
        None => plan(cluster, key, &pod, &rule),
    }
}

/// Assigns a Pod to the node when its claims are bound.
fn schedule(cluster: &mut Cluster, key: &Key, mut pod: ManagedObject) {
    if cluster.controllers.workloads.has(Workload::Claims)
        && let Some(claim) = unbound_claim(cluster, &pod)
    {
        let known = condition(&pod["status"], "PodScheduled");
        if known.is_none_or(|known| known["message"] != claim) {
            let why = claim.as_str();
            pod["status"]["conditions"] = json!([{
                "type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": why,
                "lastProbeTime": null, "lastTransitionTime": cluster.time(),
                "observedGeneration": generation(&pod),
            }]);
            let event = EventSpec::warning("default-scheduler", "FailedScheduling", why);
            event_recorder::record(cluster, &SCHEDULER, &pod, &event);
            let _ = client::replace(cluster, &SCHEDULER, &PODS, "status", pod);
        }
        let again = later(cluster.now(), RETRY);
        cluster.work_queue.wake_at(again, Workload::Pods, key);
        return;
    }
    // A binding does not change the managers of the Pod.
    let node = affine_node(&pod).unwrap_or(NODE).to_owned();
    pod["spec"]["nodeName"] = node.as_str().into();
    let now = cluster.time();
    let state = State::Waiting("ContainerCreating", "");
    pod["status"] = Written { pod: &pod, now: &now, state, is_over: false, address: "" }.status();
    let pod = cluster.put(&PODS.key(), key, pod);
    let message = format!("Successfully assigned {}/{} to {node}", key.0, key.1);
    let event = EventSpec::normal("default-scheduler", "Scheduled", &message);
    event_recorder::record(cluster, &SCHEDULER, &pod, &event);
}

/// The node to which the affinity of a Pod of a DaemonSet binds it.
fn affine_node(pod: &Value) -> Option<&str> {
    let required = "requiredDuringSchedulingIgnoredDuringExecution";
    let terms = &pod["spec"]["affinity"]["nodeAffinity"][required]["nodeSelectorTerms"];
    let field = &terms[0]["matchFields"][0];
    field["values"][0].as_str().filter(|_| field["key"] == "metadata.name")
}

/// The message of the scheduler for a claim that is not bound.
fn unbound_claim(cluster: &Cluster, pod: &Value) -> Option<String> {
    let volumes = pod["spec"]["volumes"].as_array().into_iter().flatten();
    for name in volumes.filter_map(|one| one["persistentVolumeClaim"]["claimName"].as_str()) {
        let key = (meta(pod, "namespace").to_owned(), name.to_owned());
        let claim = client::get(cluster, &CLAIMS, &key);
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

fn at(cluster: &mut Cluster, key: &Key, pod: &Value, step: Step, wait: Option<SignedDuration>) {
    let Some(wait) = wait else { return };
    let at = later(cluster.now(), wait);
    cluster.kubelet.next.insert(meta(pod, "uid").to_owned(), (step, at));
    cluster.work_queue.wake_at(at, Workload::Pods, key);
}

/// Plans the next step of a Pod.
fn plan(cluster: &mut Cluster, key: &Key, pod: &Value, rule: &PodRule) {
    let container = &pod["status"]["containerStatuses"][0];
    if !container["state"]["running"].is_null()
        && generation(pod) > number(&pod["status"]["observedGeneration"])
    {
        return observe(cluster, key, pod, rule);
    }
    if container["state"]["running"].is_null() {
        let wait = match rule.start_after {
            Some(wait) if container["lastState"]["terminated"].is_object() => {
                Some(wait.max(restart_wait(container)))
            }
            other => other,
        };
        return at(cluster, key, pod, Step::Start, wait);
    }
    // The script decides when the Pod is ready, not the time of this event.
    let probe = pod["spec"]["containers"].as_array().into_iter().flatten();
    let probe = probe.map(|one| &one["readinessProbe"]).find(|probe| probe.is_object());
    let wait = probe.map_or(Some(SignedDuration::ZERO), |probe| {
        let delay = SignedDuration::from_secs(number(&probe["initialDelaySeconds"]));
        rule.ready_after.map(|after| after + delay)
    });
    let wait = if rule.ready_after.is_none() { None } else { wait };
    match wait {
        None if is_ready(pod) => {
            update_status(cluster, pod, State::Running { is_ready: false }, false);
        }
        Some(wait) if !is_ready(pod) => return at(cluster, key, pod, Step::GetReady, Some(wait)),
        _ => {}
    }
    let started = time(&container["state"]["running"]["startedAt"]);
    let passed = cluster.now().duration_since(started);
    at(cluster, key, pod, Step::End, rule.ends_after.map(|after| after - passed));
}

/// Observes a change of a running Pod. Containers with another image start again.
fn observe(cluster: &mut Cluster, key: &Key, pod: &Value, rule: &PodRule) {
    let images = |list: &Value| {
        let list = list.as_array().into_iter().flatten();
        list.map(|one| text(&one["image"]).to_owned()).collect::<Vec<_>>()
    };
    if images(&pod["spec"]["containers"]) == images(&pod["status"]["containerStatuses"]) {
        return update_status(cluster, pod, State::Running { is_ready: is_ready(pod) }, false);
    }
    update_status(cluster, pod, State::Ended { code: STOPPED }, false);
    if let Some(pod) = client::get(cluster, &PODS, key) {
        update_status(cluster, &pod, State::Waiting("ContainerCreating", ""), false);
        at(cluster, key, &pod, Step::Start, rule.start_after);
    }
}

fn perform(cluster: &mut Cluster, key: &Key, pod: &Value, step: Step, rule: &PodRule) {
    match step {
        Step::Start if !rule.pulls => fail_to_pull(cluster, key, pod),
        Step::Start => start(cluster, pod, rule),
        Step::GetReady => update_status(cluster, pod, State::Running { is_ready: true }, false),
        Step::End => {
            let policy = text(&pod["spec"]["restartPolicy"]);
            let over = policy == "Never" || (policy == "OnFailure" && rule.exit_code == 0);
            update_status(cluster, pod, State::Ended { code: rule.exit_code }, over);
            if !over && let Some(pod) = client::get(cluster, &PODS, key) {
                let message = "back-off restarting failed container";
                update_status(cluster, &pod, State::Waiting("CrashLoopBackOff", message), false);
            }
        }
        Step::Stop => {}
    }
}

fn start(cluster: &mut Cluster, pod: &Value, rule: &PodRule) {
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
            event_recorder::record(
                cluster,
                &KUBELET,
                pod,
                &EventSpec::normal("kubelet", reason, message),
            );
        }
    }
    let is_ready = !probed && rule.ready_after.is_some();
    update_status(cluster, pod, State::Running { is_ready }, false);
}

fn fail_to_pull(cluster: &mut Cluster, key: &Key, pod: &Value) {
    let image = text(&pod["spec"]["containers"][0]["image"]).to_owned();
    let pulling = format!("Pulling image {image:?}");
    event_recorder::record(
        cluster,
        &KUBELET,
        pod,
        &EventSpec::normal("kubelet", "Pulling", &pulling),
    );
    let failed = format!("Failed to pull image {image:?}: {image}: not found");
    event_recorder::record(
        cluster,
        &KUBELET,
        pod,
        &EventSpec::warning("kubelet", "Failed", &failed),
    );
    event_recorder::record(
        cluster,
        &KUBELET,
        pod,
        &EventSpec::warning("kubelet", "Failed", "Error: ErrImagePull"),
    );
    let waits = format!("Back-off pulling image {image:?}: ErrImagePull: {image}: not found");
    update_status(cluster, pod, State::Waiting("ImagePullBackOff", &waits), false);
    at(cluster, key, pod, Step::Start, Some(RETRY));
}

/// Writes the status of a Pod.
fn update_status(cluster: &mut Cluster, pod: &Value, state: State<'_>, is_over: bool) {
    let now = cluster.time();
    let address =
        if pod["status"]["podIP"].is_null() { pod_address(cluster) } else { String::new() };
    let status = Written { pod, now: &now, state, is_over, address: &address }.status();
    let _ = client::replace(cluster, &KUBELET, &PODS, "status", with_status(pod, status));
}

fn pod_address(cluster: &mut Cluster) -> String {
    cluster.kubelet.addresses += 1;
    let [_, a, b, c] = (cluster.kubelet.addresses + 1).to_be_bytes();
    format!("10.{}.{b}.{c}", 128 + a)
}

/// Ends a Pod that is being deleted: its containers end, then the Pod is removed.
fn stop(cluster: &mut Cluster, key: &Key, pod: &Value, next: Option<(Step, Timestamp)>) {
    let grace = number(&pod["metadata"]["deletionGracePeriodSeconds"]);
    match next {
        // Its containers have ended; its finalizers hold it.
        _ if grace == 0 => {
            cluster.kubelet.next.remove(meta(pod, "uid"));
        }
        Some((Step::Stop, at)) if at > cluster.now() => {}
        Some((Step::Stop, _)) => {
            cluster.kubelet.next.remove(meta(pod, "uid"));
            if !has_ended(pod) {
                // The exit code of a process that SIGTERM ended.
                update_status(cluster, pod, State::Ended { code: STOPPED }, true);
            }
            client::delete(cluster, &KUBELET, &PODS, pod, Some(0));
        }
        _ => {
            for container in pod["spec"]["containers"].as_array().into_iter().flatten() {
                let message = format!("Stopping container {}", text(&container["name"]));
                event_recorder::record(
                    cluster,
                    &KUBELET,
                    pod,
                    &EventSpec::normal("kubelet", "Killing", &message),
                );
            }
            let wait = STOP.min(SignedDuration::from_secs(grace));
            at(cluster, key, pod, Step::Stop, Some(wait));
        }
    }
}

/// The restart backoff of a container: ten seconds, doubled each time.
fn restart_wait(container: &Value) -> SignedDuration {
    let times = u32::try_from(number(&container["restartCount"])).unwrap_or(0).min(10);
    SignedDuration::from_secs((10_i64 << times).min(RESTART_MAX_S))
}
