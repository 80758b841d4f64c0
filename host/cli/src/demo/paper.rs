//! A node of paper, for a cluster without nodes: pods of the demo are bound to it, and it says what a kubelet would.
//! Nothing runs.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use innkeeper_lab::{Api, ApiFailure, Content};
use jiff::Timestamp;
use serde_json::{Value, json};

use super::stories::{NAMESPACE, path};

/// What the node and its volumes are called.
const NAME: &str = "innkeeper-demo";
/// The controller manager thinks that a node is gone which has not been heard of for 50 s.
const HEARTBEAT: Duration = Duration::from_secs(10);
/// So long what a pod of a Job does seems to take.
const WORK: Duration = Duration::from_secs(1);

/// A node that is none.
pub(super) struct Paper {
    heard: Instant,
    /// The pods that were bound, by their uid, and when.
    bound: BTreeMap<String, Instant>,
    /// The paths of volumes that were made.
    volumes: BTreeSet<String>,
}

impl Paper {
    /// The node, as it is made.
    pub(super) fn node() -> Value {
        json!({"apiVersion": "v1", "kind": "Node",
            "metadata": {"name": NAME, "annotations": {
                "innkeeper.dev/demo": "not a node: `innkeeper demo` says here what one would, for its own pods"}},
            // Nobody else's pods are to come here.
            "spec": {"unschedulable": true,
                "taints": [{"key": "innkeeper.dev/demo", "effect": "NoSchedule"}]}})
    }

    /// Once the node is there.
    pub(super) async fn begin(api: &Api) -> anyhow::Result<Self> {
        let paper =
            Self { heard: Instant::now(), bound: BTreeMap::new(), volumes: BTreeSet::new() };
        beat(api).await.context("the node of paper cannot say that it is ready")?;
        Ok(paper)
    }

    /// Does what a scheduler, a kubelet and a maker of volumes would have done by now. What has changed meanwhile is
    /// done the next time.
    pub(super) async fn look(&mut self, api: &Api) -> Result<(), ApiFailure> {
        if self.heard.elapsed() > HEARTBEAT {
            beat(api).await?;
            self.heard = Instant::now();
        }
        for claim in api.list(&path(("v1", "persistentvolumeclaims", ""))).await? {
            if claim["status"]["phase"] != "Bound" {
                self.give_volume(api, &claim).await?;
            }
        }
        for pod in api.list(&path(("v1", "pods", ""))).await? {
            match self.look_at(api, &pod).await {
                Ok(()) | Err(ApiFailure::Refused { code: 404 | 409, .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    async fn look_at(&mut self, api: &Api, pod: &Value) -> Result<(), ApiFailure> {
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
        let ends = pod["spec"]["restartPolicy"] != "Always";
        let phase = if ends && since.elapsed() > WORK { "Succeeded" } else { "Running" };
        if pod["status"]["phase"] == phase {
            return Ok(());
        }
        let address = match pod["status"]["podIP"].as_str() {
            Some(address) => address.to_owned(),
            // Of a net that is kept for examples.
            None => format!("198.51.100.{}", count % 250 + 1),
        };
        let status = json!({ "status": status(pod, phase, &address) });
        api.send("PATCH", &format!("{at}/status"), Content::MergePatch, &status).await.map(drop)
    }

    /// A volume for a claim: the controller manager binds them to each other.
    async fn give_volume(&mut self, api: &Api, claim: &Value) -> Result<(), ApiFailure> {
        let metadata = &claim["metadata"];
        let name = format!("{NAME}-{}", text(&metadata["name"]));
        let at = format!("/api/v1/persistentvolumes/{name}");
        if !self.volumes.insert(at.clone()) || api.get(&at).await?.is_some() {
            return Ok(());
        }
        let volume = json!({"apiVersion": "v1", "kind": "PersistentVolume",
            "metadata": {"name": name, "labels": super::real::label()},
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

/// The node is ready.
async fn beat(api: &Api) -> Result<(), ApiFailure> {
    let now = Timestamp::now();
    let now = Timestamp::from_second(now.as_second()).unwrap_or(now).to_string();
    let room = json!({"cpu": "64", "memory": "256Gi", "pods": "1000"});
    let status = json!({"status": {"capacity": room, "allocatable": room,
        "addresses": [{"type": "Hostname", "address": NAME}],
        "conditions": [{"type": "Ready", "status": "True", "reason": "OfPaper",
            "message": "innkeeper demo says so", "lastHeartbeatTime": now, "lastTransitionTime": now}]}});
    let at = format!("/api/v1/nodes/{NAME}/status");
    api.send("PATCH", &at, Content::MergePatch, &status).await.map(drop)
}

/// What a kubelet would say of a pod.
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
