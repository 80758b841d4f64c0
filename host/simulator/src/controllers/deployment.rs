//! Deployments: one `ReplicaSet` for each template, and from one to the next without a gap.

use std::sync::Arc;

use jiff::SignedDuration;
use serde_json::{Value, json};

use crate::apply::managed_object::ManagedObject;
use crate::controllers::client;
use crate::controllers::client::{Client, DEPLOYMENTS, PODS, REPLICA_SETS, owned_by};
use crate::controllers::deployment_scale::{Bounds, Set};
use crate::controllers::event_recorder;
use crate::controllers::event_recorder::EventSpec;
use crate::controllers::replica_set::has_ended;
use crate::state::cluster::{Cluster, later};
use crate::state::controller_set::Workload;
use crate::types::members::{condition, counts, number, text, time};
use crate::types::object::{generation, is_terminating, meta};
use crate::types::object_key::Key;

const CLIENT: Client =
    Client::controller("system:serviceaccount:kube-system:deployment-controller");
const COMPONENT: &str = "deployment-controller";

const HASH: &str = "pod-template-hash";
const REVISION: &str = "deployment.kubernetes.io/revision";
const HISTORY: &str = "deployment.kubernetes.io/revision-history";
const DESIRED: &str = "deployment.kubernetes.io/desired-replicas";
const MAX: &str = "deployment.kubernetes.io/max-replicas";

/// Annotations of a Deployment that its sets do not get.
const OWN: [&str; 6] = [
    "kubectl.kubernetes.io/last-applied-configuration",
    REVISION,
    HISTORY,
    DESIRED,
    MAX,
    "deprecated.deployment.rollback.to",
];

/// A Deployment and its sets.
struct Rollout {
    deployment: Arc<ManagedObject>,
    bounds: Bounds,
    /// That of the present template.
    new: Option<Arc<ManagedObject>>,
    /// The others, the oldest first.
    old: Vec<Arc<ManagedObject>>,
}

impl Rollout {
    fn all(&self) -> impl Iterator<Item = &Arc<ManagedObject>> {
        self.old.iter().chain(&self.new)
    }

    fn sum(&self, pointer: &str) -> i64 {
        self.all().map(|set| set.pointer(pointer).map_or(0, number)).sum()
    }

    fn wanted(&self) -> i64 {
        self.sum("/spec/replicas")
    }

    fn deadline(&self) -> Option<i64> {
        // The largest number says never.
        self.deployment["spec"]["progressDeadlineSeconds"]
            .as_i64()
            .filter(|seconds| *seconds < i64::from(i32::MAX))
    }
}

/// Looks at a Deployment.
pub(crate) fn sync(cluster: &mut Cluster, key: &Key) {
    let Some(deployment) = client::get(cluster, &DEPLOYMENTS, key) else { return };
    let mut old = client::controlled_by(cluster, &deployment, &REPLICA_SETS);
    old.sort_by_key(|set| (time(&set["metadata"]["creationTimestamp"]), revision(set)));
    let template = &deployment["spec"]["template"];
    let new = old.iter().position(|set| is_same(&set["spec"]["template"], template));
    let new = new.map(|index| old.remove(index));
    let bounds = Bounds::read(&deployment["spec"]);
    let mut rollout = Rollout { deployment, bounds, new, old };
    if is_terminating(&rollout.deployment) {
        return report(cluster, &mut rollout, false);
    }
    pause_or_resume(cluster, &mut rollout);
    let paused = rollout.deployment["spec"]["paused"] == true;
    if paused || is_scaled(&rollout) {
        if rollout.new.is_some() && !paused {
            keep_revision(cluster, &mut rollout);
        }
        scale(cluster, &mut rollout);
        if paused {
            clean_up_replica_sets(cluster, &rollout);
        }
        return report(cluster, &mut rollout, false);
    }
    if rollout.deployment["spec"]["strategy"]["type"] == "Recreate" {
        recreate(cluster, &mut rollout);
    } else {
        roll(cluster, &mut rollout);
    }
    if is_complete(&rollout) {
        clean_up_replica_sets(cluster, &rollout);
    }
    report(cluster, &mut rollout, true);
}

