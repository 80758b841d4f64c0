//! The API server, then etcd, restarts during changes: everything converges, and nothing
//! is there twice.

#![allow(clippy::unwrap_used, reason = "a test may fail by it")]

use std::time::Duration;

use anyhow::Result;
use innkeeper_cluster_tests::manifests::bench;
use innkeeper_cluster_tests::stage::SOON;
use innkeeper_cluster_tests::{Host, HostOptions, Kind, Stage, eventually};
use serde_json::json;

const CHANGES: usize = 200;

/// Makes a resource, as often as the API server is away.
async fn make(stage: &Stage, namespace: &str, number: usize) -> Result<()> {
    let manifest = bench(namespace, &format!("b{number:03}"), 1);
    eventually(&format!("resource {number} is made"), 2 * SOON, async || {
        Ok(match stage.admin.apply(&manifest).await {
            Ok(_) => Ok(()),
            Err(error) => Err(format!("{error:#}")),
        })
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn restarts_of_the_api_server_and_of_etcd_amid_changes_lose_nothing() -> Result<()> {
    let mut stage = Stage::new().await?;
    stage
        .module("bench", "bench-guest", &json!({"allowedCRDGroups": ["bench.innkeeper.dev"]}))
        .await?;
    // With its Lease, which it keeps or takes again.
    let options = HostOptions {
        pod: Some("first".to_owned()),
        ..stage.host_options(stage.kubeconfig()).await?
    };
    let mut host = Host::start(&options)?;
    host.ready(SOON).await?;
    stage.ready("bench").await?;
    let namespace = stage.admin.namespace("outage").await?;
    for number in 0..CHANGES {
        let program = match number {
            60 => Some("kube-apiserver"),
            130 => Some("etcd"),
            _ => None,
        };
        if let Some(program) = program {
            // The host is still busy with what was made before.
            tokio::task::block_in_place(|| stage.plane.restart(program))?;
        }
        make(&stage, &namespace, number).await?;
    }
    stage.all_synced(Kind::BENCH, &namespace, CHANGES).await?;
    host.leads(SOON).await?;
    let benches = stage.admin.list(Kind::BENCH, &namespace).await?;
    for kind in [Kind::DEPLOYMENT, Kind::SERVICE] {
        let objects = stage.admin.list(kind, &namespace).await?;
        assert_eq!(objects.len(), CHANGES, "{kind}: no duplicate, and none is missing");
        for object in objects {
            let owner = &object["metadata"]["ownerReferences"][0];
            let bench = benches.iter().find(|one| one["metadata"]["uid"] == owner["uid"]);
            assert!(bench.is_some_and(|one| one["metadata"]["name"] == object["metadata"]["name"]));
        }
    }
    // It is as quick as before: nothing waits for a long backoff.
    make(&stage, &namespace, CHANGES).await?;
    stage.all_synced(Kind::BENCH, &namespace, CHANGES + 1).await?;
    let (status, _) = host.stop(Duration::from_secs(10)).await?;
    assert!(status.success(), "{status}");
    Ok(())
}
