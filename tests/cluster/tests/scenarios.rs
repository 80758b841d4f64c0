//! The scenarios of the guests on a real control plane: the same folders that `innkeeper test`
//! plays on the simulator.

use std::fs;

use anyhow::{Context as _, Result, ensure};
use innkeeper_cluster_tests::stage::program;
use innkeeper_cluster_tests::{Admin, Stage, kubelet};
use serde_json::{Value, json};
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

/// Reads the spec of a module that the cases on the simulator use, without the source and the
/// account, which the stage makes.
fn spec(scenarios: &str, module: &str) -> Result<Value> {
    let path = format!("{scenarios}/modules/{module}.yaml");
    let text = fs::read_to_string(&path).with_context(|| format!("cannot read {path}"))?;
    let mut object: Value =
        serde_yaml_ng::from_str(&text).with_context(|| format!("{path} is not YAML"))?;
    let spec = object["spec"].as_object_mut().with_context(|| format!("{path} has no spec"))?;
    spec.remove("source");
    spec.remove("serviceAccountName");
    Ok(object["spec"].take())
}

/// Plays the cases of a guest on a control plane, with its module and those that it works with.
async fn hold(guest: &str, modules: &[&str], cases: &[&str]) -> Result<()> {
    let stage = Stage::new().await?;
    let folder = format!("{}/../../guests/{guest}/tests/scenarios", env!("CARGO_MANIFEST_DIR"));
    for module in modules {
        stage.module(module, module, &spec(&folder, module)?).await?;
    }
    let _host = stage.host().await?;
    for module in modules {
        stage.ready(module).await?;
    }
    volumes(&stage.admin).await?;
    // For the DaemonSets. Nobody schedules other pods.
    let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "node"}});
    stage.admin.apply(&node.to_string()).await?;
    let pods = tokio::spawn(kubelet::run_all(stage.admin.clone()));
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
    let modules = ["podroute"];
    hold("podroute", &modules, &["adoption", "drift", "fields-left-out", "life", "two-of-them"])
        .await
}

#[tokio::test(flavor = "multi_thread")]
async fn the_scenarios_of_maintpage_hold_on_a_real_control_plane() -> Result<()> {
    hold("maintpage", &["maintpage"], &["toggle"]).await
}

#[tokio::test(flavor = "multi_thread")]
async fn the_scenarios_of_postgres_hold_on_a_real_control_plane() -> Result<()> {
    let modules = ["postgres"];
    hold("postgres", &modules, &["password", "secret-later", "taken-up-again"]).await
}

#[tokio::test(flavor = "multi_thread")]
async fn the_scenarios_of_the_family_hold_on_a_real_control_plane() -> Result<()> {
    hold("kabocha", &["imo", "kuri", "kabocha"], &["family"]).await
}

#[tokio::test(flavor = "multi_thread")]
async fn the_short_scenario_of_the_guest_in_go_holds_on_a_real_control_plane() -> Result<()> {
    // The other one waits for a run of minutes.
    hold("examples/cron-go", &["cron-go"], &["no-run-yet"]).await
}

#[tokio::test(flavor = "multi_thread")]
async fn the_scenarios_of_the_examples_of_metacontroller_hold_on_a_real_control_plane() -> Result<()>
{
    let modules = [
        "blue-green",
        "cat-set",
        "clustered-parent",
        "config-map-list",
        "config-map-propagation",
        "crd-roles",
        "daemon-job",
        "global-config-map",
        "indexed-job",
        "namespace-list",
        "pod-name-label",
        "secret-propagation",
        "service-per-pod",
        "shared-config-map",
        "update-strategy",
        "vitess-cell",
        "vitess-cluster",
        "vitess-keyspace",
        "vitess-shard",
    ];
    // The guests of Vitess have one case.
    let mut cases: Vec<_> =
        modules.into_iter().filter(|case| !case.starts_with("vitess-")).collect();
    cases.push("vitess");
    hold("examples/metacontroller", &modules, &cases).await
}
