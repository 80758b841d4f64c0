//! The StatefulSet controller: Pods with stable names, in order, each with its claims.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::apply::managed_object::ManagedObject;
use crate::controllers::client;
use crate::controllers::client::{CLAIMS, Client, PODS, REVISIONS, STATEFUL_SETS, owned_by};
use crate::controllers::event_recorder;
use crate::controllers::event_recorder::EventSpec;
use crate::controllers::replica_set::{available_at, has_ended, is_ready, pod_of};
use crate::controllers::template_hash::hash;
use crate::state::cluster::Cluster;
use crate::state::controller_set::Workload;
use crate::types::members::{controller, counts, number, text};
use crate::types::object::{generation, is_terminating, meta};
use crate::types::object_key::Key;
use crate::types::selector::Selector;

const CLIENT: Client =
    Client::controller("system:serviceaccount:kube-system:statefulset-controller");
const COMPONENT: &str = "statefulset-controller";
const REVISION: &str = "controller-revision-hash";

/// Reconciles one object.
pub(crate) fn sync(cluster: &mut Cluster, key: &Key) {
    let Some(set) = client::get(cluster, &STATEFUL_SETS, key) else { return };
    if is_terminating(&set) {
        return;
    }
    adopt_pods(cluster, &set);
    let update = revision_of(cluster, &set);
    let current = match text(&set["status"]["currentRevision"]) {
        "" => update.clone(),
        known => known.to_owned(),
    };
    step_pods(cluster, key, &set, &current, &update);
    update_status(cluster, key, &current, &update);
}

/// Takes over the Pods without a controller that have the labels and a name of the set, as after a
/// deletion of an earlier set that left its Pods.
fn adopt_pods(cluster: &mut Cluster, set: &Value) {
    let selector = Selector::of(&set["spec"]["selector"]);
    let (namespace, name) = (meta(set, "namespace"), meta(set, "name"));
    let is_member = |pod: &Value| {
        let rest = meta(pod, "name").strip_prefix(name).and_then(|rest| rest.strip_prefix('-'));
        rest.is_some_and(|ordinal| ordinal.parse::<u32>().is_ok())
    };
    let stored = cluster.store.collection(&PODS.key()).into_iter().flat_map(|one| &one.objects);
    let pods = stored.filter(|(key, _)| key.0 == namespace).map(|(_, one)| one.object());
    let orphans: Vec<Arc<ManagedObject>> = pods
        .filter(|pod| is_member(pod) && selector.fits(pod))
        .filter(|pod| controller(pod).is_none() && !is_terminating(pod))
        .collect();
    for orphan in orphans {
        let mut pod = Value::clone(&orphan);
        let mut owners = pod["metadata"]["ownerReferences"].as_array().cloned().unwrap_or_default();
        owners.extend(owned_by(set, &STATEFUL_SETS).as_array().into_iter().flatten().cloned());
        pod["metadata"]["ownerReferences"] = owners.into();
        // A Pod that changed meanwhile is looked at again with the next change of the set.
        let _ = client::replace(cluster, &CLIENT, &PODS, "", pod);
    }
}

/// The name of the revision of the current template.
fn revision_of(cluster: &mut Cluster, set: &Value) -> String {
    let template = &set["spec"]["template"];
    let revisions = client::controlled_by(cluster, set, &REVISIONS);
    // It is kept as a patch.
    let mut kept = template.clone();
    kept["$patch"] = "replace".into();
    let known = revisions.iter().find(|one| one["data"]["spec"]["template"] == kept);
    if let Some(known) = known {
        return meta(known, "name").to_owned();
    }
    let next = revisions.iter().map(|one| number(&one["revision"])).max().unwrap_or(0) + 1;
    let hash = hash(template, 0);
    let name = format!("{}-{hash}", meta(set, "name"));
    let mut labels = template["metadata"]["labels"].clone();
    labels["controller.kubernetes.io/hash"] = hash.into();
    let revision = json!({
        "metadata": {"name": name, "labels": labels,
            "ownerReferences": owned_by(set, &STATEFUL_SETS)},
        "data": {"spec": {"template": kept}}, "revision": next,
    });
    let _ = client::create(cluster, &CLIENT, &REVISIONS, meta(set, "namespace"), revision);
    name
}

