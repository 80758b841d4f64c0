//! Innkeeper as its users have it: its image, made by `cargo xtask image`, run by deploy/ under the
//! Pod Security Standard "restricted". Needs root; `cargo xtask test` runs it.

#![allow(clippy::unwrap_used, reason = "a test may fail by it")]

use anyhow::Result;
use innkeeper_cluster_tests::stage::{program, root};
use innkeeper_cluster_tests::{Kind, NodeStage};
use innkeeper_images::recipes;
use serde_json::json;

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs root: cargo xtask test runs it"]
async fn two_hosts_run_in_pods_without_any_privilege_and_a_module_makes_pods_that_answer()
-> Result<()> {
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

    // What the users made stays when Innkeeper goes.
    let delete = ["delete", "-k", &deploy, "--ignore-not-found", "--wait=false"];
    stage.kubectl_prints(&delete).await?;
    for pod in pods {
        let name = pod["metadata"]["name"].as_str().unwrap();
        let at = (Kind::POD, "innkeeper-system", name);
        stage.admin.until_gone(2 * innkeeper_cluster_tests::stage::SOON, at).await?;
    }
    assert_eq!(client.page("http://podroute-service:8080/get").await?, "OK\n");
    Ok(())
}
