//! The host is killed at random points, again and again; after its last start everything
//! converges, with no duplicate and no orphan.

use std::time::Duration;

use anyhow::Result;
use innkeeper_cluster_tests::manifests::bench;
use innkeeper_cluster_tests::stage::SOON;
use innkeeper_cluster_tests::{Chance, Host, Kind, Proxy, Stage, When};
use serde_json::json;

const KILLS: u32 = 50;
const RESOURCES: usize = 100;

#[tokio::test(flavor = "multi_thread")]
async fn host_killed_at_fifty_random_writes_loses_nothing() -> Result<()> {
    let mut chance = Chance::from_seed()?;
    let stage = Stage::new().await?;
    stage
        .module("bench", "bench-guest", &json!({"allowedCRDGroups": ["bench.innkeeper.dev"]}))
        .await?;
    {
        // The CRD is there before the first kill.
        let host = stage.host().await?;
        stage.ready("bench").await?;
        host.stop(Duration::from_secs(10)).await?;
    }
    let proxy = Proxy::start(stage.plane.kubeconfig()).await?;
    let options = stage.host_options(&proxy.kubeconfig()).await?;
    let namespace = stage.admin.namespace("crash").await?;
    let mut made = 0;
    for kill in 0..KILLS {
        // Two new resources for each life, so that every kill finds work.
        for _ in 0..2 {
            let manifest = bench(&namespace, &format!("b{made:03}"), 1);
            stage.admin.apply(&manifest).await?;
            made += 1;
        }
        let host = Host::start(&options)?;
        // At least four writes of the new resources are left: two objects and a status each,
        // less what an earlier life has done.
        let nth = 1 + chance.below(5);
        let when = if chance.below(2) == 0 { When::Before } else { When::After };
        proxy.at_write(proxy.writes() + nth, when, host.killer());
        let ended = host.ended(SOON).await;
        assert!(
            ended.is_ok(),
            "kill {kill} at write {nth}: the host found no work: {:?}",
            ended.err()
        );
    }
    assert_eq!(made, RESOURCES);

    let mut host = Host::start(&options)?;
    host.ready(SOON).await?;
    stage.all_synced(Kind::BENCH, &namespace, RESOURCES).await?;
    let benches = stage.admin.list(Kind::BENCH, &namespace).await?;
    for kind in [Kind::DEPLOYMENT, Kind::SERVICE] {
        let objects = stage.admin.list(kind, &namespace).await?;
        assert_eq!(objects.len(), RESOURCES, "{kind}: no duplicate, and none is missing");
        for object in objects {
            let owner = &object["metadata"]["ownerReferences"][0];
            let bench = benches.iter().find(|one| one["metadata"]["uid"] == owner["uid"]);
            assert!(
                bench.is_some_and(|one| one["metadata"]["name"] == object["metadata"]["name"]),
                "{kind} {} has an owner that is there",
                object["metadata"]["name"]
            );
        }
    }
    Ok(())
}