/// Creates, deletes or replaces one Pod, or all at once if allowed.
fn step_pods(cluster: &mut Cluster, key: &Key, set: &Value, current: &str, update: &str) {
    let replicas = set["spec"]["replicas"].as_i64().unwrap_or(1);
    let start = number(&set["spec"]["ordinals"]["start"]);
    let parallel = set["spec"]["podManagementPolicy"] == "Parallel";
    let min_ready = number(&set["spec"]["minReadySeconds"]);
    let partition = number(&set["spec"]["updateStrategy"]["rollingUpdate"]["partition"]);
    let pods = client::controlled_by(cluster, set, &PODS);
    let ordinal = |pod: &Value| {
        let number = meta(pod, "name").rsplit('-').next().and_then(|text| text.parse().ok());
        number.unwrap_or(-1_i64)
    };
    let is_fine = |pod: &Value, now| {
        available_at(pod, min_ready).is_some_and(|at| at <= now) && !is_terminating(pod)
    };
    for index in start..start + replicas {
        let pod = pods.iter().find(|pod| ordinal(pod) == index);
        match pod {
            None => {
                let revision = if index < start + partition { current } else { update };
                create_pod(cluster, key, set, index, revision);
            }
            Some(pod) if has_ended(pod) && !is_terminating(pod) => {
                delete_pod(cluster, set, pod);
            }
            Some(_) => {}
        }
        if !parallel && pod.is_none_or(|pod| !is_fine(pod, cluster.now())) {
            if let Some(at) = pod.and_then(|pod| available_at(pod, min_ready)) {
                cluster.work_queue.wake_at(
                    at.max(client::after_seconds(cluster, 1)),
                    Workload::StatefulSets,
                    key,
                );
            }
            return;
        }
    }
    let mut surplus: Vec<&Arc<ManagedObject>> =
        pods.iter().filter(|pod| !(start..start + replicas).contains(&ordinal(pod))).collect();
    surplus.sort_by_key(|pod| -ordinal(pod));
    for pod in surplus {
        if !is_terminating(pod) {
            delete_pod(cluster, set, pod);
        }
        if !parallel {
            return;
        }
    }
    if set["spec"]["updateStrategy"]["type"] == "OnDelete" {
        return;
    }
    for index in (start + partition..start + replicas).rev() {
        let Some(pod) = pods.iter().find(|pod| ordinal(pod) == index) else { return };
        if pod["metadata"]["labels"][REVISION] != update && !is_terminating(pod) {
            return delete_pod(cluster, set, pod);
        }
        if !is_fine(pod, cluster.now()) {
            return;
        }
    }
}

fn delete_pod(cluster: &mut Cluster, set: &Value, pod: &Value) {
    if client::delete(cluster, &CLIENT, &PODS, pod, None) {
        let (pod, name) = (meta(pod, "name"), meta(set, "name"));
        let message = format!("Delete Pod {pod} in StatefulSet {name} successful");
        event_recorder::record(
            cluster,
            &CLIENT,
            set,
            &EventSpec::normal(COMPONENT, "SuccessfulDelete", &message),
        );
    }
}

