//! The DaemonSet controller: one Pod on each node that the Pod fits.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::apply::managed_object::ManagedObject;
use crate::controllers::client;
use crate::controllers::client::{Client, DAEMON_SETS, NODES, PODS};
use crate::controllers::event_recorder;
use crate::controllers::event_recorder::EventSpec;
use crate::controllers::kubelet::NODE;
use crate::controllers::node_fit::{NodeFit, tolerations};
use crate::controllers::replica_set::{available_at, is_ready, pod_of};
use crate::controllers::revision_history;
use crate::state::cluster::Cluster;
use crate::state::controller_set::Workload;
use crate::types::members::{counts, number, text};
use crate::types::object::{generation, is_terminating, meta};
use crate::types::object_key::Key;

const CLIENT: Client =
    Client::controller("system:serviceaccount:kube-system:daemon-set-controller");
const COMPONENT: &str = "daemonset-controller";
const REVISION: &str = "controller-revision-hash";
const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";

/// A node with the Pods of a DaemonSet on it.
struct NodePods {
    name: String,
    fit: NodeFit,
    pods: Vec<Arc<ManagedObject>>,
}

/// Reconciles one object.
pub(crate) fn sync(cluster: &mut Cluster, key: &Key) {
    let Some(set) = client::get(cluster, &DAEMON_SETS, key) else { return };
    if is_terminating(&set) {
        return;
    }
    let update = revision_history::revision_of(cluster, &CLIENT, &set, &DAEMON_SETS);
    let nodes = nodes(cluster, &set);
    manage(cluster, key, &set, &nodes, &update);
    if set["spec"]["updateStrategy"]["type"] != "OnDelete" {
        let nodes = self::nodes(cluster, &set);
        roll(cluster, &set, &nodes, &update);
    }
    revision_history::truncate(cluster, &CLIENT, &set);
    let nodes = self::nodes(cluster, &set);
    update_status(cluster, key, &nodes, &update);
}

/// The nodes in the order of their names; a cluster without Nodes has one. A node that does not
/// exist any more fits no Pod.
fn nodes(cluster: &Cluster, set: &Value) -> Vec<NodePods> {
    let known = cluster.store.collection(&NODES.key());
    let keys: Vec<Key> = known.iter().flat_map(|all| all.objects.keys().cloned()).collect();
    let mut nodes: Vec<NodePods> = keys
        .iter()
        .filter_map(|key| client::get(cluster, &NODES, key))
        .map(|node| NodePods {
            name: meta(&node, "name").to_owned(),
            fit: NodeFit::of(&set["spec"]["template"]["spec"], &node),
            pods: Vec::new(),
        })
        .collect();
    if nodes.is_empty() {
        nodes.push(NodePods { name: NODE.to_owned(), fit: NodeFit::Runs, pods: Vec::new() });
    }
    for pod in client::controlled_by(cluster, set, &PODS) {
        let name = node_of(&pod).to_owned();
        match nodes.iter_mut().find(|node| node.name == name) {
            Some(node) => node.pods.push(pod),
            None => nodes.push(NodePods { name, fit: NodeFit::None, pods: vec![pod] }),
        }
    }
    nodes
}

/// The node of a Pod, also before the scheduler has bound it.
fn node_of(pod: &Value) -> &str {
    let terms = &pod["spec"]["affinity"]["nodeAffinity"][REQUIRED]["nodeSelectorTerms"];
    match text(&pod["spec"]["nodeName"]) {
        "" => text(&terms[0]["matchFields"][0]["values"][0]),
        name => name,
    }
}

/// Creates missing Pods, and deletes ended and surplus ones.
fn manage(cluster: &mut Cluster, key: &Key, set: &Value, nodes: &[NodePods], update: &str) {
    for node in nodes {
        if node.fit == NodeFit::None {
            for pod in node.pods.iter().filter(|pod| !is_terminating(pod)) {
                delete_pod(cluster, set, pod);
            }
            continue;
        }
        if node.pods.is_empty() && node.fit == NodeFit::Runs {
            create_pod(cluster, key, set, &node.name, update);
        }
        let mut running = Vec::new();
        for pod in node.pods.iter().filter(|pod| !is_terminating(pod)) {
            let (ended, action) = match text(&pod["status"]["phase"]) {
                "Failed" => ("failed", "kill"),
                "Succeeded" => ("succeeded", "delete"),
                _ => {
                    running.push(pod);
                    continue;
                }
            };
            let message = format!(
                "Found {ended} daemon pod {}/{} on node {}, will try to {action} it",
                key.0,
                meta(pod, "name"),
                node.name
            );
            let event = if ended == "failed" {
                EventSpec::warning(COMPONENT, "FailedDaemonPod", &message)
            } else {
                EventSpec::normal(COMPONENT, "SucceededDaemonPod", &message)
            };
            event_recorder::record(cluster, &CLIENT, set, &event);
            delete_pod(cluster, set, pod);
        }
        if surge_of(set, 1) == 0 && running.len() > 1 {
            running.sort_by_key(|pod| text(&pod["metadata"]["creationTimestamp"]).to_owned());
            for pod in running.into_iter().skip(1) {
                delete_pod(cluster, set, pod);
            }
        }
    }
}