fn pause_or_resume(cluster: &mut Cluster, rollout: &mut Rollout) {
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

/// The rolling update.
fn roll(cluster: &mut Cluster, rollout: &mut Rollout) {
    new_replica_set(cluster, rollout);
    let Some(new) = rollout.new.clone() else { return };
    let had = number(&new["spec"]["replicas"]);
    let wanted = if had > rollout.bounds.replicas {
        rollout.bounds.replicas
    } else {
        rollout.bounds.new_set(had, rollout.wanted())
    };
    if let Some(new) = set_replicas(cluster, rollout, &new, wanted) {
        rollout.new = Some(new);
        return;
    }
    let set = |set: &Arc<ManagedObject>| Set {
        wanted: number(&set["spec"]["replicas"]),
        available: number(&set["status"]["availableReplicas"]),
    };
    let old: Vec<Set> = rollout.old.iter().map(set).collect();
    let wanted = rollout.bounds.old_sets(&old, &set(&new));
    set_old(cluster, rollout, &wanted);
}

/// The other way: all old Pods go before new ones come.
fn recreate(cluster: &mut Cluster, rollout: &mut Rollout) {
    if set_old(cluster, rollout, &vec![0; rollout.old.len()]) {
        return;
    }
    let running = |cluster: &Cluster, set: &Value| {
        client::controlled_by(cluster, set, &PODS).iter().any(|pod| !has_ended(pod))
    };
    if rollout.old.iter().any(|set| running(cluster, set)) {
        return;
    }
    new_replica_set(cluster, rollout);
    let Some(new) = rollout.new.clone() else { return };
    let wanted = rollout.bounds.replicas;
    if let Some(new) = set_replicas(cluster, rollout, &new, wanted) {
        rollout.new = Some(new);
    }
}

fn set_old(cluster: &mut Cluster, rollout: &mut Rollout, wanted: &[i64]) -> bool {
    let mut changed = false;
    for (index, wanted) in wanted.iter().enumerate() {
        let set = rollout.old[index].clone();
        if number(&set["spec"]["replicas"]) == *wanted {
            continue;
        }
        if let Some(set) = set_replicas(cluster, rollout, &set, *wanted) {
            rollout.old[index] = set;
            changed = true;
        }
    }
    changed
}

/// Shares what a Deployment was scaled by among its sets.
fn scale(cluster: &mut Cluster, rollout: &mut Rollout) {
    let active: Vec<Arc<ManagedObject>> =
        rollout.all().filter(|set| number(&set["spec"]["replicas"]) > 0).cloned().collect();
    let only = match active.as_slice() {
        [] => rollout.all().max_by_key(|set| revision(set)).cloned(),
        [only] => Some(only.clone()),
        _ => None,
    };
    if let Some(only) = only {
        let wanted = rollout.bounds.replicas;
        if let Some(set) = set_replicas(cluster, rollout, &only, wanted) {
            put_back(rollout, &set);
        }
        return;
    }
    if rollout.new.as_ref().is_some_and(|new| is_saturated(rollout, new)) {
        set_old(cluster, rollout, &vec![0; rollout.old.len()]);
        return;
    }
    if rollout.deployment["spec"]["strategy"]["type"] == "Recreate" {
        return;
    }
    let mut sets = active;
    let growing = rollout.bounds.replicas + rollout.bounds.surge > rollout.wanted();
    // The larger first; of equal ones the newer when there will be more, the older when less.
    sets.sort_by_key(|set| {
        let age = revision(set);
        (-number(&set["spec"]["replicas"]), if growing { -age } else { age })
    });
    let had: Vec<i64> = sets.iter().map(|set| number(&set["spec"]["replicas"])).collect();
    let most: Vec<i64> = sets.iter().map(|set| annotated(set, MAX)).collect();
    for (set, wanted) in sets.iter().zip(rollout.bounds.proportional(&had, &most)) {
        if let Some(set) = set_replicas(cluster, rollout, set, wanted) {
            put_back(rollout, &set);
        }
    }
}

/// Makes the set of the present template, or gives the one that is there the newest revision.
fn new_replica_set(cluster: &mut Cluster, rollout: &mut Rollout) {
    if rollout.new.is_some() {
        return keep_revision(cluster, rollout);
    }
    let deployment = &rollout.deployment;
    let template = &deployment["spec"]["template"];
    let hash = hash(template, number(&deployment["status"]["collisionCount"]));
    let name = format!("{}-{hash}", meta(deployment, "name"));
    let number = next_revision(rollout);
    let wanted = rollout.bounds.new_set(0, rollout.wanted());
    let mut template = template.clone();
    template["metadata"]["labels"][HASH] = hash.as_str().into();
    let mut selector = deployment["spec"]["selector"].clone();
    selector["matchLabels"][HASH] = hash.as_str().into();
    let mut set = json!({
        "metadata": {
            "name": name,
            "labels": template["metadata"]["labels"],
            "annotations": annotations(deployment),
            "ownerReferences": owned_by(deployment, &DEPLOYMENTS),
        },
        "spec": {"replicas": wanted, "selector": selector, "template": template},
    });
    set["metadata"]["annotations"][REVISION] = number.to_string().into();
    set["metadata"]["annotations"][DESIRED] = rollout.bounds.replicas.to_string().into();
    set["metadata"]["annotations"][MAX] = most(rollout).to_string().into();
    if let Some(seconds) = deployment["spec"].get("minReadySeconds") {
        set["spec"]["minReadySeconds"] = seconds.clone();
    }
    match client::create(cluster, &CLIENT, &REPLICA_SETS, meta(deployment, "namespace"), set) {
        Ok(set) => {
            if wanted > 0 {
                let message = format!("Scaled up replica set {name} from 0 to {wanted}");
                let said = EventSpec::normal(COMPONENT, "ScalingReplicaSet", &message);
                event_recorder::record(cluster, &CLIENT, deployment, &said);
            }
            rollout.new = Some(set);
            let message = format!("Created new replica set {name:?}");
            revise(cluster, rollout, number, ("True", "NewReplicaSetCreated", &message));
        }
        Err(why) => {
            let message = format!("Failed to create new replica set {name:?}: {why}");
            let what = ("Progressing", "False", "ReplicaSetCreateError", message.as_str());
            set_condition(cluster, status_of(rollout), what);
            update_status(cluster, rollout);
        }
    }
}

fn keep_revision(cluster: &mut Cluster, rollout: &mut Rollout) {
    let Some(kept) = rollout.new.clone() else { return };
    let next = next_revision(rollout);
    let had = revision(&kept);
    let wanted = annotations(&rollout.deployment);
    let annotated = &kept["metadata"]["annotations"];
    let seconds = number(&rollout.deployment["spec"]["minReadySeconds"]);
    let mut wanted_of_it = wanted.as_object().into_iter().flatten();
    let same = wanted_of_it.all(|(name, value)| annotated.get(name) == Some(value))
        && had >= next
        && number(&kept["spec"]["minReadySeconds"]) == seconds;
    if same {
        return go_on_with(cluster, rollout, kept);
    }
    let mut new = Value::clone(&kept);
    for (name, value) in wanted.as_object().into_iter().flatten() {
        new["metadata"]["annotations"][name.as_str()] = value.clone();
    }
    if had < next {
        new["metadata"]["annotations"][REVISION] = next.to_string().into();
        if had > 0 {
            let history = text(&new["metadata"]["annotations"][HISTORY]);
            let history =
                if history.is_empty() { had.to_string() } else { format!("{history},{had}") };
            new["metadata"]["annotations"][HISTORY] = history.into();
        }
    }
    if number(&kept["spec"]["minReadySeconds"]) != seconds {
        new["spec"]["minReadySeconds"] = seconds.into();
    }
    let new = match client::replace(cluster, &CLIENT, &REPLICA_SETS, "", new.clone()) {
        Ok(set) => set,
        Err(_) => Arc::new(ManagedObject::new(new)),
    };
    go_on_with(cluster, rollout, new);
}

/// Goes on with the set of the present template.
fn go_on_with(cluster: &mut Cluster, rollout: &mut Rollout, new: Arc<ManagedObject>) {
    let name = meta(&new, "name").to_owned();
    let number = revision(&new);
    rollout.new = Some(new);
    let message = format!("Found new replica set {name:?}");
    revise(cluster, rollout, number, ("True", "FoundNewReplicaSet", &message));
}

/// Writes the revision to the Deployment, and what has become of its set, if that is news.
fn revise(cluster: &mut Cluster, rollout: &mut Rollout, number: i64, what: (&str, &str, &str)) {
    let known = condition(&rollout.deployment["status"], "Progressing").is_some();
    let mut changed = revision(&rollout.deployment) != number;
    if changed {
        let deployment = Arc::make_mut(&mut rollout.deployment);
        deployment["metadata"]["annotations"][REVISION] = number.to_string().into();
    }
    let (status, reason, message) = what;
    if rollout.deadline().is_some() && (!known || reason == "NewReplicaSetCreated") {
        let what = ("Progressing", status, reason, message);
        set_condition(cluster, status_of(rollout), what);
        changed = true;
    }
    if changed {
        update_status(cluster, rollout);
    }
}

fn update_status(cluster: &mut Cluster, rollout: &mut Rollout) {
    let written = Value::clone(&rollout.deployment);
    if let Ok(deployment) = client::replace(cluster, &CLIENT, &DEPLOYMENTS, "status", written) {
        rollout.deployment = deployment;
    }
}

/// Gives a set as it is after it was told to have so many Pods, if that is news.
fn set_replicas(
    cluster: &mut Cluster,
    rollout: &Rollout,
    set: &Value,
    wanted: i64,
) -> Option<Arc<ManagedObject>> {
    let had = number(&set["spec"]["replicas"]);
    let (desired, most) = (rollout.bounds.replicas.to_string(), most(rollout).to_string());
    let annotated = &set["metadata"]["annotations"];
    if set["spec"]["replicas"] == wanted && annotated[DESIRED] == desired && annotated[MAX] == most
    {
        return None;
    }
    let mut changed = set.clone();
    changed["spec"]["replicas"] = wanted.into();
    changed["metadata"]["annotations"][DESIRED] = desired.into();
    changed["metadata"]["annotations"][MAX] = most.into();
    let stored = client::replace(cluster, &CLIENT, &REPLICA_SETS, "", changed).ok()?;
    if had == wanted {
        return Some(stored);
    }
    let direction = if wanted > had { "up" } else { "down" };
    let name = meta(set, "name");
    let message = format!("Scaled {direction} replica set {name} from {had} to {wanted}");
    let said = EventSpec::normal(COMPONENT, "ScalingReplicaSet", &message);
    event_recorder::record(cluster, &CLIENT, &rollout.deployment, &said);
    Some(stored)
}

/// Deletes the oldest of those sets that have no Pods, beyond those that are kept.
fn clean_up_replica_sets(cluster: &mut Cluster, rollout: &Rollout) {
    let limit = number(&rollout.deployment["spec"]["revisionHistoryLimit"]);
    let alive: Vec<&Arc<ManagedObject>> =
        rollout.old.iter().filter(|set| !is_terminating(set)).collect();
    let surplus = alive.len().saturating_sub(usize::try_from(limit).unwrap_or(usize::MAX));
    let mut alive = alive;
    alive.sort_by_key(|set| revision(set));
    for set in alive.into_iter().take(surplus) {
        let empty = number(&set["status"]["replicas"]) == 0
            && number(&set["spec"]["replicas"]) == 0
            && generation(set) <= number(&set["status"]["observedGeneration"]);
        if empty {
            client::delete(cluster, &CLIENT, &REPLICA_SETS, set, None);
        }
    }
}

/// Writes the status; with how the rollout goes, unless it is paused or scaled.
fn report(cluster: &mut Cluster, rollout: &mut Rollout, rolling: bool) {
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
        report_progress(cluster, rollout, &mut status, old);
    }
    if status != *old {
        Arc::make_mut(&mut rollout.deployment)["status"] = status;
        update_status(cluster, rollout);
    }
}

