//! Creates, scales and deletes the ReplicaSets of a Deployment.

use crate::apply::managed_object::ManagedObject;
use crate::controllers::client;
use crate::controllers::client::{DEPLOYMENTS, REPLICA_SETS, owned_by};
use crate::controllers::deployment::progress::{set_condition, update_status};
use crate::controllers::deployment::rollout::{
    CLIENT, COMPONENT, DESIRED, HASH, HISTORY, MAX, REVISION, Rollout, annotation_number,
    annotations, is_saturated, max_replicas, next_revision, replace_in_rollout, revision,
    status_of,
};
use crate::controllers::event_recorder;
use crate::controllers::event_recorder::EventSpec;
use crate::controllers::template_hash::hash;
use crate::state::cluster::Cluster;
use crate::types::members::{condition, number, text};
use crate::types::object::{generation, is_terminating, meta};
use serde_json::{Value, json};
use std::sync::Arc;

/// Creates the set of the current template, or gives an existing one the newest revision.
pub(crate) fn new_replica_set(cluster: &mut Cluster, rollout: &mut Rollout) {
    if rollout.new.is_some() {
        return update_revision(cluster, rollout);
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
    set["metadata"]["annotations"][MAX] = max_replicas(rollout).to_string().into();
    if let Some(seconds) = deployment["spec"].get("minReadySeconds") {
        set["spec"]["minReadySeconds"] = seconds.clone();
    }
    match client::create(cluster, &CLIENT, &REPLICA_SETS, meta(deployment, "namespace"), set) {
        Ok(set) => {
            if wanted > 0 {
                let message = format!("Scaled up replica set {name} from 0 to {wanted}");
                let event = EventSpec::normal(COMPONENT, "ScalingReplicaSet", &message);
                event_recorder::record(cluster, &CLIENT, deployment, &event);
            }
            rollout.new = Some(set);
            let message = format!("Created new replica set {name:?}");
            record_revision(cluster, rollout, number, ("True", "NewReplicaSetCreated", &message));
        }
        Err(why) => {
            let message = format!("Failed to create new replica set {name:?}: {why}");
            let what = ("Progressing", "False", "ReplicaSetCreateError", message.as_str());
            set_condition(cluster, status_of(rollout), what);
            update_status(cluster, rollout);
        }
    }
}

pub(crate) fn update_revision(cluster: &mut Cluster, rollout: &mut Rollout) {
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
        return use_replica_set(cluster, rollout, kept);
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
    use_replica_set(cluster, rollout, new);
}

/// Continues with the set of the current template.
pub(crate) fn use_replica_set(
    cluster: &mut Cluster,
    rollout: &mut Rollout,
    new: Arc<ManagedObject>,
) {
    let name = meta(&new, "name").to_owned();
    let number = revision(&new);
    rollout.new = Some(new);
    let message = format!("Found new replica set {name:?}");
    record_revision(cluster, rollout, number, ("True", "FoundNewReplicaSet", &message));
}

/// Writes the revision and the condition of the new set to the Deployment, if they changed.
pub(crate) fn record_revision(
    cluster: &mut Cluster,
    rollout: &mut Rollout,
    number: i64,
    what: (&str, &str, &str),
) {
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

/// Sets the replicas of a ReplicaSet. Returns it as it is stored, if that changed it.
pub(crate) fn set_replicas(
    cluster: &mut Cluster,
    rollout: &Rollout,
    set: &Value,
    wanted: i64,
) -> Option<Arc<ManagedObject>> {
    let had = number(&set["spec"]["replicas"]);
    let (desired, most) = (rollout.bounds.replicas.to_string(), max_replicas(rollout).to_string());
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
    let event = EventSpec::normal(COMPONENT, "ScalingReplicaSet", &message);
    event_recorder::record(cluster, &CLIENT, &rollout.deployment, &event);
    Some(stored)
}

pub(crate) fn scale_old_replica_sets(
    cluster: &mut Cluster,
    rollout: &mut Rollout,
    wanted: &[i64],
) -> bool {
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

/// Shares the scaling of a Deployment among its sets.
pub(crate) fn scale(cluster: &mut Cluster, rollout: &mut Rollout) {
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
            replace_in_rollout(rollout, &set);
        }
        return;
    }
    if rollout.new.as_ref().is_some_and(|new| is_saturated(rollout, new)) {
        scale_old_replica_sets(cluster, rollout, &vec![0; rollout.old.len()]);
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
    let most: Vec<i64> = sets.iter().map(|set| annotation_number(set, MAX)).collect();
    for (set, wanted) in sets.iter().zip(rollout.bounds.proportional(&had, &most)) {
        if let Some(set) = set_replicas(cluster, rollout, set, wanted) {
            replace_in_rollout(rollout, &set);
        }
    }
}

/// Deletes the oldest sets without Pods, beyond the revision history limit.
pub(crate) fn clean_up_replica_sets(cluster: &mut Cluster, rollout: &Rollout) {
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