/// Replaces Pods of an older template, as far as maxUnavailable and maxSurge allow.
fn roll(cluster: &mut Cluster, set: &Value, nodes: &[NodePods], update: &str) {
    let wanted: Vec<&NodePods> = nodes.iter().filter(|node| node.fit == NodeFit::Runs).collect();
    let count = i64::try_from(wanted.len()).unwrap_or(i64::MAX);
    let min_ready = number(&set["spec"]["minReadySeconds"]);
    let now = cluster.now();
    let is_available = |pod: &Value| {
        !is_terminating(pod) && available_at(pod, min_ready).is_some_and(|at| at <= now)
    };
    let is_new = |pod: &Value| pod["metadata"]["labels"][REVISION] == update;
    let surge = surge_of(set, count);
    if surge > 0 {
        return roll_with_surge(cluster, set, &wanted, update, surge);
    }
    let budget = &set["spec"]["updateStrategy"]["rollingUpdate"]["maxUnavailable"];
    let max_unavailable = portion(budget, count).max(1);
    let (mut unavailable, mut unavailable_old, mut candidates) = (0, Vec::new(), Vec::new());
    // A Pod that stays on a node with a new taint is replaced too, but gets no successor there.
    let staying = |node: &&NodePods| node.fit == NodeFit::Stays && !node.pods.is_empty();
    for node in wanted.into_iter().chain(nodes.iter().filter(staying)) {
        let new = node.pods.iter().find(|pod| is_new(pod));
        let old = node.pods.iter().find(|pod| !is_new(pod));
        match (new, old) {
            (Some(new), _) => unavailable += i64::from(!is_available(new)),
            (None, None) => unavailable += 1,
            (None, Some(old)) if is_available(old) => candidates.push(old),
            (None, Some(old)) => {
                unavailable += 1;
                unavailable_old.push(old);
            }
        }
    }
    let rest = usize::try_from(max_unavailable - unavailable).unwrap_or(0);
    for pod in unavailable_old.into_iter().chain(candidates.into_iter().take(rest)) {
        if !is_terminating(pod) {
            delete_pod(cluster, set, pod);
        }
    }
}

/// Creates new Pods next to old ones, and deletes an old one when the new one is available.
fn roll_with_surge(
    cluster: &mut Cluster,
    set: &Value,
    nodes: &[&NodePods],
    update: &str,
    surge: i64,
) {
    let min_ready = number(&set["spec"]["minReadySeconds"]);
    let now = cluster.now();
    let is_available = |pod: &Value| available_at(pod, min_ready).is_some_and(|at| at <= now);
    let is_new = |pod: &Value| pod["metadata"]["labels"][REVISION] == update;
    let key = (meta(set, "namespace").to_owned(), meta(set, "name").to_owned());
    let both = |node: &&&NodePods| {
        node.pods.iter().any(|pod| is_new(pod)) && node.pods.iter().any(|pod| !is_new(pod))
    };
    let surging = i64::try_from(nodes.iter().filter(both).count()).unwrap_or(i64::MAX);
    let mut rest = surge - surging;
    for node in nodes {
        let old = node.pods.iter().find(|pod| !is_new(pod));
        let Some(old) = old.filter(|pod| !is_terminating(pod)) else { continue };
        match node.pods.iter().find(|pod| is_new(pod)) {
            Some(new) if is_available(new) => delete_pod(cluster, set, old),
            // A Pod that is not available needs no successor next to it.
            None if rest > 0 || !is_available(old) => {
                rest -= i64::from(is_available(old));
                create_pod(cluster, &key, set, &node.name, update);
            }
            _ => {}
        }
    }
}

