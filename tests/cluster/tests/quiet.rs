//! A converged host writes nothing.

use std::time::{Duration, Instant};

use anyhow::Result;
use innkeeper_cluster_tests::stage::SOON;
use innkeeper_cluster_tests::{AuditFilter, Host, Kind, Stage, eventually};
use serde_json::json;

/// Resources that are converged while nothing may be written.
const RESOURCES: usize = 200;
/// How long the audit log is watched: the one wait for time that tests have.
const WATCHED: Duration = Duration::from_mins(1);

const HOST: &str = "system:serviceaccount:innkeeper-system:innkeeper";

const BENCH: Kind = Kind::new("bench.innkeeper.dev/v1", "Bench");

/// Waits until the host has worked on all resources since it started, and nothing waits.
async fn worked_on(host: &Host, count: usize) -> Result<()> {
    eventually("all resources have been worked on", 3 * SOON, async || {
        let done = host.metric("controller_runtime_reconcile_total", &[]).await?.unwrap_or(0.0);
        let waiting = host.metric("workqueue_depth", &[]).await?.unwrap_or(0.0);
        let active = host.metric("controller_runtime_active_workers", &[]).await?.unwrap_or(0.0);
        #[expect(clippy::cast_precision_loss, reason = "a few hundred")]
        let enough = done >= count as f64 && waiting == 0.0 && active == 0.0;
        Ok(if enough {
            Ok(())
        } else {
            Err(format!("{done} done, {waiting} waiting, {active} active"))
        })
    })
    .await
}

/// Waits until the host has not written for five seconds.
async fn is_quiet(stage: &Stage) -> Result<()> {
    let audit = stage.plane.audit()?;
    let filter = AuditFilter::new().writes().user(HOST);
    let mut last = (Instant::now(), audit.events(&filter)?.len());
    eventually("the host is quiet", 3 * SOON, async || {
        let writes = audit.events(&filter)?.len();
        if writes != last.1 {
            last = (Instant::now(), writes);
        }
        let quiet = last.0.elapsed();
        Ok(if quiet > Duration::from_secs(5) { Ok(()) } else { Err(format!("{writes} writes")) })
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_converged_host_writes_nothing_also_after_a_restart() -> Result<()> {
    let stage = Stage::new().await?;
    stage.module("bench", "bench-guest", &json!({"crdGroups": ["bench.innkeeper.dev"]})).await?;
    stage
        .module("quantities", "settings", &json!({"crdGroups": ["example.innkeeper.dev"]}))
        .await?;
    let host = stage.host().await?;
    stage.ready("bench").await?;
    let namespace = stage.admin.namespace("quiet").await?;
    for index in 0..RESOURCES {
        let bench = json!({"apiVersion": BENCH.api_version, "kind": BENCH.kind,
            "metadata": {"name": format!("b{index:03}"), "namespace": namespace},
            "spec": {"image": "example.com/app:1", "replicas": 1}});
        stage.admin.apply(&bench.to_string()).await?;
    }
    eventually("all are synced", 3 * SOON, async || {
        let all = stage.admin.list(BENCH, &namespace).await?;
        let synced = all
            .iter()
            .filter(|one| innkeeper_cluster_tests::stage::says(one, "Synced", "True", "Applied"))
            .count();
        Ok(if synced == RESOURCES { Ok(()) } else { Err(format!("{synced} of {RESOURCES}")) })
    })
    .await?;
    // The controllers of Kubernetes have done their part: their Deployments have their pods.
    eventually("Kubernetes is done with the Deployments", 3 * SOON, async || {
        let all = stage.admin.list(Kind::DEPLOYMENT, &namespace).await?;
        let done = all
            .iter()
            .filter(|one| {
                one["status"]["observedGeneration"] == one["metadata"]["generation"]
                    && one["status"]["updatedReplicas"] == 1
            })
            .count();
        Ok(if done == RESOURCES { Ok(()) } else { Err(format!("{done} of {RESOURCES}")) })
    })
    .await?;
    // Also what the controllers of Kubernetes do about it has been reported.
    is_quiet(&stage).await?;
    host.stop(Duration::from_secs(10)).await?;

    let mark = stage.plane.audit()?.mark()?;
    let host = stage.host().await?;
    stage.ready("bench").await?;
    worked_on(&host, RESOURCES).await?;
    tokio::time::sleep(WATCHED).await;
    let writes: Vec<String> = stage
        .plane
        .audit()?
        .since(mark, &AuditFilter::new().writes().user(HOST))?
        .into_iter()
        .filter(|event| {
            !matches!(
                event.resource.as_str(),
                "leases" | "selfsubjectaccessreviews" | "selfsubjectreviews"
            )
        })
        .map(|event| format!("{} {} {}", event.verb, event.uri, event.code))
        .collect();
    assert!(writes.is_empty(), "a converged host wrote {writes:#?}");
    Ok(())
}
