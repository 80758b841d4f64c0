//! A scenario of imo, kuri and kabocha with real containers: phases, a Job that runs, and clean-up.
//! Needs root; `cargo xtask test` runs it.

#![allow(clippy::unwrap_used, reason = "a test may fail by it")]

use anyhow::Result;
use innkeeper_cluster_tests::screens::Screens;
use innkeeper_cluster_tests::stage::SOON;
use innkeeper_cluster_tests::{Kind, NodeStage, condition, eventually};
use serde_json::{Value, json};

const KURI: Kind = Kind::new("kuri.example.com/v1alpha1", "Kuri");
const KABOCHA: Kind = Kind::new("kabocha.example.com/v1alpha1", "Kabocha");

const NAMESPACE: &str = "default";
const FINALIZER: &str = "finalizer.kabocha.example.com";

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs root: cargo xtask test runs it"]
async fn a_family_runs_its_jobs_and_servers_and_leaves_nothing() -> Result<()> {
    let stage = NodeStage::new().await?;
    let mut screens = Screens::new(&stage, "family", "A parent, its children, and their Jobs");
    screens.say("A Kuri is a Job; a Kabocha has Imos, Kuris and other objects below it.");
    screens.show("cat deploy/samples/kabocha.yaml").await?;
    screens
        .show("kubectl apply -f deploy/samples/kuri.yaml -f deploy/samples/kabocha.yaml")
        .await?;
    kuri_is_done_when_its_job_has_run(&stage).await?;
    kabocha_is_ready_when_all_that_its_children_run_is(&stage).await?;
    screens.show("kubectl get kabocha,imo,kuri").await?;
    screens.show("kubectl get deployments,jobs").await?;
    screens.show("kubectl logs job/example-kuri").await?;

    kuri_is_reconciled_by_its_period(&stage, &mut screens).await?;
    let parent = stage.admin.must_get(KABOCHA, NAMESPACE, "example-kabocha").await?;
    assert_eq!(parent["metadata"]["finalizers"], json!([FINALIZER]));

    screens.say("Deleted from the top, nothing is left.");
    screens.show("kubectl delete kuri example-kuri").await?;
    screens.show("kubectl delete kabocha example-kabocha").await?;
    for kind in [Kind::JOB, Kind::DEPLOYMENT, Kind::POD] {
        until_none(&stage, kind).await?;
    }
    screens.show("kubectl get deployments,jobs,pods").await?;
    screens.end()
}

async fn kuri_is_done_when_its_job_has_run(stage: &NodeStage) -> Result<()> {
    let at = (KURI, NAMESPACE, "example-kuri");
    let is_done = |one: &Value| one["status"]["phase"] == "done";
    stage.admin.until("the Job is done", 2 * SOON, at, is_done).await?;
    assert_eq!(
        stage.kubectl_prints(&["logs", "job/example-kuri", "--namespace", NAMESPACE]).await?,
        "kuri\n"
    );
    Ok(())
}

async fn kabocha_is_ready_when_all_that_its_children_run_is(stage: &NodeStage) -> Result<()> {
    let at = (KABOCHA, NAMESPACE, "example-kabocha");
    let is_ready = |one: &Value| condition(one, "Ready") == Some("True");
    stage.admin.until("the parent is ready", 2 * SOON, at, is_ready).await?;
    for (imo, size) in [
        ("example-kabocha-red", 2),
        ("example-kabocha-white", 1),
        ("example-kabocha-small-purple", 1),
    ] {
        let deployment = stage.admin.must_get(Kind::DEPLOYMENT, NAMESPACE, imo).await?;
        assert_eq!(deployment["status"]["readyReplicas"], size, "{imo}");
    }
    let harvest = ["logs", "job/example-kabocha-harvest", "--namespace", NAMESPACE];
    assert_eq!(stage.kubectl_prints(&harvest).await?, "done\n");
    Ok(())
}

/// Nothing changes, and the guest runs each second all the same.
async fn kuri_is_reconciled_by_its_period(
    stage: &NodeStage,
    screens: &mut Screens<'_>,
) -> Result<()> {
    let client = stage.client("kube-public").await?;
    let runs = async || {
        let label = "module=\"kuri\"";
        stage.metric(&client, "innkeeper_guest_call_duration_seconds_count", &[label]).await
    };
    screens.say("Looked at each second, also when nothing changes.");
    let annotate = "kubectl annotate kuri example-kuri innkeeper.dev/resync-period=1s";
    screens.show(annotate).await?;
    let before = runs().await?;
    eventually("the Kuri is looked at again and again", SOON, async || {
        let now = runs().await?;
        Ok(if now >= before + 3.0 { Ok(()) } else { Err(format!("{before}, then {now} runs")) })
    })
    .await
}

async fn until_none(stage: &NodeStage, kind: Kind) -> Result<()> {
    eventually(&format!("no {kind} is left"), 2 * SOON, async || {
        let left = stage.admin.list(kind, NAMESPACE).await?;
        let names: Vec<_> = left.iter().map(|one| one["metadata"]["name"].clone()).collect();
        Ok(if names.is_empty() { Ok(()) } else { Err(format!("{names:?}")) })
    })
    .await
}