/// The maximum number of additional Pods of a rolling update.
fn surge_of(set: &Value, nodes: i64) -> i64 {
    let strategy = &set["spec"]["updateStrategy"];
    let surge = &strategy["rollingUpdate"]["maxSurge"];
    if strategy["type"] == "OnDelete" { 0 } else { portion(surge, nodes) }
}

/// A number, or a percentage of all, rounded up.
fn portion(value: &Value, all: i64) -> i64 {
    let percent = value.as_str().and_then(|text| text.strip_suffix('%')?.parse::<i64>().ok());
    percent.map_or_else(
        || number(value),
        |percent| percent.saturating_mul(all).saturating_add(99) / 100,
    )
}

fn delete_pod(cluster: &mut Cluster, set: &Value, pod: &Value) {
    if client::delete(cluster, &CLIENT, &PODS, pod, None) {
        let message = format!("Deleted pod: {}", meta(pod, "name"));
        let event = EventSpec::normal(COMPONENT, "SuccessfulDelete", &message);
        event_recorder::record(cluster, &CLIENT, set, &event);
    }
}

fn create_pod(cluster: &mut Cluster, key: &Key, set: &Value, node: &str, update: &str) {
    let mut pod = pod_of(&set["spec"]["template"], set, &DAEMON_SETS);
    pod["metadata"]["generateName"] = format!("{}-", key.1).into();
    let generation = &set["metadata"]["annotations"]["deprecated.daemonset.template.generation"];
    pod["metadata"]["labels"]["pod-template-generation"] = generation.clone();
    pod["metadata"]["labels"][REVISION] = update.into();
    pod["spec"]["tolerations"] = tolerations(&set["spec"]["template"]["spec"]).into();
    let field = json!({"key": "metadata.name", "operator": "In", "values": [node]});
    pod["spec"]["affinity"]["nodeAffinity"][REQUIRED] =
        json!({"nodeSelectorTerms": [{"matchFields": [field]}]});
    match client::create(cluster, &CLIENT, &PODS, &key.0, pod) {
        Ok(made) => {
            let message = format!("Created pod: {}", meta(&made, "name"));
            let event = EventSpec::normal(COMPONENT, "SuccessfulCreate", &message);
            event_recorder::record(cluster, &CLIENT, set, &event);
        }
        Err(why) => {
            let message = format!("Error creating: {why}");
            let event = EventSpec::warning(COMPONENT, "FailedCreate", &message);
            event_recorder::record(cluster, &CLIENT, set, &event);
            let again = client::after_seconds(cluster, 15);
            cluster.work_queue.wake_at(again, Workload::DaemonSets, key);
        }
    }
}

fn update_status(cluster: &mut Cluster, key: &Key, nodes: &[NodePods], update: &str) {
    let Some(set) = client::get(cluster, &DAEMON_SETS, key) else { return };
    let min_ready = number(&set["spec"]["minReadySeconds"]);
    let now = cluster.now();
    let (mut desired, mut current, mut misscheduled) = (0, 0, 0);
    let (mut ready, mut available, mut updated) = (0, 0, 0);
    let mut next_availability = None;
    for node in nodes {
        if node.fit != NodeFit::Runs {
            misscheduled += i64::from(!node.pods.is_empty());
            continue;
        }
        desired += 1;
        // The oldest of several counts.
        let oldest = node
            .pods
            .iter()
            .min_by_key(|pod| text(&pod["metadata"]["creationTimestamp"]).to_owned());
        let Some(pod) = oldest else { continue };
        current += 1;
        updated += i64::from(pod["metadata"]["labels"][REVISION] == update);
        if is_terminating(pod) || !is_ready(pod) {
            continue;
        }
        ready += 1;
        match available_at(pod, min_ready) {
            Some(at) if at <= now => available += 1,
            later => next_availability = next_availability.into_iter().chain(later).min(),
        }
    }
    if let Some(next_availability) = next_availability {
        cluster.work_queue.wake_at(next_availability, Workload::DaemonSets, key);
    }
    let mut status = counts(&[
        ("observedGeneration", generation(&set)),
        ("updatedNumberScheduled", updated),
        ("numberAvailable", available),
        ("numberUnavailable", desired - available),
    ]);
    status["desiredNumberScheduled"] = desired.into();
    status["currentNumberScheduled"] = current.into();
    status["numberMisscheduled"] = misscheduled.into();
    status["numberReady"] = ready.into();
    if status != set["status"] {
        let mut set = Arc::unwrap_or_clone(set);
        set["status"] = status;
        let _ = client::replace(cluster, &CLIENT, &DAEMON_SETS, "status", set);
    }
}
