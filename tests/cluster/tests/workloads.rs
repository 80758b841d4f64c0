//! The simulator's controllers beside the real ones: the same objects, the same words about their Pods, and the
//! same outcomes. Services are left out: the real controllers expose only Pods on nodes.
//!
//! The control plane of the tests has no nodes, so the story says on both sides what a kubelet would; the
//! simulator's own is turned off.

#![allow(clippy::unwrap_used, reason = "a test may fail by it")]

use std::time::Duration;

use anyhow::{Result, bail};
use bytes::Bytes;
use innkeeper_cluster_tests::{Admin, shared};
use innkeeper_simulator::{Controllers, Simulator, Workload};
use jiff::SignedDuration;
use serde_json::{Value, json};

const KINDS: [&str; 5] = [
    "apis/apps/v1 deployments",
    "apis/apps/v1 replicasets",
    "api/v1 pods",
    "apis/batch/v1 jobs",
    "api/v1 events",
];

/// Either side.
enum World {
    Real(Admin),
    Simulated(Simulator),
}

impl World {
    async fn send(&self, method: &str, path: &str, kind: &str, body: &Value) -> Result<Value> {
        let text = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
        let request = http::Request::builder()
            .method(method)
            .uri(path)
            .header("content-type", kind)
            .header("user-agent", "test")
            .body(text)?;
        match self {
            Self::Real(admin) => Ok(admin.client().request(request).await?),
            Self::Simulated(simulator) => {
                let response = simulator.request(request.map(Bytes::from));
                let code = response.status();
                let body = response.into_body().try_next().unwrap_or_default();
                let body: Value = serde_json::from_slice(&body)?;
                if !code.is_success() {
                    bail!("{method} {path}: {body}");
                }
                Ok(body)
            }
        }
    }

    async fn list(&self, kind: &str) -> Result<Vec<Value>> {
        let (version, plural) = kind.split_once(' ').unwrap();
        let path = format!("/{version}/namespaces/story/{plural}");
        let list = self.send("GET", &path, "", &Value::Null).await?;
        Ok(list["items"].as_array().cloned().unwrap_or_default())
    }

    async fn create(&self, kind: &str, object: &Value) -> Result<()> {
        let (version, plural) = kind.split_once(' ').unwrap();
        let path = format!("/{version}/namespaces/story/{plural}");
        self.send("POST", &path, "application/json", object).await.map(|_| ())
    }

    /// Waits until it comes true: the real one for a minute, the simulated one for a minute of its own.
    async fn until(&self, what: &str, holds: impl Fn(&Seen) -> bool) -> Result<()> {
        let mut seen = Seen::default();
        for _ in 0..300 {
            seen.deployments = self.list(KINDS[0]).await?;
            seen.sets = self.list(KINDS[1]).await?;
            seen.pods = self.list(KINDS[2]).await?;
            seen.jobs = self.list(KINDS[3]).await?;
            if holds(&seen) {
                return Ok(());
            }
            match self {
                Self::Real(_) => tokio::time::sleep(Duration::from_millis(200)).await,
                Self::Simulated(one) => one.advance(SignedDuration::from_millis(200)),
            }
        }
        bail!("{what}: not within a minute: {seen:#?}")
    }

    /// What a kubelet says of all Pods that have said nothing yet.
    async fn say(&self, status: &Value) -> Result<()> {
        let mut pods = self.list("api/v1 pods").await?;
        pods.retain(|pod| pod["status"]["phase"] == "Pending");
        pods.sort_by_key(|pod| pod["metadata"]["name"].to_string());
        for (index, pod) in pods.iter().enumerate() {
            let name = pod["metadata"]["name"].as_str().unwrap();
            let address = format!("10.1.0.{}", index + 1);
            let mut status = status.clone();
            status["podIP"] = address.as_str().into();
            status["podIPs"] = json!([{"ip": address}]);
            let path = format!("/api/v1/namespaces/story/pods/{name}/status");
            let kind = "application/merge-patch+json";
            self.send("PATCH", &path, kind, &json!({ "status": status })).await?;
        }
        Ok(())
    }

