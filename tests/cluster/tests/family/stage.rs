//! The three modules on a real API server, and what their tests wait for.

use std::time::Duration;

use anyhow::Result;
use innkeeper_cluster_tests::stage::SOON;
use innkeeper_cluster_tests::{Admin, Host, Kind, Stage, eventually, kubelet};
use serde_json::{Value, json};

pub(crate) const IMO: Kind = Kind::new("imo.example.com/v1alpha1", "Imo");
pub(crate) const KURI: Kind = Kind::new("kuri.example.com/v1alpha1", "Kuri");
pub(crate) const KABOCHA: Kind = Kind::new("kabocha.example.com/v1alpha1", "Kabocha");

/// A stage with these of the three modules serving, and a namespace.
pub(crate) async fn stage(modules: &[(&str, Value)]) -> Result<(Stage, Host, String)> {
    let stage = Stage::new().await?;
    for (module, spec) in modules {
        let mut spec = spec.clone();
        spec["allowedCRDGroups"] = json!([format!("{module}.example.com")]);
        stage.module(module, module, &spec).await?;
    }
    let host = stage.host().await?;
    for (module, _) in modules {
        stage.ready(module).await?;
    }
    let namespace = stage.admin.namespace("family").await?;
    Ok((stage, host, namespace))
}

/// Waits until `status.phase` is this.
pub(crate) async fn until_phase(
    stage: &Stage,
    at: (Kind, &str, &str),
    phase: &str,
) -> Result<Value> {
    let what = format!("{} {} has the phase {phase}", at.0, at.2);
    stage.admin.until(&what, SOON, at, |one| one["status"]["phase"] == phase).await
}

/// Waits until nothing of a kind is left in a namespace.
pub(crate) async fn until_none(admin: &Admin, kind: Kind, namespace: &str) -> Result<()> {
    eventually(&format!("no {kind} is left"), 2 * SOON, async || {
        let left = admin.list(kind, namespace).await?;
        let names: Vec<_> = left.iter().map(|one| one["metadata"]["name"].to_string()).collect();
        Ok(if names.is_empty() { Ok(()) } else { Err(names.join(", ")) })
    })
    .await
}

/// The pod that the controller manager has made for a Job.
pub(crate) async fn pod_of(admin: &Admin, namespace: &str, job: &str) -> Result<String> {
    eventually(&format!("Job {job} has a pod"), SOON, async || {
        let pods = kubelet::pods(admin, namespace, ("job-name", job)).await?;
        let name = pods.first().and_then(|pod| pod["metadata"]["name"].as_str());
        Ok(name.map(str::to_owned).ok_or_else(|| "there is none".to_owned()))
    })
    .await
}

pub(crate) fn owner(object: &Value) -> String {
    let owner = &object["metadata"]["ownerReferences"][0];
    format!("{} {}", owner["kind"].as_str().unwrap(), owner["name"].as_str().unwrap())
}

/// How often the guest of a module has been run.
pub(crate) async fn runs(host: &Host, module: &str) -> Result<f64> {
    let label = format!("module=\"{module}\"");
    Ok(host
        .metric("innkeeper_guest_call_duration_seconds_count", &[&*label])
        .await?
        .unwrap_or_default())
}

/// Waits until a guest has been run three times more.
pub(crate) async fn until_run_again(host: &Host, module: &str) -> Result<()> {
    let before = runs(host, module).await?;
    eventually(&format!("{module} is run from time to time"), SOON, async || {
        let now = runs(host, module).await?;
        Ok(if now >= before + 3.0 { Ok(()) } else { Err(format!("{before}, then {now} runs")) })
    })
    .await
}

/// Waits until a guest is not run for a time, since nothing changes any more.
pub(crate) async fn until_at_rest(stage: &Stage, host: &Host, module: &str) -> Result<()> {
    eventually(&format!("{module} is not run without a reason"), SOON, async || {
        let before = runs(host, module).await?;
        stage.quiet(Duration::from_secs(3)).await?;
        let after = runs(host, module).await?;
        Ok(if after <= before { Ok(()) } else { Err(format!("{before}, then {after} runs")) })
    })
    .await
}
