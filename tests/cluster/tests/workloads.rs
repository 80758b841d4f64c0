//! The simulator's controllers compared with the real ones: the same objects, the same words about their
//! Pods, and the same outcomes. The volumes of claims are made by the story: the real controllers
//! make none.
//!
//! The control plane of the tests has no nodes, so the story says on both sides what a kubelet
//! would; the simulator's own is turned off.

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

/// What the second story is about.
const MORE: [&str; 9] = [
    "apis/apps/v1 statefulsets",
    "apis/apps/v1 controllerrevisions",
    "api/v1 pods",
    "apis/batch/v1 cronjobs",
    "apis/batch/v1 jobs",
    "api/v1 services",
    "api/v1 endpoints",
    "apis/discovery.k8s.io/v1 endpointslices",
    "api/v1 events",
];

/// What the third story is about.
const CLAIMED: [&str; 3] = ["api/v1 persistentvolumeclaims", VOLUMES, "api/v1 events"];
/// These are in no namespace.
const VOLUMES: &str = "api/v1 persistentvolumes";

/// Either side.
enum Side {
    Real(Admin),
    Simulated(Simulator),
}

/// A side, and the namespace of the story.
struct World {
    side: Side,
    namespace: &'static str,
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
        match &self.side {
            Side::Real(admin) => Ok(admin.client().request(request).await?),
            Side::Simulated(simulator) => {
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

    /// Where a kind's objects are, or one of them.
    fn path(&self, kind: &str) -> String {
        let (version, plural) = kind.split_once(' ').unwrap();
        if kind.starts_with(VOLUMES) {
            return format!("/{version}/{plural}");
        }
        format!("/{version}/namespaces/{}/{plural}", self.namespace)
    }

    /// Begins a story.
    async fn begin(&self) -> Result<()> {
        let namespace = json!({"metadata": {"name": self.namespace}});
        self.send("POST", "/api/v1/namespaces", "application/json", &namespace).await.map(|_| ())
    }

    async fn list(&self, kind: &str) -> Result<Vec<Value>> {
        let list = self.send("GET", &self.path(kind), "", &Value::Null).await?;
        Ok(list["items"].as_array().cloned().unwrap_or_default())
    }

    async fn create(&self, kind: &str, object: &Value) -> Result<()> {
        self.send("POST", &self.path(kind), "application/json", object).await.map(|_| ())
    }

    /// Waits until it comes true: the real one for a minute, the simulated one for a minute of its
    /// own.
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
            self.wait().await;
        }
        bail!("{what}: not within a minute: {seen:#?}")
    }

    async fn wait(&self) {
        match &self.side {
            Side::Real(_) => tokio::time::sleep(Duration::from_millis(200)).await,
            Side::Simulated(one) => one.advance(SignedDuration::from_millis(200)),
        }
    }

    /// Waits until all objects of a kind are so: at most two minutes, since a schedule may need
    /// one.
    async fn until_all(
        &self,
        what: &str,
        kind: &str,
        holds: impl Fn(&[Value]) -> bool,
    ) -> Result<()> {
        let mut seen = Vec::new();
        for _ in 0..600 {
            seen = self.list(kind).await?;
            if holds(&seen) {
                return Ok(());
            }
            self.wait().await;
        }
        bail!("{what}: not within two minutes: {seen:#?}")
    }

