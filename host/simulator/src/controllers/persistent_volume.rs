//! Binds claims to existing volumes, and sets the phase of a volume whose claim was deleted.
//!
//! As in Kubernetes' binder: a volume that names the claim comes first; otherwise the smallest
//! available one with the class, mode, labels and access modes of the claim, and the fewest further
//! access modes.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::apply::managed_object::ManagedObject;
use crate::controllers::client;
use crate::controllers::client::{CLAIMS, Client, VOLUMES};
use crate::state::cluster::Cluster;
use crate::state::controller_set::Workload;
use crate::state::store::Stored;
use crate::types::kinds::claim::asked;
use crate::types::kinds::quantity::billionths;
use crate::types::members::{key_of, text};
use crate::types::object::{finalizers, is_terminating, meta, set_finalizers};
use crate::types::object_key::Key;
use crate::types::selector::Selector;

pub(crate) const CLIENT: Client =
    Client::controller("system:serviceaccount:kube-system:persistent-volume-binder");
const PROTECTION: &str = "kubernetes.io/pv-protection";

/// Why a claim has no volume.
pub(crate) enum Unbound {
    /// The named volume does not exist, or belongs to another claim.
    Named,
    /// No existing volume matches.
    NoneFits,
}

/// Sets the phase of a volume: available, bound or released.
pub(crate) fn offer(cluster: &mut Cluster, key: &Key) {
    let Some(volume) = client::get(cluster, &VOLUMES, key) else { return };
    let phase = phase_of(cluster, &volume);
    let mut volume = Arc::unwrap_or_clone(volume);
    if is_terminating(&volume) && phase != "Bound" {
        let held = finalizers(&volume).into_iter().filter(|one| one != PROTECTION);
        let held: Vec<String> = held.collect();
        set_finalizers(&mut volume, &held);
        let _ = client::replace(cluster, &CLIENT, &VOLUMES, "", volume);
        return;
    }
    if volume["status"]["phase"] != phase {
        volume["status"]["phase"] = phase.into();
        let _ = client::replace(cluster, &CLIENT, &VOLUMES, "status", volume);
    }
    if phase == "Available" {
        for claim in waiting_claims(cluster) {
            cluster.work_queue.wake(cluster.controllers, Workload::Claims, &claim);
        }
    }
}

fn phase_of(cluster: &Cluster, volume: &Value) -> &'static str {
    let reference = &volume["spec"]["claimRef"];
    if reference.is_null() {
        return "Available";
    }
    let key = (text(&reference["namespace"]).to_owned(), text(&reference["name"]).to_owned());
    match client::get(cluster, &CLAIMS, &key) {
        Some(claim) if meta(&claim, "uid") == text(&reference["uid"]) => "Bound",
        // It is reserved for a future claim.
        _ if text(&reference["uid"]).is_empty() => "Available",
        _ => "Released",
    }
}

fn waiting_claims(cluster: &Cluster) -> Vec<Key> {
    let Some(claims) = cluster.store.collection(&CLAIMS.key()) else { return Vec::new() };
    let waits = |claim: &Stored| claim.object()["status"]["phase"] != "Bound";
    claims.objects.iter().filter(|(_, one)| waits(one)).map(|(key, _)| key.clone()).collect()
}

/// The volumes that name a claim.
pub(crate) fn volumes_of(cluster: &Cluster, claim: &Key) -> Vec<Arc<ManagedObject>> {
    let Some(volumes) = cluster.store.collection(&VOLUMES.key()) else { return Vec::new() };
    let all = volumes.objects.values().map(Stored::object);
    all.filter(|volume| is_claimed(volume, claim)).collect()
}

