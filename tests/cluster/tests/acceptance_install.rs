//! Innkeeper as its users have it: its image, made by `cargo xtask image`, run by deploy/ under the
//! Pod Security Standard "restricted". Needs root; `cargo xtask test` runs it.

#![allow(clippy::unwrap_used, reason = "a test may fail by it")]

use anyhow::Result;
use innkeeper_cluster_tests::stage::{SOON, program, root};
use innkeeper_cluster_tests::{Kind, NodeStage};
use innkeeper_images::recipes;
use serde_json::{Value, json};

const LEASE: Kind = Kind::new("coordination.k8s.io/v1", "Lease");

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs root: cargo xtask test runs it"]
async fn two_hosts_run_in_pods_without_any_privilege_and_either_or_both_may_go() -> Result<()> {
    let stage = NodeStage::new().await?;
    let image = recipes::innkeeper(stage.node().packages().sources(), &program()?)?;
    stage.node().push("innkeeper:latest", &image)?;
    let deploy = root().join("deploy").display().to_string();
    stage.kubectl_prints(&["apply", "--server-side", "--force-conflicts", "-k", &deploy]).await?;
    let label = ("app.kubernetes.io/name", "innkeeper");
    let pods = stage.until_pods_ready("innkeeper-system", label, 2).await?;
    for pod in &pods {
        let container = &pod["spec"]["containers"][0]["securityContext"];
        assert_eq!(container["readOnlyRootFilesystem"], true);
        assert_eq!(container["capabilities"], json!({"drop": ["ALL"]}));
        assert_eq!(pod["status"]["containerStatuses"][0]["restartCount"], 0);
    }

    stage.module("podroute", "podroute", &json!({"crdGroups": ["quay.io"]})).await?;
    stage.ready("podroute").await?;
    let namespace = stage.admin.namespace("stage").await?;
    let sample = include_str!("../../../deploy/samples/podroute.yaml");
    stage.admin.apply_in(&namespace, sample).await?;
    stage.until_pods_ready(&namespace, ("podroute_cr", "test-podroute"), 3).await?;
    let client = stage.client(&namespace).await?;
    client.until_page("http://podroute-service:8080/get", "OK").await?;

    // Whoever works goes without a word, and then both: what is changed meanwhile is not lost.
    let lease = (LEASE, "innkeeper-system", "innkeeper");
    let leader =
        stage.admin.must_get(lease.0, lease.1, lease.2).await?["spec"]["holderIdentity"].clone();
    let leader = leader.as_str().unwrap();
    let kill = ["delete", "pod", "--namespace", "innkeeper-system", "--force", "--grace-period=0"];
    stage.kubectl_prints(&[&kill[..], &[leader]].concat()).await?;
    let scale = async |replicas: usize| {
        let patch = json!({"spec": {"replicas": replicas}});
        let at = (Kind::PODROUTE, &*namespace, "test-podroute");
        stage.admin.merge(at.0, at.1, at.2, "kubectl-edit", &patch).await?;
        stage.until_pods_ready(at.1, ("podroute_cr", at.2), replicas).await.map(drop)
    };
    scale(4).await?;
    let is_another = |lease: &Value| {
        lease["spec"]["holderIdentity"].as_str().is_some_and(|holder| holder != leader)
    };
    stage.admin.until("another host leads", SOON, lease, is_another).await?;
    let pods = stage.until_pods_ready("innkeeper-system", label, 2).await?;
    let both: Vec<_> = pods.iter().filter_map(|pod| pod["metadata"]["name"].as_str()).collect();
    stage
        .kubectl_prints(
            &[&["delete", "pod", "--namespace", "innkeeper-system"], &both[..]].concat(),
        )
        .await?;
    scale(2).await?;
    let pods = stage.until_pods_ready("innkeeper-system", label, 2).await?;
    client.until_page("http://podroute-service:8080/get", "OK").await?;

    // What the users made stays when Innkeeper goes.
    let delete = ["delete", "-k", &deploy, "--ignore-not-found", "--wait=false"];
    stage.kubectl_prints(&delete).await?;
    for pod in pods {
        let name = pod["metadata"]["name"].as_str().unwrap();
        let at = (Kind::POD, "innkeeper-system", name);
        stage.admin.until_gone(2 * SOON, at).await?;
    }
    assert_eq!(client.page("http://podroute-service:8080/get").await?, "OK\n");
    Ok(())
}
