//! A Deployment and a Job, from their Pods to their end.

use anyhow::{Result, bail};
use serde_json::{Value, json};

use crate::lines::compare;
use crate::world::{World, sides};

const KINDS: [&str; 5] = [
    "apis/apps/v1 deployments",
    "apis/apps/v1 replicasets",
    "api/v1 pods",
    "apis/batch/v1 jobs",
    "api/v1 events",
];

/// What there is at a moment.
#[derive(Debug, Default)]
struct Seen {
    deployments: Vec<Value>,
    sets: Vec<Value>,
    pods: Vec<Value>,
    jobs: Vec<Value>,
}

impl World {
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
}

#[tokio::test(flavor = "multi_thread")]
async fn deployments_and_jobs_end_as_on_a_real_cluster() -> Result<()> {
    let [real, simulated] = sides("scenario").await?;
    compare(&real.play().await?, &simulated.play().await?);
    Ok(())
}
