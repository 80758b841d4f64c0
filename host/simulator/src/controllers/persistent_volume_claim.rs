//! Binds each claim to an existing volume, or to a new one as a provisioner of the default class
//! creates it.

use std::sync::Arc;

use serde_json::json;

use crate::apply::managed_object::ManagedObject;
use crate::controllers::client;
use crate::controllers::client::{CLAIMS, PODS, VOLUMES};
use crate::controllers::event_recorder;
use crate::controllers::event_recorder::EventSpec;
use crate::controllers::persistent_volume;
use crate::controllers::persistent_volume::{CLIENT, Unbound};
use crate::controllers::replica_set::has_ended;
use crate::state::cluster::Cluster;
use crate::state::controller_set::Workload;
use crate::types::members::{key_of, text};
use crate::types::object::{finalizers, is_terminating, meta, set_finalizers};
use crate::types::object_key::Key;

const PROTECTION: &str = "kubernetes.io/pvc-protection";
const PROVISIONER: &str = "simulator.innkeeper.dev/volumes";
/// The class of claims that name none.
const CLASS: &str = "standard";
/// The Event of a claim without a class, if no volume matches.
const NO_CLASS: EventSpec<'static> = EventSpec {
    component: "persistentvolume-controller",
    reason: "FailedBinding",
    message: "no persistent volumes available for this claim and no storage class is set",
    warns: false,
};

/// Reconciles one object.
pub(crate) fn sync(cluster: &mut Cluster, key: &Key) {
    if key.0.is_empty() {
        return persistent_volume::offer(cluster, key);
    }
    let Some(claim) = client::get(cluster, &CLAIMS, key) else { return reclaim(cluster, key) };
    if is_terminating(&claim) {
        return remove_protection(cluster, key, Arc::unwrap_or_clone(claim));
    }
    if claim["status"]["phase"] == "Bound" {
        return;
    }
    let class = claim["spec"]["storageClassName"].as_str().unwrap_or(CLASS).to_owned();
    match persistent_volume::volume_for(cluster, &claim, &class) {
        Ok(volume) => persistent_volume::bind_to(cluster, Arc::unwrap_or_clone(claim), volume),
        Err(Unbound::NoneFits) if !class.is_empty() => {
            provision(cluster, Arc::unwrap_or_clone(claim), class);
        }
        Err(Unbound::NoneFits) => event_recorder::record(cluster, &CLIENT, &claim, &NO_CLASS),
        // The named volume may still appear or become available.
        Err(Unbound::Named) => {}
    }
}

/// Creates the volume for a claim.
fn provision(cluster: &mut Cluster, mut claim: ManagedObject, class: String) {
    let key = key_of(&claim);
    let name = format!("pvc-{}", meta(&claim, "uid"));
    let volume = json!({
        "metadata": {"name": name, "annotations": {"pv.kubernetes.io/provisioned-by": PROVISIONER}},
        "spec": {
            "capacity": {"storage": claim["spec"]["resources"]["requests"]["storage"]},
            "accessModes": claim["spec"]["accessModes"],
            "persistentVolumeReclaimPolicy": "Delete",
            "storageClassName": class,
            "volumeMode": claim["spec"]["volumeMode"],
            "claimRef": {
                "kind": "PersistentVolumeClaim", "apiVersion": "v1", "namespace": key.0, "name": key.1,
                "uid": meta(&claim, "uid"), "resourceVersion": meta(&claim, "resourceVersion"),
            },
            "hostPath": {"path": format!("/var/lib/volumes/{name}")},
        },
    });
    let Ok(volume) = client::create(cluster, &CLIENT, &VOLUMES, "", volume) else { return };
    let annotations = &mut claim["metadata"]["annotations"];
    annotations["volume.kubernetes.io/storage-provisioner"] = PROVISIONER.into();
    claim["spec"]["storageClassName"] = class.into();
    let message = format!("Successfully provisioned volume {name}");
    persistent_volume::bind_to(cluster, claim.clone(), volume);
    let event = EventSpec::normal(PROVISIONER, "ProvisioningSucceeded", &message);
    event_recorder::record(cluster, &CLIENT, &claim, &event);
}

/// Removes the protection of a claim that no Pod uses.
fn remove_protection(cluster: &mut Cluster, key: &Key, mut claim: ManagedObject) {
    let held = finalizers(&claim);
    if !held.iter().any(|one| one == PROTECTION) {
        return;
    }
    let pods = cluster.store.collection(&PODS.key());
    let is_used = pods.into_iter().flat_map(|pods| &pods.objects).any(|(place, pod)| {
        place.0 == key.0 && {
            let pod = pod.object();
            let volumes = pod["spec"]["volumes"].as_array().into_iter().flatten();
            let mut claims = volumes.map(|one| text(&one["persistentVolumeClaim"]["claimName"]));
            claims.any(|name| name == key.1) && !has_ended(&pod)
        }
    });
    if is_used {
        let again = client::after_seconds(cluster, 1);
        return cluster.work_queue.wake_at(again, Workload::Claims, key);
    }
    let kept: Vec<String> = held.into_iter().filter(|one| one != PROTECTION).collect();
    set_finalizers(&mut claim, &kept);
    let _ = client::replace(cluster, &CLIENT, &CLAIMS, "", claim);
}

/// Deletes the provisioned volume of a deleted claim.
fn reclaim(cluster: &mut Cluster, key: &Key) {
    for volume in persistent_volume::volumes_of(cluster, key) {
        let by = &volume["metadata"]["annotations"]["pv.kubernetes.io/provisioned-by"];
        if by != PROVISIONER {
            persistent_volume::offer(cluster, &key_of(&volume));
            continue;
        }
        let mut volume = Arc::unwrap_or_clone(volume);
        set_finalizers(&mut volume, &[]);
        if let Ok(volume) = client::replace(cluster, &CLIENT, &VOLUMES, "", volume) {
            client::delete(cluster, &CLIENT, &VOLUMES, &volume, None);
        }
    }
}