fn create_pod(cluster: &mut Cluster, key: &Key, set: &Value, index: i64, revision: &str) {
    let name = format!("{}-{index}", meta(set, "name"));
    let mut template = set["spec"]["template"].clone();
    if let Some(kept) = client::controlled_by(cluster, set, &REVISIONS)
        .into_iter()
        .find(|one| meta(one, "name") == revision)
    {
        template = kept["data"]["spec"]["template"].clone();
        if let Some(template) = template.as_object_mut() {
            template.remove("$patch");
        }
    }
    let mut pod = pod_of(&template, set, &STATEFUL_SETS);
    pod["metadata"]["name"] = name.as_str().into();
    pod["metadata"]["generateName"] = format!("{}-", meta(set, "name")).into();
    let labels = &mut pod["metadata"]["labels"];
    labels["statefulset.kubernetes.io/pod-name"] = name.as_str().into();
    labels["apps.kubernetes.io/pod-index"] = index.to_string().into();
    labels[REVISION] = revision.into();
    pod["spec"]["hostname"] = name.as_str().into();
    if let Some(service) = set["spec"]["serviceName"].as_str() {
        pod["spec"]["subdomain"] = service.into();
    }
    let mut volumes = pod["spec"]["volumes"].as_array().cloned().unwrap_or_default();
    for template in set["spec"]["volumeClaimTemplates"].as_array().into_iter().flatten() {
        let volume = meta(template, "name");
        let claim = format!("{volume}-{name}");
        volumes.retain(|one| one["name"] != volume);
        volumes.push(json!({"name": volume, "persistentVolumeClaim": {"claimName": claim}}));
        if client::get(cluster, &CLAIMS, &(key.0.clone(), claim.clone())).is_none() {
            let mut labels = template["metadata"]["labels"].clone();
            if !labels.is_object() {
                labels = json!({});
            }
            for (label, value) in
                set["spec"]["selector"]["matchLabels"].as_object().into_iter().flatten()
            {
                labels[label.as_str()] = value.clone();
            }
            let object =
                json!({"metadata": {"name": claim, "labels": labels}, "spec": template["spec"]});
            if client::create(cluster, &CLIENT, &CLAIMS, &key.0, object).is_ok() {
                let message = format!(
                    "create Claim {claim} Pod {name} in StatefulSet {} success",
                    meta(set, "name")
                );
                event_recorder::record(
                    cluster,
                    &CLIENT,
                    set,
                    &EventSpec::normal(COMPONENT, "SuccessfulCreate", &message),
                );
            }
        }
    }
    if !volumes.is_empty() {
        pod["spec"]["volumes"] = volumes.into();
    }
    let made = client::create(cluster, &CLIENT, &PODS, &key.0, pod);
    let of = meta(set, "name");
    match made {
        Ok(_) => {
            let message = format!("Create Pod {name} in StatefulSet {of} successful");
            event_recorder::record(
                cluster,
                &CLIENT,
                set,
                &EventSpec::normal(COMPONENT, "SuccessfulCreate", &message),
            );
        }
        Err(why) => {
            let message = format!("create Pod {name} in StatefulSet {of} failed error: {why}");
            event_recorder::record(
                cluster,
                &CLIENT,
                set,
                &EventSpec::warning(COMPONENT, "FailedCreate", &message),
            );
            let again = client::after_seconds(cluster, 10);
            cluster.work_queue.wake_at(again, Workload::StatefulSets, key);
        }
    }
}

fn update_status(cluster: &mut Cluster, key: &Key, current: &str, update: &str) {
    let Some(set) = client::get(cluster, &STATEFUL_SETS, key) else { return };
    let pods: Vec<Arc<ManagedObject>> = client::controlled_by(cluster, &set, &PODS)
        .into_iter()
        .filter(|pod| !has_ended(pod))
        .collect();
    let count = |fits: &dyn Fn(&Value) -> bool| {
        i64::try_from(pods.iter().filter(|pod| fits(pod)).count()).unwrap_or(i64::MAX)
    };
    let of = |pod: &Value, revision: &str| {
        pod["metadata"]["labels"][REVISION] == revision && !is_terminating(pod)
    };
    let min_ready = number(&set["spec"]["minReadySeconds"]);
    let now = cluster.now();
    let is_available = |pod: &Value| available_at(pod, min_ready).is_some_and(|at| at <= now);
    let replicas = count(&|_| true);
    let updated = count(&|pod| of(pod, update));
    let ready = count(&is_ready);
    // When all are of the new revision, it is the current one.
    let done = updated == set["spec"]["replicas"].as_i64().unwrap_or(1)
        && ready == replicas
        && replicas == updated;
    let current = if done { update } else { current };
    let mut status = counts(&[
        ("observedGeneration", generation(&set)),
        ("readyReplicas", ready),
        ("currentReplicas", count(&|pod| of(pod, current))),
        ("updatedReplicas", updated),
    ]);
    status["replicas"] = replicas.into();
    status["availableReplicas"] = count(&is_available).into();
    status["currentRevision"] = current.into();
    status["updateRevision"] = update.into();
    status["collisionCount"] = number(&set["status"]["collisionCount"]).into();
    if status != set["status"] {
        let mut set = Arc::unwrap_or_clone(set);
        set["status"] = status;
        let _ = client::replace(cluster, &CLIENT, &STATEFUL_SETS, "status", set);
    }
}