/// The existing volume for a claim.
pub(crate) fn volume_for(
    cluster: &Cluster,
    claim: &Value,
    class: &str,
) -> Result<Arc<ManagedObject>, Unbound> {
    let key = key_of(claim);
    let is_free = |volume: &Value| volume["spec"]["claimRef"].is_null();
    let is_kept = |volume: &Value| {
        let uid = text(&volume["spec"]["claimRef"]["uid"]);
        is_claimed(volume, &key) && (uid.is_empty() || uid == meta(claim, "uid"))
    };
    let named = text(&claim["spec"]["volumeName"]);
    if !named.is_empty() {
        let volume = client::get(cluster, &VOLUMES, &(String::new(), named.to_owned()));
        let volume = volume.filter(|volume| is_free(volume) || is_kept(volume));
        return volume.filter(|volume| is_enough(volume, claim)).ok_or(Unbound::Named);
    }
    let volumes = cluster.store.collection(&VOLUMES.key()).ok_or(Unbound::NoneFits)?;
    let all = volumes.objects.values().map(Stored::object);
    let fits: Vec<Arc<ManagedObject>> = all.filter(|volume| is_enough(volume, claim)).collect();
    if let Some(kept) = fits.iter().find(|volume| is_kept(volume)) {
        return Ok(kept.clone());
    }
    let selector = Selector::of(&claim["spec"]["selector"]);
    let is_meant = |volume: &&Arc<ManagedObject>| {
        is_free(volume)
            && volume["status"]["phase"] == "Available"
            && text(&volume["spec"]["storageClassName"]) == class
            && selector.fits(volume)
    };
    let size = |volume: &&Arc<ManagedObject>| {
        let modes = volume["spec"]["accessModes"].as_array().map_or(0, Vec::len);
        (modes, billionths(text(&volume["spec"]["capacity"]["storage"])))
    };
    fits.iter().filter(is_meant).min_by_key(size).cloned().ok_or(Unbound::NoneFits)
}

/// Binds a volume and a claim to each other.
pub(crate) fn bind_to(cluster: &mut Cluster, mut claim: ManagedObject, volume: Arc<ManagedObject>) {
    let mut volume = Arc::unwrap_or_clone(volume);
    if text(&volume["spec"]["claimRef"]["uid"]).is_empty() {
        if volume["spec"]["claimRef"].is_null() {
            volume["metadata"]["annotations"]["pv.kubernetes.io/bound-by-controller"] =
                "yes".into();
        }
        volume["spec"]["claimRef"] = json!({
            "kind": "PersistentVolumeClaim", "apiVersion": "v1",
            "namespace": meta(&claim, "namespace"), "name": meta(&claim, "name"),
            "uid": meta(&claim, "uid"), "resourceVersion": meta(&claim, "resourceVersion"),
        });
        let Ok(stored) = client::replace(cluster, &CLIENT, &VOLUMES, "", volume) else { return };
        volume = Arc::unwrap_or_clone(stored);
    }
    if volume["status"]["phase"] != "Bound" {
        volume["status"]["phase"] = "Bound".into();
        let Ok(stored) = client::replace(cluster, &CLIENT, &VOLUMES, "status", volume) else {
            return;
        };
        volume = Arc::unwrap_or_clone(stored);
    }
    let annotations = &mut claim["metadata"]["annotations"];
    annotations["pv.kubernetes.io/bind-completed"] = "yes".into();
    if text(&claim["spec"]["volumeName"]).is_empty() {
        let annotations = &mut claim["metadata"]["annotations"];
        annotations["pv.kubernetes.io/bound-by-controller"] = "yes".into();
        claim["spec"]["volumeName"] = volume["metadata"]["name"].clone();
    }
    let Ok(claim) = client::replace(cluster, &CLIENT, &CLAIMS, "", claim) else { return };
    let mut claim = Arc::unwrap_or_clone(claim);
    claim["status"] = json!({
        "phase": "Bound", "accessModes": volume["spec"]["accessModes"],
        "capacity": volume["spec"]["capacity"],
    });
    let _ = client::replace(cluster, &CLIENT, &CLAIMS, "status", claim);
}

fn is_claimed(volume: &Value, claim: &Key) -> bool {
    let reference = &volume["spec"]["claimRef"];
    reference["namespace"] == claim.0 && reference["name"] == claim.1
}

/// Whether a volume satisfies a claim, bound or not.
fn is_enough(volume: &Value, claim: &Value) -> bool {
    let modes = volume["spec"]["accessModes"].as_array();
    let ways = claim["spec"]["accessModes"].as_array().into_iter().flatten();
    !is_terminating(volume)
        && volume["spec"]["volumeMode"] == claim["spec"]["volumeMode"]
        && billionths(text(&volume["spec"]["capacity"]["storage"])) >= Some(asked(claim))
        && ways.into_iter().all(|mode| modes.is_some_and(|modes| modes.contains(mode)))
}
