//! What the kubelet would say. A control plane of the tests has no nodes, so no pod ever runs: the
//! test says what becomes of one, in the pod's status. What follows from it (the statuses of
//! `ReplicaSets`, Deployments and Jobs) is the controller manager's own.

use std::time::Duration;

use anyhow::Result;
use serde_json::{Value, json};

use crate::stage::SOON;
use crate::{Admin, Kind, eventually};

/// How often [`run_all`] looks for pods.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// The pods of a namespace that carry a label and are not going.
///
/// # Errors
/// If the API server does not answer, or refuses the request.
pub async fn pods(admin: &Admin, namespace: &str, label: (&str, &str)) -> Result<Vec<Value>> {
    let all = admin.list(Kind::POD, namespace).await?;
    let carries = |pod: &Value| {
        pod["metadata"]["labels"][label.0] == label.1
            && pod["metadata"]["deletionTimestamp"].is_null()
    };
    Ok(all.into_iter().filter(carries).collect())
}

/// Waits until there are `count` pods with a label, and says that all run and are ready.
///
/// # Errors
/// If there is another number of pods after the time, or the API server refuses a status.
pub async fn runs_all(
    admin: &Admin,
    namespace: &str,
    label: (&str, &str),
    count: usize,
) -> Result<()> {
    let what = format!("{count} pods {}={} are made", label.0, label.1);
    eventually(&what, SOON, async || {
        let pods = pods(admin, namespace, label).await?;
        if pods.len() != count {
            return Ok(Err(format!("there are {}", pods.len())));
        }
        for pod in pods {
            let name = pod["metadata"]["name"].as_str().unwrap_or_default();
            if !runs_if_there(admin, namespace, name).await? {
                return Ok(Err(format!("{name} is gone, as in a rollout")));
            }
        }
        Ok(Ok(()))
    })
    .await
}

/// Reports that the pod runs; gives false if it is gone before that.
async fn runs_if_there(admin: &Admin, namespace: &str, name: &str) -> Result<bool> {
    match runs(admin, namespace, name).await {
        Ok(_) => Ok(true),
        Err(_) if admin.get(Kind::POD, namespace, name).await?.is_none() => Ok(false),
        Err(error) => Err(error),
    }
}

/// Reports that the pod runs, as its spec is now, and is ready.
///
/// # Errors
/// If there is no such pod in time, or the API server refuses the status.
pub async fn runs(admin: &Admin, namespace: &str, name: &str) -> Result<Value> {
    says(admin, namespace, name, "Running", true).await
}

/// Reports that the pods of a namespace that carry a label now run and are ready, except for those
/// that are gone before that: a rollout deletes pods at any moment.
///
/// # Errors
/// If the API server refuses the status of a pod that is still there.
pub async fn runs_those_there(admin: &Admin, namespace: &str, label: (&str, &str)) -> Result<()> {
    for pod in pods(admin, namespace, label).await? {
        let name = pod["metadata"]["name"].as_str().unwrap_or_default();
        runs_if_there(admin, namespace, name).await?;
    }
    Ok(())
}

/// Reports that the pod runs and is not ready.
///
/// # Errors
/// If there is no such pod in time, or the API server refuses the status.
pub async fn is_unready(admin: &Admin, namespace: &str, name: &str) -> Result<Value> {
    says(admin, namespace, name, "Running", false).await
}

/// Reports that the pod has ended, well (`Succeeded`) or not (`Failed`).
///
/// # Errors
/// If there is no such pod in time, or the API server refuses the status.
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
    let status = json!({ "status": status(&pod, phase, is_ready) });
    admin.merge_status(Kind::POD, namespace, name, &status).await
}

/// The pod as its spec is now.
fn status(pod: &Value, phase: &str, is_ready: bool) -> Value {
    let mut status = json!({"phase": phase, "conditions": [
        {"type": "Ready", "status": if is_ready { "True" } else { "False" }}]});
    if let Some(generation) = pod["metadata"]["generation"].as_i64() {
        status["observedGeneration"] = generation.into();
    }
    status
}

/// Says of all pods that wait, in whatever namespace, that they run and are ready, and of those of
/// Jobs and `IndexedJobs` that they have ended well, for ever.
pub async fn run_all(admin: Admin) {
    let mut addresses = 1;
    loop {
        for pod in admin.list(Kind::POD, "").await.unwrap_or_default() {
            let going = !pod["metadata"]["deletionTimestamp"].is_null();
            if going || pod["status"]["phase"] != "Pending" {
                continue;
            }
            addresses += 1;
            let address = format!("10.1.{}.{}", addresses / 250, addresses % 250);
            let status = json!({ "status": whole_status(&pod, &address) });
            let text = |name: &str| pod["metadata"][name].as_str().unwrap_or_default();
            // It may be gone by now.
            let _ = admin.merge_status(Kind::POD, text("namespace"), text("name"), &status).await;
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

/// A pod whose containers have done at once what they are for, each with its own status.
fn whole_status(pod: &Value, address: &str) -> Value {
    let made = &pod["metadata"]["creationTimestamp"];
    let runs = json!({"running": {"startedAt": made}});
    let has_run = json!({"terminated": {"exitCode": 0, "startedAt": made, "finishedAt": made}});
    let owner = pod["metadata"]["ownerReferences"][0]["kind"].as_str().unwrap_or_default();
    let is_of_job = ["Job", "IndexedJob"].contains(&owner);
    let (phase, state) = if is_of_job { ("Succeeded", &has_run) } else { ("Running", &runs) };
    let statuses = |member: &str, state: &Value| {
        let containers = pod["spec"][member].as_array().into_iter().flatten();
        let status = |container: &Value| {
            json!({"name": container["name"], "image": container["image"], "imageID": "",
                "ready": !is_of_job, "started": !is_of_job, "restartCount": 0, "state": state})
        };
        containers.map(status).collect::<Vec<_>>().into()
    };
    let mut status = status(pod, phase, !is_of_job);
    // Without it a pod never is available to a workload with `minReadySeconds`.
    status["conditions"][0]["lastTransitionTime"] = made.clone();
    status["podIP"] = address.into();
    status["podIPs"] = json!([{ "ip": address }]);
    status["containerStatuses"] = statuses("containers", state);
    status["initContainerStatuses"] = statuses("initContainers", &has_run);
    status
}

/// Keeps a pod from being removed, as a container that takes long to end does; or lets it go.
///
/// # Errors
/// If the API server refuses the change.
pub async fn hold(admin: &Admin, namespace: &str, pod: &str, held: bool) -> Result<()> {
    let finalizers: &[&str] = if held { &["example.com/slow"] } else { &[] };
    let pod = json!({"apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": pod, "namespace": namespace, "finalizers": finalizers}});
    admin.apply_as("slow", true, &pod.to_string()).await?;
    Ok(())
}
