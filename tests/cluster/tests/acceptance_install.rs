//! Innkeeper as its users have it: its image, made by `cargo xtask image`, run by deploy/ under the
//! Pod Security Standard "restricted". Needs root; `cargo xtask test` runs it.

#![allow(clippy::unwrap_used, reason = "a test may fail by it")]

use std::fs;

use anyhow::{Context as _, Result};
use innkeeper_cluster_tests::screens::Screens;
use innkeeper_cluster_tests::stage::{SOON, component_path};
use innkeeper_cluster_tests::{Kind, NodeStage, PodClient, name_of};
use serde_json::{Value, json};

const INSTALL: &str = include_str!("../../../docs/install.md");
const NAMESPACE: &str = "default";
const URL: &str = "http://podroute-service:8080/get";

/// The command of docs/install.md that begins so, with the lines on which it goes on.
fn documented(begin: &str) -> Result<String> {
    let at = INSTALL.find(&format!("```sh\n{begin}"));
    let at = at.with_context(|| format!("docs/install.md has no command {begin:?}"))?;
    let block = INSTALL[at..].trim_start_matches("```sh\n");
    Ok(block.split("\n```").next().unwrap_or_default().to_owned())
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs root: cargo xtask test runs it"]
async fn unprivileged_hosts_in_pods_take_over_when_either_or_both_are_deleted() -> Result<()> {
    let stage = NodeStage::new().await?;
    let pods = stage.until_hosts(2).await?;
    for pod in &pods {
        let container = &pod["spec"]["containers"][0]["securityContext"];
        assert_eq!(container["readOnlyRootFilesystem"], true);
        assert_eq!(container["capabilities"], json!({"drop": ["ALL"]}));
        assert_eq!(pod["status"]["containerStatuses"][0]["restartCount"], 0);
    }
    let mut screens = Screens::new(&stage, "install", "Innkeeper on a cluster");
    for (line, printed) in stage.installed() {
        assert!(INSTALL.contains(&format!("\n{line}\n")), "docs/install.md says nothing of {line}");
        screens.shown(line, printed);
    }
    screens.say("Of two hosts one works, by a Lease; the guests serve.");
    screens.show("kubectl get pods -n innkeeper-system").await?;
    screens.show("kubectl get modules").await?;
    screens.show("innkeeper modules list").await?;

    let sample = include_str!("../../../deploy/samples/podroute.yaml");
    stage.admin.apply_in(NAMESPACE, sample).await?;
    stage.until_pods_ready(NAMESPACE, ("podroute_cr", "test-podroute"), 3).await?;
    let client = stage.client(NAMESPACE).await?;
    client.until_page(URL, "OK").await?;
    swapped(&stage, &mut screens).await?;
    replaced(&stage, &client).await?;

    screens.say("What the users made stays when Innkeeper goes.");
    screens.show("innkeeper uninstall --yes").await?;
    screens.show("kubectl delete -k deploy/").await?;
    screens.show("kubectl get podroutes,deployments").await?;
    assert_eq!(client.page(URL).await?, "OK\n");
    screens.end()
}

/// Another version by each of the documented ways, without a pod that is created again.
async fn swapped(stage: &NodeStage, screens: &mut Screens<'_>) -> Result<()> {
    let file = stage.folder().join("podroute.wasm");
    let at = (Kind::DEPLOYMENT, NAMESPACE, "pod-route");
    let is_labelled = |one: &Value| one["metadata"]["labels"]["guest-version"] == "v2";
    screens.say("Another version of a guest, while it runs: its Deployments have a label more.");
    fs::copy(component_path("podroute-labelled")?, &file)?;
    screens.show(&documented("kubectl create configmap podroute")?).await?;
    stage.admin.until("the Deployment is labelled", 2 * SOON, at, is_labelled).await?;
    stage.ready("podroute").await?;
    screens.show("innkeeper modules list").await?;
    screens.say("And back, by `innkeeper push`.");
    fs::copy(component_path("podroute")?, &file)?;
    screens.show(&documented("innkeeper push podroute.wasm")?).await?;
    let is_not = |one: &Value| !is_labelled(one);
    stage.admin.until("the label is gone", 2 * SOON, at, is_not).await?;
    Ok(())
}

/// The leader's Pod goes without notice, and then both: changes meanwhile are not lost.
async fn replaced(stage: &NodeStage, client: &PodClient) -> Result<()> {
    let leader = stage.leader().await?;
    let kill = ["delete", "pod", "--namespace", "innkeeper-system", "--force", "--grace-period=0"];
    stage.kubectl_prints(&[&kill[..], &[&*leader]].concat()).await?;
    let scale = async |replicas: usize| {
        let patch = json!({"spec": {"replicas": replicas}});
        let at = (Kind::PODROUTE, NAMESPACE, "test-podroute");
        stage.admin.merge(at.0, at.1, at.2, "kubectl-edit", &patch).await?;
        stage.until_pods_ready(at.1, ("podroute_cr", at.2), replicas).await.map(drop)
    };
    scale(4).await?;
    stage.until_another_leads(&leader).await?;
    let pods = stage.until_hosts(2).await?;
    let both: Vec<_> = pods.iter().map(name_of).collect();
    let delete = ["delete", "pod", "--namespace", "innkeeper-system"];
    stage.kubectl_prints(&[&delete[..], &both[..]].concat()).await?;
    scale(2).await?;
    stage.until_hosts(2).await?;
    client.until_page(URL, "OK").await
}
