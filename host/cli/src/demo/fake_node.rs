//! A fake node, for a cluster without nodes: it binds the demo's pods, and reports the statuses
//! that a kubelet would. No container runs.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use innkeeper_lab::{Api, ApiFailure, Content};
use jiff::Timestamp;
use serde_json::{Value, json};

use super::constants::{LABEL, LABEL_VALUE, NAMESPACE};
use super::resources::path;

/// The name of the node, and the prefix of its volumes' names.
const NAME: &str = "innkeeper-demo";
/// How often the node reports its status: the controller manager gives up on a node after 50 s.
const HEARTBEAT: Duration = Duration::from_secs(10);
/// How long a pod of a Job seems to run.
const WORK: Duration = Duration::from_secs(1);

/// A node without a kubelet.
pub(super) struct FakeNode {
    last_heartbeat: Instant,
    /// When each pod was bound, by uid.
    bound: BTreeMap<String, Instant>,
    /// The paths of the volumes that it created.
    volumes: BTreeSet<String>,
}

impl FakeNode {
    /// The Node object.
    pub(super) fn manifest() -> Value {
        json!({"apiVersion": "v1", "kind": "Node",
            "metadata": {"name": NAME, "annotations": {
                "innkeeper.dev/demo": "not a real node: `innkeeper demo` reports its own pods as running"}},
            // The scheduler must place no other pods here.
            "spec": {"unschedulable": true,
                "taints": [{"key": "innkeeper.dev/demo", "effect": "NoSchedule"}]}})
    }

    /// Reports the created Node as ready.
    ///
    /// # Errors
    /// If the API server refuses the status.
    pub(super) async fn start(api: &Api) -> anyhow::Result<Self> {
        let node = Self {
            last_heartbeat: Instant::now(),
            bound: BTreeMap::new(),
            volumes: BTreeSet::new(),
        };
        heartbeat(api).await.context("the fake node cannot report that it is ready")?;
        Ok(node)
    }

