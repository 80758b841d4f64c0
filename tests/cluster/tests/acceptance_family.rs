//! The story of imo, kuri and kabocha with real containers: phases, a Job that runs, and clean-up.
//! Needs root; `cargo xtask test` runs it.

#![allow(clippy::unwrap_used, reason = "a test may fail by it")]

use anyhow::Result;
use innkeeper_cluster_tests::screens::Screens;
use innkeeper_cluster_tests::stage::SOON;
use innkeeper_cluster_tests::{Kind, NodeStage, condition, eventually};

const KURI: Kind = Kind::new("kuri.example.com/v1alpha1", "Kuri");
const KABOCHA: Kind = Kind::new("kabocha.example.com/v1alpha1", "Kabocha");

const FINALIZER: &str = "finalizer.kabocha.example.com";

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs root: cargo xtask test runs it"]
async fn a_family_runs_its_jobs_and_servers_and_leaves_nothing() -> Result<()> {
    let (stage, ns) = (NodeStage::new().await?, "default");
    let admin = &stage.admin;
    let mut screens = Screens::new(&stage, "family", "A parent, its children, and their Jobs");
    screens.say("A Kuri is a Job; a Kabocha has Imos, Kuris and other objects below it.");
    screens.show("cat deploy/samples/kabocha.yaml").await?;
    screens
        .show("kubectl apply -f deploy/samples/kuri.yaml -f deploy/samples/kabocha.yaml")
        .await?;

    // A Job that really runs.
    let at = (KURI, ns, "example-kuri");
    admin.until("the Job is done", 2 * SOON, at, |one| one["status"]["phase"] == "done").await?;
    assert_eq!(
        stage.kubectl_prints(&["logs", "job/example-kuri", "--namespace", ns]).await?,
        "kuri\n"
    );

    // A parent is ready when all that its children run does.
    let at = (KABOCHA, ns, "example-kabocha");
    let is_ready = |one: &serde_json::Value| condition(one, "Ready") == Some("True");
    admin.until("the parent is ready", 2 * SOON, at, is_ready).await?;
    for (imo, size) in [
        ("example-kabocha-red", 2),
        ("example-kabocha-white", 1),
        ("example-kabocha-small-purple", 1),
    ] {
        let deployment = admin.must_get(Kind::DEPLOYMENT, ns, imo).await?;
        assert_eq!(deployment["status"]["readyReplicas"], size, "{imo}");
    }
    let harvest = ["logs", "job/example-kabocha-harvest", "--namespace", ns];
    assert_eq!(stage.kubectl_prints(&harvest).await?, "done\n");

    screens.show("kubectl get kabocha,imo,kuri").await?;
    screens.show("kubectl get deployments,jobs").await?;
    screens.show("kubectl logs job/example-kuri").await?;

    // Looked at from time to time, since nothing tells the host of anything.
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
    .await?;
    let parent = admin.must_get(KABOCHA, ns, "example-kabocha").await?;
    assert_eq!(parent["metadata"]["finalizers"], serde_json::json!([FINALIZER]));

    // Clean-up: the Jobs and their pods too.
    screens.say("Deleted from the top, nothing is left.");
    screens.show("kubectl delete kuri example-kuri").await?;
    screens.show("kubectl delete kabocha example-kabocha").await?;
    for kind in [Kind::JOB, Kind::DEPLOYMENT, Kind::POD] {
        eventually(&format!("no {kind} is left"), 2 * SOON, async || {
            let left = admin.list(kind, ns).await?;
            let names: Vec<_> = left.iter().map(|one| one["metadata"]["name"].clone()).collect();
            Ok(if names.is_empty() { Ok(()) } else { Err(format!("{names:?}")) })
        })
        .await?;
    }
    screens.show("kubectl get deployments,jobs,pods").await?;
    screens.end()
}
