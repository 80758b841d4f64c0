//! Sets of Pods, a schedule, and where a Service leads.

use anyhow::Result;
use serde_json::json;

use crate::lines::compare;
use crate::world::{World, sides};

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

impl World {
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

#[tokio::test(flavor = "multi_thread")]
async fn sets_schedules_and_services_end_as_on_a_real_cluster() -> Result<()> {
    let [real, simulated] = sides("more").await?;
    compare(&real.play_more().await?, &simulated.play_more().await?);
    Ok(())
}
