//! Writes the status and the conditions of a Deployment.

use crate::controllers::client;
use crate::controllers::client::DEPLOYMENTS;
use crate::controllers::deployment::rollout::{CLIENT, Rollout, is_complete, status_of};
use crate::state::cluster::{Cluster, later};
use crate::state::controller_set::Workload;
use crate::types::members::{condition, counts, number, text, time};
use crate::types::object::{generation, meta};
use jiff::SignedDuration;
use serde_json::{Value, json};
use std::sync::Arc;

pub(crate) fn pause_or_resume(cluster: &mut Cluster, rollout: &mut Rollout) {
    if rollout.deadline().is_none() {
        return;
    }
    let paused = rollout.deployment["spec"]["paused"] == true;
    let known = condition(&rollout.deployment["status"], "Progressing").cloned();
    let reason = known.as_ref().map_or("", |one| text(&one["reason"]));
    if reason == "ProgressDeadlineExceeded" {
        return;
    }
    let (reason, message) = match (paused, reason == "DeploymentPaused") {
        (true, false) => ("DeploymentPaused", "Deployment is paused"),
        (false, true) => ("DeploymentResumed", "Deployment is resumed"),
        _ => return,
    };
    let what = ("Progressing", "Unknown", reason, message);
    set_condition(cluster, status_of(rollout), what);
    update_status(cluster, rollout);
}

/// Writes the status, with the progress of the rollout unless it is paused or scaled.
pub(crate) fn sync_status(cluster: &mut Cluster, rollout: &mut Rollout, rolling: bool) {
    let deployment = rollout.deployment.clone();
    let old = &deployment["status"];
    let available = rollout.sum("/status/availableReplicas");
    let new = rollout.new.as_ref();
    let mut status = counts(&[
        ("observedGeneration", generation(&deployment)),
        ("replicas", rollout.sum("/status/replicas")),
        ("updatedReplicas", new.map_or(0, |new| number(&new["status"]["replicas"]))),
        ("readyReplicas", rollout.sum("/status/readyReplicas")),
        ("availableReplicas", available),
        ("unavailableReplicas", (rollout.wanted() - available).max(0)),
    ]);
    status["terminatingReplicas"] = rollout.sum("/status/terminatingReplicas").into();
    for member in ["collisionCount", "conditions"] {
        if let Some(value) = old.get(member) {
            status[member] = value.clone();
        }
    }
    let bounds = rollout.bounds;
    let what = if available >= bounds.replicas - bounds.unavailable {
        ("True", "MinimumReplicasAvailable", "Deployment has minimum availability.")
    } else {
        let why = "Deployment does not have minimum availability.";
        ("False", "MinimumReplicasUnavailable", why)
    };
    set_condition(cluster, &mut status, ("Available", what.0, what.1, what.2));
    if rolling {
        sync_progress(cluster, rollout, &mut status, old);
    }
    if status != *old {
        Arc::make_mut(&mut rollout.deployment)["status"] = status;
        update_status(cluster, rollout);
    }
}

pub(crate) fn sync_progress(
    cluster: &mut Cluster,
    rollout: &Rollout,
    status: &mut Value,
    old: &Value,
) {
    let Some(deadline) = rollout.deadline() else { return };
    let known = condition(old, "Progressing").cloned();
    let count = |status: &Value, name: &str| number(&status[name]);
    let was_complete = count(status, "replicas") == count(status, "updatedReplicas")
        && known.as_ref().is_some_and(|one| one["reason"] == "NewReplicaSetAvailable");
    let failure = rollout.all().find_map(|set| condition(&set["status"], "ReplicaFailure"));
    let failure = failure.map(|one| text(&one["message"]).to_owned());
    let set = match &rollout.new {
        Some(new) => format!("ReplicaSet {:?}", meta(new, "name")),
        None => format!("Deployment {:?}", meta(&rollout.deployment, "name")),
    };
    let older = |status: &Value| count(status, "replicas") - count(status, "updatedReplicas");
    let progresses = count(status, "updatedReplicas") > count(old, "updatedReplicas")
        || older(status) < older(old)
        || count(status, "readyReplicas") > count(old, "readyReplicas")
        || count(status, "availableReplicas") > count(old, "availableReplicas");
    if was_complete {
        // The condition stays.
    } else if is_complete(rollout) {
        let message = format!("{set} has successfully progressed.");
        let what = ("Progressing", "True", "NewReplicaSetAvailable", message.as_str());
        set_condition(cluster, status, what);
    } else if progresses {
        let message = format!("{set} is progressing.");
        // A new time of the last progress is written even if nothing else changed.
        drop_condition(status, "Progressing");
        let what = ("Progressing", "True", "ReplicaSetUpdated", message.as_str());
        set_condition(cluster, status, what);
        if let Some(known) = known.filter(|known| known["status"] == "True") {
            keep_transition(status, &known);
        }
    } else if let Some(known) = known {
        let since = time(&known["lastUpdateTime"]);
        let ends = later(since, SignedDuration::from_secs(deadline));
        let waits = !matches!(
            text(&known["reason"]),
            "NewReplicaSetAvailable" | "ProgressDeadlineExceeded"
        );
        if waits && ends < cluster.now() {
            let message = format!("{set} has timed out progressing.");
            let what = ("Progressing", "False", "ProgressDeadlineExceeded", message.as_str());
            set_condition(cluster, status, what);
        } else if waits {
            let key = crate::types::members::key_of(&rollout.deployment);
            let then = later(ends, SignedDuration::from_secs(1));
            cluster.work_queue.wake_at(then, Workload::Deployments, &key);
        }
    }
    match failure {
        Some(message) => {
            let what = ("ReplicaFailure", "True", "FailedCreate", message.as_str());
            set_condition(cluster, status, what);
        }
        None => drop_condition(status, "ReplicaFailure"),
    }
}

pub(crate) fn update_status(cluster: &mut Cluster, rollout: &mut Rollout) {
    let written = Value::clone(&rollout.deployment);
    if let Ok(deployment) = client::replace(cluster, &CLIENT, &DEPLOYMENTS, "status", written) {
        rollout.deployment = deployment;
    }
}

/// Writes a condition: type, status, reason, message. One of the same status and reason stays.
pub(crate) fn set_condition(
    cluster: &Cluster,
    written: &mut Value,
    what: (&str, &str, &str, &str),
) {
    let (name, status, reason, message) = what;
    let known = condition(written, name);
    if known.is_some_and(|one| one["status"] == status && one["reason"] == reason) {
        return;
    }
    let kept = known.filter(|one| one["status"] == status);
    let since = kept.map_or_else(|| cluster.time(), |one| text(&one["lastTransitionTime"]).into());
    let new = json!({
        "type": name, "status": status, "reason": reason, "message": message,
        "lastUpdateTime": cluster.time(), "lastTransitionTime": since,
    });
    drop_condition(written, name);
    match written["conditions"].as_array_mut() {
        Some(list) => list.push(new),
        None => written["conditions"] = json!([new]),
    }
}

pub(crate) fn drop_condition(written: &mut Value, name: &str) {
    if let Some(list) = written["conditions"].as_array_mut() {
        list.retain(|one| one["type"] != name);
    }
}

pub(crate) fn keep_transition(written: &mut Value, known: &Value) {
    let list = written["conditions"].as_array_mut().into_iter().flatten();
    for one in list.filter(|one| one["type"] == known["type"]) {
        one["lastTransitionTime"] = known["lastTransitionTime"].clone();
    }
}