    async fn play(&self) -> Result<Vec<String>> {
        let namespace = json!({"metadata": {"name": "story"}});
        self.send("POST", "/api/v1/namespaces", "application/json", &namespace).await?;
        let labels = json!({"app": "web"});
        let deployment = json!({"metadata": {"name": "web", "annotations": {"a": "b"}}, "spec": {
            "replicas": 2, "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "web", "image": "nginx:1"}]}}}});
        self.create(KINDS[0], &deployment).await?;
        let job = json!({"metadata": {"name": "work", "labels": {"app": "work"}}, "spec": {"completions": 1,
            "template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "work", "image": "busybox"}]}}}});
        self.create(KINDS[3], &job).await?;
        self.until("three Pods", |seen| {
            seen.pods.len() == 3 && seen.jobs[0]["status"]["active"] == 1
        })
        .await?;
        let now = json!({"phase": "Running", "conditions": [
            {"type": "Ready", "status": "True", "lastTransitionTime": "2026-11-22T00:00:00Z"}]});
        self.say(&now).await?;
        self.until("all are ready", |seen| {
            let progress = seen.deployments[0]["status"]["conditions"].as_array();
            seen.jobs[0]["status"]["ready"] == 1
                && progress.is_some_and(|list| {
                    list.iter().any(|one| one["reason"] == "NewReplicaSetAvailable")
                })
        })
        .await?;
        // The Job's Pod has done its work.
        let job = self.list("api/v1 pods").await?;
        let pod = job.iter().find(|pod| pod["metadata"]["labels"]["job-name"] == "work").unwrap();
        let name = pod["metadata"]["name"].as_str().unwrap();
        let path = format!("/api/v1/namespaces/story/pods/{name}/status");
        let ended = json!({"status": {"phase": "Succeeded", "conditions": [
            {"type": "Ready", "status": "False", "lastTransitionTime": "2026-11-22T00:00:00Z"}]}});
        self.send("PATCH", &path, "application/merge-patch+json", &ended).await?;
        self.until("the Job is complete", |seen| {
            seen.jobs[0]["status"]["completionTime"].is_string()
        })
        .await?;
        let path = "/apis/apps/v1/namespaces/story/deployments/web";
        let one = json!({"spec": {"replicas": 1}});
        self.send("PATCH", path, "application/merge-patch+json", &one).await?;
        self.until("one Pod is left", |seen| {
            seen.pods.len() == 2
                && seen.deployments[0]["status"]["replicas"] == 1
                && seen.deployments[0]["status"]["observedGeneration"] == 2
                && seen.sets[0]["status"]["terminatingReplicas"] == 0
        })
        .await?;
        let mut all = Vec::new();
        for kind in KINDS {
            for mut object in self.list(kind).await? {
                object["kind"] = kind.split_once(' ').unwrap().1.into();
                all.push(object);
            }
        }
        Ok(normalised(&all))
    }
}

/// What there is at a moment.
#[derive(Debug, Default)]
struct Seen {
    deployments: Vec<Value>,
    sets: Vec<Value>,
    pods: Vec<Value>,
    jobs: Vec<Value>,
}

/// The leaves of all objects, one a line, without what differs in each run.
fn normalised(all: &[Value]) -> Vec<String> {
    let mut replaced: Vec<(String, String)> = Vec::new();
    for object in all {
        let metadata = &object["metadata"];
        let kind = object["kind"].as_str().unwrap();
        let name = metadata["name"].as_str().unwrap();
        if let Some(prefix) = metadata["generateName"].as_str() {
            replaced.push((name.to_owned(), format!("{prefix}RANDOM")));
        }
        if let Some(hash) = metadata["labels"]["pod-template-hash"].as_str() {
            replaced.push((hash.to_owned(), "HASH".to_owned()));
        }
        replaced.push((metadata["uid"].as_str().unwrap().to_owned(), format!("UID of {kind}")));
    }
    // What contains another one first.
    replaced.sort_by_key(|(text, _)| std::cmp::Reverse(text.len()));
    let mut lines = Vec::new();
    for object in all {
        let kind = object["kind"].as_str().unwrap();
        let mut object = object.clone();
        let metadata = object["metadata"].as_object_mut().unwrap();
        for name in ["resourceVersion", "managedFields"] {
            metadata.remove(name);
        }
        if kind == "events" {
            metadata.clear();
            let about = object["involvedObject"].as_object_mut().unwrap();
            about.remove("resourceVersion");
        }
        if kind == "pods" {
            // What admission gives a Pod is a known difference.
            object["spec"] = Value::Null;
            if let Some(status) = object["status"].as_object_mut() {
                status.remove("qosClass");
            }
        }
        // Those of several Pods are written in the order of chance.
        for name in ["podIP", "podIPs"] {
            if let Some(status) = object["status"].as_object_mut() {
                status.remove(name);
            }
        }
        let mut leaves = Vec::new();
        leaf(&object, "", &mut leaves);
        let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        let words = if kind == "events" { leaves.join(" ") } else { String::new() };
        if words.is_empty() {
            lines.extend(leaves.into_iter().map(|leaf| format!("{kind} {name} {leaf}")));
        } else {
            lines.push(format!("{kind} {words}"));
        }
    }
    let mut lines: Vec<String> = lines
        .into_iter()
        .map(|mut line| {
            for (text, instead) in &replaced {
                line = line.replace(text, instead);
            }
            // Of a Pod that is gone there are only Events.
            if let Some(at) = line.find("pod: web-HASH-").map(|at| at + "pod: web-HASH-".len()) {
                let end = line[at..].find('"').map_or(line.len(), |end| at + end);
                line.replace_range(at..end, "RANDOM");
            }
            line
        })
        .collect();
    lines.sort();
    lines
}

fn leaf(value: &Value, path: &str, found: &mut Vec<String>) {
    match value {
        Value::Object(map) if !map.is_empty() => {
            for (name, value) in map {
                leaf(value, &format!("{path}.{name}"), found);
            }
        }
        Value::Array(list) if !list.is_empty() => {
            for (index, value) in list.iter().enumerate() {
                leaf(value, &format!("{path}[{index}]"), found);
            }
        }
        Value::String(text) if text.len() >= 20 && text.parse::<jiff::Timestamp>().is_ok() => {
            found.push(format!("{path}=TIME"));
        }
        Value::String(text) if text.starts_with("10.1.0.") => found.push(format!("{path}=IP")),
        other => found.push(format!("{path}={other}")),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn deployments_and_jobs_end_as_the_real_controllers_end_them() -> Result<()> {
    let real = World::Real(Admin::of(shared()?).await?).play().await?;
    let mut controllers = Controllers::all();
    controllers.workloads = controllers.workloads.without(Workload::Pods);
    let simulator = Simulator::with(1, jiff::Timestamp::now(), controllers);
    let simulated = World::Simulated(simulator).play().await?;
    let missing: Vec<&String> = real.iter().filter(|line| !simulated.contains(line)).collect();
    let surplus: Vec<&String> = simulated.iter().filter(|line| !real.contains(line)).collect();
    assert!(
        missing.is_empty() && surplus.is_empty(),
        "only on the real one: {missing:#?}\nonly on the simulated one: {surplus:#?}"
    );
    assert!(real.len() > 100, "there is something to compare");
    Ok(())
}
