//! A DaemonSet on one node.

use anyhow::Result;
use serde_json::json;

use crate::lines::compare;
use crate::world::{World, sides};

const KINDS: [&str; 4] =
    ["apis/apps/v1 daemonsets", "apis/apps/v1 controllerrevisions", "api/v1 pods", "api/v1 events"];

impl World {
    /// A DaemonSet on a node of its own, which gets another image.
    async fn play_daemons(&self) -> Result<Vec<String>> {
        self.begin().await?;
        let node = json!({"metadata": {"name": "daemons", "labels": {"daemons": "here"}}});
        self.send("POST", "/api/v1/nodes", "application/json", &node).await?;
        // Without the account the controller cannot create Pods.
        self.until_all("the account is there", "api/v1 serviceaccounts", |all| !all.is_empty())
            .await?;
        let labels = json!({"app": "agent"});
        let set = json!({"metadata": {"name": "agent"}, "spec": {"selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {
                "nodeSelector": {"daemons": "here"}, "tolerations": [{"operator": "Exists"}],
                "containers": [{"name": "agent", "image": "agent:1"}]}}}});
        self.create(KINDS[0], &set).await?;
        self.daemon_is_ready("agent:1", 1).await?;
        let other = json!({"spec": {"template": {"spec": {"containers": [{"name": "agent", "image": "agent:2"}]}}}});
        self.patch("apis/apps/v1 daemonsets/agent", &other).await?;
        self.daemon_is_ready("agent:2", 2).await?;
        self.all(&KINDS).await
    }

    /// Waits for the only Pod with an image, says that it is ready, and waits for the status.
    async fn daemon_is_ready(&self, image: &str, generation: i64) -> Result<()> {
        self.until_all(&format!("a Pod with {image}"), KINDS[2], |pods| {
            pods.len() == 1
                && pods[0]["spec"]["containers"][0]["image"] == image
                && pods[0]["metadata"]["deletionTimestamp"].is_null()
        })
        .await?;
        let pods = self.list(KINDS[2]).await?;
        let name = pods[0]["metadata"]["name"].as_str().unwrap();
        let now = json!({"status": {"phase": "Running", "conditions": [
            {"type": "Ready", "status": "True", "lastTransitionTime": "2026-11-22T00:00:00Z"}]}});
        self.patch(&format!("api/v1 pods/{name}/status"), &now).await?;
        self.until_all("the set says so", KINDS[0], |sets| {
            let status = &sets[0]["status"];
            status["observedGeneration"] == generation
                && status["numberAvailable"] == 1
                && status["updatedNumberScheduled"] == 1
        })
        .await
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn daemon_set_ends_as_on_a_real_cluster() -> Result<()> {
    let [real, simulated] = sides("daemons").await?;
    compare(&real.play_daemons().await?, &simulated.play_daemons().await?);
    Ok(())
}
