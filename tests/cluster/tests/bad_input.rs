//! Bad input and a server that is not there: each message says what a person has to do,
//! and nothing is lost.

use std::time::Duration;

use anyhow::Result;
use innkeeper_cluster_tests::manifests::bench;
use innkeeper_cluster_tests::stage::{SOON, component_path};
use innkeeper_cluster_tests::{Host, HostOptions, Kind, Matching, Proxy, Stage, eventually};
use serde_json::{Value, json};

#[tokio::test(flavor = "multi_thread")]
async fn unreadable_kubeconfig_is_named_in_the_error() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let missing = folder.path().join("no-such-file");
    let garbage = folder.path().join("garbage");
    std::fs::write(&garbage, "{{{")?;
    for path in [missing, garbage] {
        let host = Host::start(&HostOptions::new(&path))?;
        let (status, log) = host.ended(SOON).await?;
        assert_eq!(status.code(), Some(1), "{log:?}");
        let log = log.join("\n");
        assert!(log.contains(&*path.to_string_lossy()), "the file is named: {log}");
        assert!(!log.contains("panicked"), "{log}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn host_waits_when_the_api_server_is_unreachable_at_start_and_later() -> Result<()> {
    let stage = Stage::new().await?;
    stage
        .module("bench", "bench-guest", &json!({"allowedCRDGroups": ["bench.innkeeper.dev"]}))
        .await?;
    let mut proxy = Proxy::start(stage.plane.kubeconfig()).await?;
    proxy.refuse().await;
    let mut host = Host::start(&stage.host_options(&proxy.kubeconfig()).await?)?;
    // It lives, says what is wrong, and is not ready.
    eventually("it lives", SOON, async || {
        Ok(match host.http("/healthz").await {
            Ok((200, _)) => Ok(()),
            Ok((code, body)) => Err(format!("{code} {body}")),
            Err(error) => Err(format!("{error:#}")),
        })
    })
    .await?;
    host.logged("trying again", SOON).await?;
    assert_ne!(host.http("/readyz").await?.0, 200);

    proxy.accept().await?;
    host.ready(SOON).await?;
    stage.ready("bench").await?;
    let namespace = stage.admin.namespace("away").await?;
    let bench = |name: &str| bench(&namespace, name, 1);
    stage.admin.apply(&bench("a")).await?;
    stage.admin.until("a is made", SOON, (Kind::DEPLOYMENT, &namespace, "a"), |_| true).await?;

    // The API server does not answer while an object is created, and answers again.
    proxy.refuse().await;
    stage.admin.apply(&bench("b")).await?;
    stage.admin.delete(Kind::SERVICE, &namespace, "a").await?;
    proxy.accept().await?;
    stage.admin.until("b is made", SOON, (Kind::DEPLOYMENT, &namespace, "b"), |_| true).await?;
    stage
        .admin
        .until("a's Service is back", SOON, (Kind::SERVICE, &namespace, "a"), |_| true)
        .await?;

    // A watch that dies in silence is noticed: no event comes, no end comes.
    assert!(proxy.stall_watches("benches") > 0, "the host watches benches");
    stage.admin.apply(&bench("c")).await?;
    stage.admin.until("c is made", 2 * SOON, (Kind::DEPLOYMENT, &namespace, "c"), |_| true).await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn stale_caches_never_overwrite_and_do_not_loop() -> Result<()> {
    let stage = Stage::new().await?;
    stage
        .module("bench", "bench-guest", &json!({"allowedCRDGroups": ["bench.innkeeper.dev"]}))
        .await?;
    let proxy = Proxy::start(stage.plane.kubeconfig()).await?;
    let mut host = Host::start(&stage.host_options(&proxy.kubeconfig()).await?)?;
    host.ready(SOON).await?;
    stage.ready("bench").await?;
    let namespace = stage.admin.namespace("stale").await?;
    // The host does not see Services any more; a stranger makes one of the name to come.
    proxy.hold("services");
    let theirs = json!({"apiVersion": "v1", "kind": "Service",
        "metadata": {"name": "a", "namespace": namespace}, "spec": {"ports": [{"port": 1}]}});
    stage.admin.apply(&theirs.to_string()).await?;
    let manifest = bench(&namespace, "a", 1);
    stage.admin.apply(&manifest).await?;
    stage.says((Kind::BENCH, &namespace, "a"), ("Synced", "False", "Conflict")).await?;
    let service = stage.admin.must_get(Kind::SERVICE, &namespace, "a").await?;
    assert_eq!(service["spec"]["ports"][0]["port"], 1);
    assert_eq!(service["metadata"]["ownerReferences"], json!(null));
    let writes = proxy.requests(&Matching::writes().namespace(&namespace)).len();
    assert!(writes <= 5, "{writes} writes: a Deployment, a refused create, a status and an Event");
    proxy.release("services");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn crd_without_a_status_subresource_is_reported_on_the_module() -> Result<()> {
    let stage = Stage::new().await?;
    let crd = |subresources: Value| {
        json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": Kind::CRD.kind,
            "metadata": {"name": "benches.bench.innkeeper.dev"},
            "spec": {"group": "bench.innkeeper.dev", "scope": "Namespaced",
                "names": {"kind": "Bench", "plural": "benches", "singular": "bench"},
                "versions": [{"name": "v1", "served": true, "storage": true,
                    "subresources": subresources,
                    "schema": {"openAPIV3Schema": {"type": "object",
                        "x-kubernetes-preserve-unknown-fields": true}}}]}})
        .to_string()
    };
    for crd in stage.admin.apply(&crd(json!({}))).await? {
        stage.admin.until_established(&crd).await?;
    }
    stage.module("bench", "bench-guest", &json!({})).await?;
    let _host = stage.host().await?;
    let namespace = stage.admin.namespace("statusless").await?;
    let manifest = bench(&namespace, "a", 1);
    stage.admin.apply(&manifest).await?;
    let message = stage.module_says("bench", "Healthy", "False", "NoStatusSubresource").await?;
    assert!(message.contains("benches.bench.innkeeper.dev"), "{message}");
    // What the guest wants is made all the same.
    stage.admin.until("a is made", SOON, (Kind::DEPLOYMENT, &namespace, "a"), |_| true).await?;

    // As soon as there is one, statuses are written.
    stage.admin.apply(&crd(json!({"status": {}}))).await?;
    stage.says((Kind::BENCH, &namespace, "a"), ("Synced", "True", "Applied")).await?;
    stage.module_says("bench", "Healthy", "True", "ReconcileSucceeded").await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn module_folder_is_used_when_it_is_empty_or_holds_a_malformed_manifest() -> Result<()> {
    let stage = Stage::new().await?;
    let folder = tempfile::tempdir()?;
    let options = HostOptions {
        modules: Some(folder.path().to_owned()),
        ..HostOptions::new(stage.plane.kubeconfig())
    };
    let mut host = Host::start(&options)?;
    host.logged("no Module in the folder", SOON).await?;
    host.ready(SOON).await?;

    std::fs::write(
        folder.path().join("broken.yaml"),
        "apiVersion: innkeeper.dev/v1alpha1\nkind: Module\nmetadata:\n  name: broken\nspec:\n  sauce: {}\n",
    )?;
    let message = host.logged("sauce", SOON).await?;
    assert!(message.contains("broken.yaml:6"), "file and line are named: {message}");

    // The others go on.
    let component = component_path("bench-guest")?;
    let module = json!({"apiVersion": "innkeeper.dev/v1alpha1", "kind": "Module",
        "metadata": {"name": "bench"},
        "spec": {"source": {"file": component}, "allowedCRDGroups": ["bench.innkeeper.dev"]}});
    std::fs::write(folder.path().join("bench.json"), module.to_string())?;
    host.logged("revision active", SOON).await?;
    let namespace = stage.admin.namespace("folder").await?;
    let manifest = bench(&namespace, "a", 1);
    stage.admin.apply(&manifest).await?;
    stage.admin.until("a is made", SOON, (Kind::DEPLOYMENT, &namespace, "a"), |_| true).await?;
    let (status, _) = host.stop(Duration::from_secs(10)).await?;
    assert!(status.success(), "{status}");
    Ok(())
}