fn report_progress(cluster: &mut Cluster, rollout: &Rollout, status: &mut Value, old: &Value) {
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
        // It stays so.
    } else if is_complete(rollout) {
        let message = format!("{set} has successfully progressed.");
        let what = ("Progressing", "True", "NewReplicaSetAvailable", message.as_str());
        set_condition(cluster, status, what);
    } else if progresses {
        let message = format!("{set} is progressing.");
        // The time of the last progress is news, whatever else stayed.
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

/// Writes a condition: type, status, reason, message. One of the same status and reason stays.
fn set_condition(cluster: &Cluster, written: &mut Value, what: (&str, &str, &str, &str)) {
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

#[allow(clippy::unused_self, reason = "beside its other half")]
fn drop_condition(written: &mut Value, name: &str) {
    if let Some(list) = written["conditions"].as_array_mut() {
        list.retain(|one| one["type"] != name);
    }
}

fn keep_transition(written: &mut Value, known: &Value) {
    let list = written["conditions"].as_array_mut().into_iter().flatten();
    for one in list.filter(|one| one["type"] == known["type"]) {
        one["lastTransitionTime"] = known["lastTransitionTime"].clone();
    }
}

fn status_of(rollout: &mut Rollout) -> &mut Value {
    &mut Arc::make_mut(&mut rollout.deployment)["status"]
}

fn put_back(rollout: &mut Rollout, set: &Arc<ManagedObject>) {
    let place = rollout.old.iter_mut().chain(&mut rollout.new);
    for old in place.filter(|old| meta(old, "uid") == meta(set, "uid")) {
        *old = set.clone();
    }
}

/// Whether somebody has changed how many there are to be since the sets were told.
fn is_scaled(rollout: &Rollout) -> bool {
    rollout.all().filter(|set| number(&set["spec"]["replicas"]) > 0).any(|set| {
        let told = &set["metadata"]["annotations"][DESIRED];
        told.is_string() && annotated(set, DESIRED) != rollout.bounds.replicas
    })
}

fn is_saturated(rollout: &Rollout, set: &Value) -> bool {
    let wanted = rollout.bounds.replicas;
    number(&set["spec"]["replicas"]) == wanted
        && annotated(set, DESIRED) == wanted
        && number(&set["status"]["availableReplicas"]) == wanted
}

fn is_complete(rollout: &Rollout) -> bool {
    let wanted = rollout.bounds.replicas;
    let updated = rollout.new.as_ref().map_or(0, |new| number(&new["status"]["replicas"]));
    updated == wanted
        && rollout.sum("/status/replicas") == wanted
        && rollout.sum("/status/availableReplicas") == wanted
}

fn most(rollout: &Rollout) -> i64 {
    rollout.bounds.replicas + rollout.bounds.surge
}

fn annotated(object: &Value, name: &str) -> i64 {
    text(&object["metadata"]["annotations"][name]).parse().unwrap_or(0)
}

fn revision(object: &Value) -> i64 {
    annotated(object, REVISION)
}

fn next_revision(rollout: &Rollout) -> i64 {
    rollout.old.iter().map(|set| revision(set)).max().unwrap_or(0) + 1
}

/// Those annotations that sets get.
fn annotations(deployment: &Value) -> Value {
    let mut annotations = deployment["metadata"]["annotations"].clone();
    match annotations.as_object_mut() {
        Some(map) => map.retain(|name, _| !OWN.contains(&name.as_str())),
        None => annotations = json!({}),
    }
    annotations
}

/// Whether two templates are the same but for the hash.
fn is_same(one: &Value, other: &Value) -> bool {
    let without_hash = |template: &Value| {
        let mut metadata = template["metadata"].clone();
        if let Some(labels) = metadata["labels"].as_object_mut() {
            labels.remove(HASH);
        }
        metadata
    };
    one["spec"] == other["spec"] && without_hash(one) == without_hash(other)
}

/// A hash of a template, in the alphabet of the real ones: FNV-1a over its text.
pub(crate) fn hash(template: &Value, collisions: i64) -> String {
    const LETTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
    let mut hash: u32 = 0x811c_9dc5;
    let mut text = template.to_string();
    if collisions > 0 {
        text += &collisions.to_string();
    }
    for byte in text.bytes() {
        hash = (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193);
    }
    let digits = hash.to_string();
    digits.bytes().map(|digit| char::from(LETTERS[usize::from(digit) % LETTERS.len()])).collect()
}