    /// Does what a scheduler, a kubelet and a volume provisioner would have done by now. Changes
    /// during the call wait for the next one.
    ///
    /// # Errors
    /// If the API server refuses a request.
    pub(super) async fn update(&mut self, api: &Api) -> Result<(), ApiFailure> {
        if self.last_heartbeat.elapsed() > HEARTBEAT {
            heartbeat(api).await?;
            self.last_heartbeat = Instant::now();
        }
        for claim in api.list(&path(("v1", "persistentvolumeclaims", ""))).await? {
            if claim["status"]["phase"] != "Bound" {
                self.create_volume(api, &claim).await?;
            }
        }
        for pod in api.list(&path(("v1", "pods", ""))).await? {
            match self.update_pod(api, &pod).await {
                Ok(()) | Err(ApiFailure::Refused { code: 404 | 409, .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    async fn update_pod(&mut self, api: &Api, pod: &Value) -> Result<(), ApiFailure> {
        let at = path(("v1", "pods", text(&pod["metadata"]["name"])));
        let uid = text(&pod["metadata"]["uid"]);
        if pod["spec"]["nodeName"].is_null() {
            let binding = json!({"apiVersion": "v1", "kind": "Binding",
                "metadata": {"name": pod["metadata"]["name"], "namespace": NAMESPACE},
                "target": {"apiVersion": "v1", "kind": "Node", "name": NAME}});
            api.send("POST", &format!("{at}/binding"), Content::Json, &binding).await?;
            self.bound.insert(uid.to_owned(), Instant::now());
            return Ok(());
        }
        if pod["metadata"]["deletionTimestamp"].is_string() {
            let now = json!({"kind": "DeleteOptions", "apiVersion": "v1",
                "gracePeriodSeconds": 0, "preconditions": {"uid": uid}});
            api.send("DELETE", &at, Content::Json, &now).await?;
            return Ok(());
        }
        if matches!(pod["status"]["phase"].as_str(), Some("Succeeded" | "Failed")) {
            return Ok(());
        }
        let count = self.bound.len();
        let since = *self.bound.entry(uid.to_owned()).or_insert_with(Instant::now);
        let is_job = pod["spec"]["restartPolicy"] != "Always";
        let phase = if is_job && since.elapsed() > WORK { "Succeeded" } else { "Running" };
        if pod["status"]["phase"] == phase {
            return Ok(());
        }
        let address = match pod["status"]["podIP"].as_str() {
            Some(address) => address.to_owned(),
            // RFC 5737 reserves this network for documentation.
            None => format!("198.51.100.{}", count % 250 + 1),
        };
        let status = json!({ "status": status(pod, phase, &address) });
        api.send("PATCH", &format!("{at}/status"), Content::MergePatch, &status).await.map(drop)
    }

    /// Creates a volume for a claim; the controller manager binds them to each other.
    async fn create_volume(&mut self, api: &Api, claim: &Value) -> Result<(), ApiFailure> {
        let metadata = &claim["metadata"];
        let name = format!("{NAME}-{}", text(&metadata["name"]));
        let at = format!("/api/v1/persistentvolumes/{name}");
        if !self.volumes.insert(at.clone()) || api.get(&at).await?.is_some() {
            return Ok(());
        }
        let volume = json!({"apiVersion": "v1", "kind": "PersistentVolume",
            "metadata": {"name": name, "labels": {LABEL: LABEL_VALUE}},
            "spec": {"capacity": claim["spec"]["resources"]["requests"],
                "accessModes": claim["spec"]["accessModes"],
                "storageClassName": text(&claim["spec"]["storageClassName"]),
                "persistentVolumeReclaimPolicy": "Retain",
                "claimRef": {"apiVersion": "v1", "kind": "PersistentVolumeClaim",
                    "namespace": NAMESPACE, "name": metadata["name"], "uid": metadata["uid"]},
                "hostPath": {"path": format!("/nowhere/{name}")}}});
        api.apply(&volume, "").await
    }
}

/// Reports the node as ready.
async fn heartbeat(api: &Api) -> Result<(), ApiFailure> {
    let now = Timestamp::now();
    let now = Timestamp::from_second(now.as_second()).unwrap_or(now).to_string();
    let room = json!({"cpu": "64", "memory": "256Gi", "pods": "1000"});
    let status = json!({"status": {"capacity": room, "allocatable": room,
        "addresses": [{"type": "Hostname", "address": NAME}],
        "conditions": [{"type": "Ready", "status": "True", "reason": "FakeNode",
            "message": "innkeeper demo reports this status", "lastHeartbeatTime": now, "lastTransitionTime": now}]}});
    let at = format!("/api/v1/nodes/{NAME}/status");
    api.send("PATCH", &at, Content::MergePatch, &status).await.map(drop)
}

/// The status that a kubelet would report for a pod.
fn status(pod: &Value, phase: &str, address: &str) -> Value {
    let now = Timestamp::now();
    let now = Timestamp::from_second(now.as_second()).unwrap_or(now).to_string();
    let is_running = phase == "Running";
    let ended = json!({"terminated": {"exitCode": 0, "reason": "Completed", "startedAt": now, "finishedAt": now}});
    let containers = |members: &str, is_running: bool| -> Vec<Value> {
        let all = pod["spec"][members].as_array();
        let state = if is_running { json!({"running": {"startedAt": now}}) } else { ended.clone() };
        all.into_iter()
            .flatten()
            .map(|one| {
                json!({"name": one["name"], "image": one["image"], "imageID": "", "restartCount": 0,
                    "ready": is_running, "started": is_running, "state": state})
            })
            .collect()
    };
    let mut conditions: Vec<Value> =
        pod["status"]["conditions"].as_array().cloned().unwrap_or_default();
    for (type_, is_true) in
        [("Initialized", true), ("ContainersReady", is_running), ("Ready", is_running)]
    {
        conditions.retain(|one| one["type"] != type_);
        let status = if is_true { "True" } else { "False" };
        conditions.push(json!({"type": type_, "status": status, "lastTransitionTime": now}));
    }
    let mut status = json!({"phase": phase, "podIP": address, "podIPs": [{"ip": address}],
        "startTime": now, "conditions": conditions,
        "initContainerStatuses": containers("initContainers", false),
        "containerStatuses": containers("containers", is_running)});
    if let Some(generation) = pod["metadata"]["generation"].as_i64() {
        status["observedGeneration"] = generation.into();
    }
    status
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}
