//! The story of imo, kuri and kabocha with real containers: phases, a Job that runs, and clean-up.
//! Needs root; `cargo xtask test` runs it.

#![allow(clippy::unwrap_used, reason = "a test may fail by it")]

use anyhow::Result;
use innkeeper_cluster_tests::stage::SOON;
use innkeeper_cluster_tests::{Kind, NodeStage, condition, eventually};

const KURI: Kind = Kind::new("kuri.example.com/v1alpha1", "Kuri");
const KABOCHA: Kind = Kind::new("kabocha.example.com/v1alpha1", "Kabocha");
const SAMPLE: &str = include_str!("../../../deploy/samples/kabocha.yaml");
const KURI_SAMPLE: &str = include_str!("../../../deploy/samples/kuri.yaml");

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs root: cargo xtask test runs it"]
async fn a_family_runs_its_jobs_and_servers_and_leaves_nothing() -> Result<()> {
    let modules = [
        ("imo", "imo.example.com"),
        ("kuri", "kuri.example.com"),
        ("kabocha", "kabocha.example.com"),
    ];
    let (stage, _host, namespace) = NodeStage::serving(&modules).await?;
    let (admin, ns) = (&stage.admin, &*namespace);
    admin.apply_in(ns, KURI_SAMPLE).await?;
    admin.apply_in(ns, SAMPLE).await?;

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

    // Clean-up: the Jobs and their pods too.
    admin.delete(KURI, ns, "example-kuri").await?;
    admin.until_gone(SOON, (KURI, ns, "example-kuri")).await?;
    admin.delete(KABOCHA, ns, "example-kabocha").await?;
    admin.until_gone(2 * SOON, at).await?;
    for kind in [Kind::JOB, Kind::DEPLOYMENT, Kind::POD] {
        eventually(&format!("no {kind} is left"), 2 * SOON, async || {
            let left = admin.list(kind, ns).await?;
            let names: Vec<_> = left.iter().map(|one| one["metadata"]["name"].clone()).collect();
            Ok(if names.is_empty() { Ok(()) } else { Err(format!("{names:?}")) })
        })
        .await?;
    }
    Ok(())
}
