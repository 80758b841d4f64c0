//! The scenarios of the guests on a real control plane: the same folders that `innkeeper test`
//! plays on the simulator.

use anyhow::{Context as _, Result, ensure};
use innkeeper_cluster_tests::stage::program;
use innkeeper_cluster_tests::{Admin, Stage, kubelet};
use serde_json::json;
use tokio::process::Command;

/// So many claims can be bound.
const VOLUMES: usize = 16;

/// Volumes for the claims of the cases: nobody makes any when they are claimed.
async fn volumes(admin: &Admin) -> Result<()> {
    for number in 0..VOLUMES {
        let volume = json!({"apiVersion": "v1", "kind": "PersistentVolume",
            "metadata": {"name": format!("volume-{number}")},
            "spec": {"capacity": {"storage": "100Gi"}, "accessModes": ["ReadWriteOnce"],
                "persistentVolumeReclaimPolicy": "Retain", "hostPath": {"path": "/none"}}});
        admin.apply(&volume.to_string()).await?;
    }
    Ok(())
}

/// Plays the cases of a guest on a control plane, with its module and those that it works with,
/// whose definitions are of these groups; empty for a module without one.
async fn hold(guest: &str, groups: &[(&str, &str)], cases: &[&str]) -> Result<()> {
    let stage = Stage::new().await?;
    for (module, group) in groups {
        let groups = [*group].into_iter().filter(|group| !group.is_empty());
        let mut spec = json!({"allowedCRDGroups": groups.collect::<Vec<_>>()});
        if *module == "secret-propagation" {
            spec["valueSources"] = json!([{"kind": "Secret", "namespace": "omega",
                "name": "shareable", "toNamespaces": ["*"]}]);
        }
        stage.module(module, module, &spec).await?;
    }
    let _host = stage.host().await?;
    for (module, _) in groups {
        stage.ready(module).await?;
    }
    volumes(&stage.admin).await?;
    // For the DaemonSets. Nobody schedules other pods.
    let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "node"}});
    stage.admin.apply(&node.to_string()).await?;
    let pods = tokio::spawn(kubelet::run_all(stage.admin.clone()));
    let folder = format!("{}/../../guests/{guest}/tests/scenarios", env!("CARGO_MANIFEST_DIR"));
    let mut command = Command::new(program()?);
    command.args(["test", &folder, "--timeout", "60", "--kubeconfig"]);
    command.arg(stage.plane.kubeconfig());
    for case in cases {
        command.args(["--case", case]);
    }
    let output = command.output().await.context("innkeeper test cannot be run")?;
    pods.abort();
    let (out, error) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    ensure!(output.status.success(), "innkeeper test {folder}:\n{out}{error}");
    ensure!(out.ends_with(&format!("{} passed, 0 failed\n", cases.len())), "{out}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_scenarios_of_podroute_hold_on_a_real_control_plane() -> Result<()> {
    let groups = [("podroute", "quay.io")];
    hold("podroute", &groups, &["adoption", "drift", "fields-left-out", "life", "two-of-them"])
        .await
}

#[tokio::test(flavor = "multi_thread")]
async fn the_scenarios_of_maintpage_hold_on_a_real_control_plane() -> Result<()> {
    hold("maintpage", &[("maintpage", "maintpage.example.com")], &["toggle"]).await
}

#[tokio::test(flavor = "multi_thread")]
async fn the_scenarios_of_postgres_hold_on_a_real_control_plane() -> Result<()> {
    let groups = [("postgres", "exp.wheel.jp")];
    hold("postgres", &groups, &["password", "secret-later", "taken-up-again"]).await
}

#[tokio::test(flavor = "multi_thread")]
async fn the_scenarios_of_the_family_hold_on_a_real_control_plane() -> Result<()> {
    let groups = [
        ("imo", "imo.example.com"),
        ("kuri", "kuri.example.com"),
        ("kabocha", "kabocha.example.com"),
    ];
    hold("kabocha", &groups, &["family"]).await
}

#[tokio::test(flavor = "multi_thread")]
async fn the_scenarios_of_the_examples_of_metacontroller_hold_on_a_real_control_plane() -> Result<()>
{
    let groups = [
        ("blue-green", "ctl.enisoc.com"),
        ("cat-set", "ctl.enisoc.com"),
        ("clustered-parent", ""),
        ("config-map-list", "examples.metacontroller.io"),
        ("config-map-propagation", "examples.metacontroller.io"),
        ("crd-roles", ""),
        ("daemon-job", "ctl.example.com"),
        ("global-config-map", "examples.metacontroller.io"),
        ("indexed-job", "ctl.enisoc.com"),
        ("namespace-list", "examples.metacontroller.io"),
        ("pod-name-label", ""),
        ("secret-propagation", "examples.metacontroller.io"),
        ("service-per-pod", ""),
        ("update-strategy", "ctl.example.com"),
        ("vitess-cell", "vitess.io"),
        ("vitess-cluster", "vitess.io"),
        ("vitess-keyspace", "vitess.io"),
        ("vitess-shard", "vitess.io"),
    ];
    // The guests of Vitess have one case.
    let cases = groups.map(|(module, _)| module).into_iter();
    let mut cases: Vec<_> = cases.filter(|case| !case.starts_with("vitess-")).collect();
    cases.push("vitess");
    hold("examples/metacontroller", &groups, &cases).await
}
