//! Claims: a volume for each, as a provisioner of the default class makes it.

use std::sync::Arc;

use serde_json::{Value, json};

use super::client::{CLAIMS, Client, PODS, VOLUMES, text};
use super::event::Said;
use super::replica_set::has_ended;
use super::workload::Workload;
use crate::cluster::Cluster;
use crate::object::{finalizers, is_terminating, meta, set_finalizers};
use crate::store::Key;

const CLIENT: Client =
    Client::controller("system:serviceaccount:kube-system:persistent-volume-binder");
const PROTECTION: &str = "kubernetes.io/pvc-protection";
const PROVISIONER: &str = "simulator.innkeeper.dev/volumes";
/// The class of claims that name none.
const CLASS: &str = "standard";

impl Cluster {
    /// Looks at a claim.
    pub(super) fn bind(&mut self, key: &Key) {
        let Some(claim) = self.read(&CLAIMS, key) else { return self.reclaim(key) };
        if is_terminating(&claim) {
            return self.unprotect(key, Arc::unwrap_or_clone(claim));
        }
        // One that names no class wants a volume that somebody has made.
        if claim["status"]["phase"] == "Bound" || claim["spec"]["storageClassName"] == "" {
            return;
        }
        let mut claim = Arc::unwrap_or_clone(claim);
        let name = format!("pvc-{}", meta(&claim, "uid"));
        let class = claim["spec"]["storageClassName"].as_str().unwrap_or(CLASS).to_owned();
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
        let Ok(volume) = self.create_as(&CLIENT, &VOLUMES, "", volume) else { return };
        let mut volume = Arc::unwrap_or_clone(volume);
        volume["status"] = json!({"phase": "Bound"});
        let _ = self.replace_as(&CLIENT, &VOLUMES, "status", volume);
        let annotations = &mut claim["metadata"]["annotations"];
        annotations["pv.kubernetes.io/bind-completed"] = "yes".into();
        annotations["pv.kubernetes.io/bound-by-controller"] = "yes".into();
        annotations["volume.kubernetes.io/storage-provisioner"] = PROVISIONER.into();
        claim["spec"]["volumeName"] = name.as_str().into();
        claim["spec"]["storageClassName"] = class.into();
        let Ok(claim) = self.replace_as(&CLIENT, &CLAIMS, "", claim) else { return };
        let mut claim = Arc::unwrap_or_clone(claim);
        claim["status"] = json!({
            "phase": "Bound", "accessModes": claim["spec"]["accessModes"],
            "capacity": {"storage": claim["spec"]["resources"]["requests"]["storage"]},
        });
        let _ = self.replace_as(&CLIENT, &CLAIMS, "status", claim.clone());
        let message = format!("Successfully provisioned volume {name}");
        let said = Said::normal(PROVISIONER, "ProvisioningSucceeded", &message);
        self.say(&CLIENT, &claim, &said);
    }

    /// Lets a claim go when no Pod uses it.
    fn unprotect(&mut self, key: &Key, mut claim: Value) {
        let held = finalizers(&claim);
        if !held.iter().any(|one| one == PROTECTION) {
            return;
        }
        let pods = self.store.collection(&PODS.key());
        let is_used = pods.into_iter().flat_map(|pods| &pods.objects).any(|(place, pod)| {
            place.0 == key.0 && {
                let pod = pod.object();
                let volumes = pod["spec"]["volumes"].as_array().into_iter().flatten();
                let mut claims =
                    volumes.map(|one| text(&one["persistentVolumeClaim"]["claimName"]));
                claims.any(|name| name == key.1) && !has_ended(&pod)
            }
        });
        if is_used {
            let again = self.in_s(1);
            return self.following.wake_at(again, Workload::Claims, key);
        }
        let kept: Vec<String> = held.into_iter().filter(|one| one != PROTECTION).collect();
        set_finalizers(&mut claim, &kept);
        let _ = self.replace_as(&CLIENT, &CLAIMS, "", claim);
    }

    /// Deletes the volumes of a claim that is gone.
    fn reclaim(&mut self, key: &Key) {
        let Some(volumes) = self.store.collection(&VOLUMES.key()) else { return };
        let left: Vec<Arc<Value>> = volumes
            .objects
            .values()
            .map(crate::store::Stored::object)
            .filter(|volume| {
                let claim = &volume["spec"]["claimRef"];
                claim["namespace"] == key.0
                    && claim["name"] == key.1
                    && volume["metadata"]["annotations"]["pv.kubernetes.io/provisioned-by"]
                        == PROVISIONER
            })
            .collect();
        for volume in left {
            let mut volume = Arc::unwrap_or_clone(volume);
            set_finalizers(&mut volume, &[]);
            if let Ok(volume) = self.replace_as(&CLIENT, &VOLUMES, "", volume) {
                self.delete_as(&CLIENT, &VOLUMES, &volume, None);
            }
        }
    }
}