    /// Writes what a kubelet would to all Pods that have no status yet.
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
            self.patch(&format!("api/v1 pods/{name}/status"), &json!({ "status": status })).await?;
        }
        Ok(())
    }

    async fn play(&self) -> Result<Vec<String>> {
        self.begin().await?;
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
        let ended = json!({"status": {"phase": "Succeeded", "conditions": [
            {"type": "Ready", "status": "False", "lastTransitionTime": "2026-11-22T00:00:00Z"}]}});
        self.patch(&format!("api/v1 pods/{name}/status"), &ended).await?;
        self.until("the Job is complete", |seen| {
            seen.jobs[0]["status"]["completionTime"].is_string()
        })
        .await?;
        let one = json!({"spec": {"replicas": 1}});
        self.patch("apis/apps/v1 deployments/web", &one).await?;
        self.until("one Pod is left", |seen| {
            seen.pods.len() == 2
                && seen.deployments[0]["status"]["replicas"] == 1
                && seen.deployments[0]["status"]["observedGeneration"] == 2
                && seen.sets[0]["status"]["terminatingReplicas"] == 0
        })
        .await?;
        self.all(&KINDS).await
    }

    /// All objects of these kinds, as lines.
    async fn all(&self, kinds: &[&str]) -> Result<Vec<String>> {
        let mut all = Vec::new();
        for kind in kinds {
            for mut object in self.list(kind).await? {
                object["kind"] = kind.split_once(' ').unwrap().1.into();
                all.push(object);
            }
        }
        Ok(normalised(&all))
    }

    async fn patch(&self, what: &str, change: &Value) -> Result<()> {
        let kind = "application/merge-patch+json";
        self.send("PATCH", &self.path(what), kind, change).await.map(|_| ())
    }

    async fn delete(&self, what: &str) -> Result<()> {
        self.send("DELETE", &self.path(what), "application/json", &Value::Null).await.map(|_| ())
    }

    /// Sets of Pods one after the other, what a schedule makes, and where a Service leads.
    async fn play_more(&self) -> Result<Vec<String>> {
        self.begin().await?;
        let work = json!({"spec": {"template": {"spec": {"restartPolicy": "Never",
            "containers": [{"name": "work", "image": "busybox"}]}}}});
        for (name, suspended) in [("tick", false), ("still", true)] {
            let schedule = json!({"metadata": {"name": name}, "spec": {"schedule": "* * * * *", "suspend": suspended,
                "concurrencyPolicy": "Forbid", "jobTemplate": work}});
            self.create(MORE[3], &schedule).await?;
        }
        self.expose().await?;
        self.set().await?;
        self.until_all("the schedule has made a Job", MORE[4], |jobs| {
            jobs.iter().any(|job| job["status"]["active"] == 1)
        })
        .await?;
        self.patch("apis/batch/v1 cronjobs/tick", &json!({"spec": {"suspend": true}})).await?;
        let pods = self.list(MORE[2]).await?;
        let pod = pods.iter().find(|pod| pod["metadata"]["labels"]["job-name"].is_string());
        let name = pod.unwrap()["metadata"]["name"].as_str().unwrap();
        let ended = json!({"status": {"phase": "Succeeded"}});
        self.patch(&format!("api/v1 pods/{name}/status"), &ended).await?;
        self.until_all("the schedule knows of the end", MORE[3], |all| {
            all.iter().any(|one| one["status"]["lastSuccessfulTime"].is_string())
                && all.iter().all(|one| one["status"]["active"].is_null())
        })
        .await?;
        self.all(&MORE).await
    }

    /// Pods on a node, one ready and one not, behind a Service.
    async fn expose(&self) -> Result<()> {
        let node = json!({"metadata": {"name": "node"}});
        self.send("POST", "/api/v1/nodes", "application/json", &node).await?;
        let labels = json!({"app": "web"});
        let service = json!({"metadata": {"name": "web", "labels": {"a": "b"}}, "spec": {"selector": labels, "ports": [
            {"name": "http", "port": 80, "targetPort": "web"}, {"name": "raw", "port": 81, "targetPort": 8081, "protocol": "UDP"}]}});
        self.create(MORE[5], &service).await?;
        for (name, ready) in [("ready", "True"), ("waiting", "False")] {
            let pod = json!({"metadata": {"name": name, "labels": labels}, "spec": {"nodeName": "node", "containers": [
                {"name": "web", "image": "nginx:1", "ports": [{"name": "web", "containerPort": 8080}]}]}});
            // A new namespace has no account at once.
            let mut made = self.create(MORE[2], &pod).await;
            for _ in 0..100 {
                if made.is_ok() {
                    break;
                }
                self.wait().await;
                made = self.create(MORE[2], &pod).await;
            }
            made?;
            let address = format!("10.1.0.{}", name.len());
            let status = json!({"phase": "Running", "podIP": address, "podIPs": [{"ip": address}], "conditions": [
                {"type": "Ready", "status": ready, "lastTransitionTime": "2026-11-22T00:00:00Z"}]});
            self.patch(&format!("api/v1 pods/{name}/status"), &json!({ "status": status })).await?;
        }
        self.until_all("the Service leads to both", MORE[7], |slices| {
            slices.iter().any(|one| {
                one["endpoints"].as_array().is_some_and(|list| {
                    list.len() == 2 && list.iter().any(|one| one["conditions"]["ready"] == true)
                })
            })
        })
        .await?;
        self.until_all("so do the old Endpoints", MORE[6], |all| {
            all.iter().any(|one| {
                one["subsets"][0]["addresses"].is_array()
                    && one["subsets"][0]["notReadyAddresses"].is_array()
            })
        })
        .await
    }

    /// A StatefulSet of two, with another image, and of one in the end.
    async fn set(&self) -> Result<()> {
        let labels = json!({"app": "db"});
        let set = json!({"metadata": {"name": "db"}, "spec": {"replicas": 2, "serviceName": "db", "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "db", "image": "postgres:15"}]}}}});
        self.create(MORE[0], &set).await?;
        self.ready(&["db-0", "db-1"], "postgres:15").await?;
        let other = json!({"spec": {"template": {"spec": {"containers": [{"name": "db", "image": "postgres:16"}]}}}});
        self.patch("apis/apps/v1 statefulsets/db", &other).await?;
        // The last first.
        self.ready(&["db-1", "db-0"], "postgres:16").await?;
        self.until_all("the set is another one", MORE[0], |sets| {
            let status = &sets[0]["status"];
            status["updatedReplicas"] == 2 && status["currentRevision"] == status["updateRevision"]
        })
        .await?;
        self.patch("apis/apps/v1 statefulsets/db", &json!({"spec": {"replicas": 1}})).await?;
        self.until_all("one is left", MORE[0], |sets| {
            sets[0]["status"]["replicas"] == 1
                && sets[0]["status"]["availableReplicas"] == 1
                && sets[0]["status"]["observedGeneration"] == 3
        })
        .await
    }

    /// Waits for each Pod of a set with an image, and says that it is ready.
    async fn ready(&self, names: &[&str], image: &str) -> Result<()> {
        for name in names {
            self.until_all(&format!("{name} with {image}"), MORE[2], |pods| {
                pods.iter().any(|pod| {
                    pod["metadata"]["name"] == *name
                        && pod["spec"]["containers"][0]["image"] == image
                        && pod["metadata"]["deletionTimestamp"].is_null()
                })
            })
            .await?;
            let now = json!({"status": {"phase": "Running", "conditions": [
                {"type": "Ready", "status": "True", "lastTransitionTime": "2026-11-22T00:00:00Z"}]}});
            self.patch(&format!("api/v1 pods/{name}/status"), &now).await?;
        }
        self.until_all("all of the set are ready", MORE[0], |sets| {
            sets[0]["status"]["readyReplicas"] == names.len()
        })
        .await
    }
}

/// Of claims and volumes.
impl World {
    /// Waits until so many volumes are in this phase.
    async fn until_volumes(&self, phase: &str, count: usize) -> Result<()> {
        self.until_all(&format!("{count} volumes are {phase}"), VOLUMES, |volumes| {
            volumes.iter().filter(|one| one["status"]["phase"] == phase).count() == count
        })
        .await
    }

    /// Claims of different sorts find the volumes that are meant for them, and leave them.
    async fn play_claims(&self) -> Result<Vec<String>> {
        self.begin().await?;
        let kept = json!({"namespace": self.namespace, "name": "kept-for"});
        for (name, size, modes, more) in [
            ("small", "1Gi", json!(["ReadWriteOnce"]), json!({})),
            ("smaller-but-for-more", "800Mi", json!(["ReadWriteOnce", "ReadOnlyMany"]), json!({})),
            ("large", "5Gi", json!(["ReadWriteOnce"]), json!({})),
            ("gold", "2Gi", json!(["ReadWriteOnce"]), json!({})),
            ("kept", "3Gi", json!(["ReadWriteOnce"]), json!({ "claimRef": kept })),
            ("other", "600Mi", json!(["ReadWriteOnce"]), json!({"storageClassName": "other"})),
        ] {
            let mut volume = json!({"metadata": {"name": name, "labels": {"tier": name}}, "spec": {
                "capacity": {"storage": size}, "accessModes": modes, "storageClassName": "static",
                "persistentVolumeReclaimPolicy": "Retain", "hostPath": {"path": "/none"}}});
            for (member, value) in more.as_object().into_iter().flatten() {
                volume["spec"][member] = value.clone();
            }
            self.create(VOLUMES, &volume).await?;
        }
        self.until_volumes("Available", 6).await?;
        for (name, size, mode, more) in [
            ("any", "500Mi", "ReadWriteOnce", json!({})),
            ("read", "500Mi", "ReadOnlyMany", json!({})),
            (
                "selects",
                "1Gi",
                "ReadWriteOnce",
                json!({"selector": {"matchLabels": {"tier": "gold"}}}),
            ),
            ("kept-for", "1Gi", "ReadWriteOnce", json!({})),
            ("named", "1Gi", "ReadWriteOnce", json!({"volumeName": "large"})),
            ("none", "1Gi", "ReadWriteOnce", json!({"storageClassName": ""})),
        ] {
            let mut claim = json!({"metadata": {"name": name}, "spec": {"accessModes": [mode],
                "storageClassName": "static", "resources": {"requests": {"storage": size}}}});
            for (member, value) in more.as_object().into_iter().flatten() {
                claim["spec"][member] = value.clone();
            }
            self.create(CLAIMED[0], &claim).await?;
        }
        self.until_all("five are bound", CLAIMED[0], |claims| {
            claims.iter().filter(|one| one["status"]["phase"] == "Bound").count() == 5
        })
        .await?;
        self.until_all("one has an Event that says why not", CLAIMED[1], |events| {
            !events.is_empty()
        })
        .await?;
        self.delete("api/v1 persistentvolumeclaims/any").await?;
        self.until_volumes("Released", 1).await?;
        // Free, it goes; in use, it waits.
        for name in ["small", "large"] {
            self.delete(&format!("{VOLUMES}/{name}")).await?;
        }
        self.until_volumes("Released", 0).await?;
        self.all(&CLAIMED).await
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
        if let Some(hash) = metadata["labels"]["controller.kubernetes.io/hash"].as_str() {
            // By what it is a revision of, so that two are kept apart.
            let number = &object["revision"];
            replaced.push((hash.to_owned(), format!("REVISION-{number}")));
        }
        if let Some(minute) = name.strip_prefix("tick-")
            && kind == "jobs"
        {
            replaced.push((format!("tick-{minute}"), "tick-MINUTE".to_owned()));
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
        if kind.starts_with("endpoint") {
            // How often it was written is chance, and so what was new the last time.
            metadata.remove("generation");
            metadata.remove("annotations");
        }
        if kind == "services" {
            // Addresses are known to differ.
            let spec = object["spec"].as_object_mut().unwrap();
            spec.retain(|name, _| !name.starts_with("clusterIP"));
        }
        let metadata = object["metadata"].as_object_mut().unwrap();
        if kind == "events" {
            metadata.clear();
            let about = object["involvedObject"].as_object_mut().unwrap();
            about.remove("resourceVersion");
            if matches!(about["kind"].as_str(), Some("StatefulSet" | "PersistentVolumeClaim")) {
                // A real one that looks at what is old tells now and then twice of what it did
                // once, and of a claim as long as it waits.
                object["count"] = Value::Null;
            }
        }
        if kind == "persistentvolumes"
            && let Some(reference) = object["spec"]["claimRef"].as_object_mut()
        {
            reference.remove("resourceVersion");
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

/// What one side has and not the other.
fn compare(real: &[String], simulated: &[String]) {
    let missing: Vec<&String> = real.iter().filter(|line| !simulated.contains(line)).collect();
    let surplus: Vec<&String> = simulated.iter().filter(|line| !real.contains(line)).collect();
    assert!(
        missing.is_empty() && surplus.is_empty(),
        "only on the real one: {missing:#?}\nonly on the simulated one: {surplus:#?}"
    );
    assert!(real.len() > 100, "there is something to compare");
}

/// Both sides, where the story says what Pods do.
async fn sides(namespace: &'static str) -> Result<[World; 2]> {
    let mut controllers = Controllers::all();
    controllers.workloads = controllers.workloads.without(Workload::Pods);
    let simulator = Simulator::with(1, jiff::Timestamp::now(), controllers);
    let real = Side::Real(Admin::of(shared()?).await?);
    Ok([real, Side::Simulated(simulator)].map(|side| World { side, namespace }))
}

#[tokio::test(flavor = "multi_thread")]
async fn deployments_and_jobs_end_as_the_real_controllers_end_them() -> Result<()> {
    let [real, simulated] = sides("story").await?;
    compare(&real.play().await?, &simulated.play().await?);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn sets_schedules_and_services_end_as_the_real_controllers_end_them() -> Result<()> {
    let [real, simulated] = sides("more").await?;
    compare(&real.play_more().await?, &simulated.play_more().await?);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn claims_get_the_volumes_that_the_real_binder_gives_them() -> Result<()> {
    let [real, simulated] = sides("claims").await?;
    compare(&real.play_claims().await?, &simulated.play_claims().await?);
    Ok(())
}
