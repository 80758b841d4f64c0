//! What the kubelet would say. A control plane of the tests has no nodes, so no pod ever runs: the
//! test says what becomes of one, in the pod's status. What follows from it (the statuses of
//! `ReplicaSets`, Deployments and Jobs) is the controller manager's own.

use anyhow::Result;
use serde_json::{Value, json};

use crate::stage::SOON;
use crate::{Admin, Kind, eventually};

/// The pods of a namespace that carry a label and are not going.
pub async fn pods(admin: &Admin, namespace: &str, label: (&str, &str)) -> Result<Vec<Value>> {
    let all = admin.list(Kind::POD, namespace).await?;
    let carries = |pod: &Value| {
        pod["metadata"]["labels"][label.0] == label.1
            && pod["metadata"]["deletionTimestamp"].is_null()
    };
    Ok(all.into_iter().filter(carries).collect())
}

/// Waits until there are `count` pods with a label, and says that all run and are ready.
pub async fn runs_all(
    admin: &Admin,
    namespace: &str,
    label: (&str, &str),
    count: usize,
) -> Result<()> {
    let what = format!("{count} pods {}={} are made", label.0, label.1);
    let pods = eventually(&what, SOON, async || {
        let pods = pods(admin, namespace, label).await?;
        Ok(if pods.len() == count { Ok(pods) } else { Err(format!("there are {}", pods.len())) })
    })
    .await?;
    for pod in pods {
        runs(admin, namespace, pod["metadata"]["name"].as_str().unwrap_or_default()).await?;
    }
    Ok(())
}

/// The pod runs, as its spec is now, and is ready.
pub async fn runs(admin: &Admin, namespace: &str, name: &str) -> Result<Value> {
    says(admin, namespace, name, "Running", true).await
}

/// Those pods of a namespace that carry a label now run and are ready, except for the ones that are
/// gone by the time that it is said: a rollout takes pods away at any moment.
pub async fn runs_those_there(admin: &Admin, namespace: &str, label: (&str, &str)) -> Result<()> {
    for pod in pods(admin, namespace, label).await? {
        let name = pod["metadata"]["name"].as_str().unwrap_or_default();
        if let Err(error) = runs(admin, namespace, name).await
            && admin.get(Kind::POD, namespace, name).await?.is_some()
        {
            return Err(error);
        }
    }
    Ok(())
}

/// The pod runs and is not ready.
pub async fn is_unready(admin: &Admin, namespace: &str, name: &str) -> Result<Value> {
    says(admin, namespace, name, "Running", false).await
}

/// The pod has ended, well (`Succeeded`) or not (`Failed`).
pub async fn ends(admin: &Admin, namespace: &str, name: &str, phase: &str) -> Result<Value> {
    says(admin, namespace, name, phase, false).await
}

async fn says(
    admin: &Admin,
    namespace: &str,
    name: &str,
    phase: &str,
    is_ready: bool,
) -> Result<Value> {
    let pod = admin.must_get(Kind::POD, namespace, name).await?;
    let mut status = json!({"phase": phase, "conditions": [
        {"type": "Ready", "status": if is_ready { "True" } else { "False" }}]});
    if let Some(generation) = pod["metadata"]["generation"].as_i64() {
        status["observedGeneration"] = generation.into();
    }
    admin.merge_status(Kind::POD, namespace, name, &json!({ "status": status })).await
}
