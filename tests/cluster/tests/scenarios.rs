//! The scenarios of the guests on a real control plane: the same folders that `innkeeper test` plays on the
//! simulator.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use innkeeper_cluster_tests::stage::program;
use innkeeper_cluster_tests::{Admin, Kind, Stage};
use serde_json::{Value, json};
use tokio::process::Command;

/// How often it is looked for Pods that nobody runs.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// So many claims can be bound.
const VOLUMES: usize = 16;

/// Says of all Pods that they run and are ready, and of those of Jobs that they have ended, for ever: the control
/// plane has no nodes.
async fn run_all_pods(admin: Admin) {
    let mut addresses = 1;
    loop {
        for pod in admin.list(Kind::POD, "").await.unwrap_or_default() {
            let going = !pod["metadata"]["deletionTimestamp"].is_null();
            if going || pod["status"]["phase"] != "Pending" {
                continue;
            }
            addresses += 1;
            let address = format!("10.1.{}.{}", addresses / 250, addresses % 250);
            let status = json!({ "status": status(&pod, &address) });
            let text = |name: &str| pod["metadata"][name].as_str().unwrap_or_default();
            // It may be gone by now.
            let _ = admin.merge_status(Kind::POD, text("namespace"), text("name"), &status).await;
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

/// What a kubelet would say of a Pod, whose containers do at once what they are for.
fn status(pod: &Value, address: &str) -> Value {
    let made = &pod["metadata"]["creationTimestamp"];
    let runs = json!({"running": {"startedAt": made}});
    let has_run = json!({"terminated": {"exitCode": 0, "startedAt": made, "finishedAt": made}});
    let is_of_job = pod["metadata"]["ownerReferences"][0]["kind"] == "Job";
    let (phase, state) = if is_of_job { ("Succeeded", &has_run) } else { ("Running", &runs) };
    let statuses = |member: &str, state: &Value| {
        let containers = pod["spec"][member].as_array().into_iter().flatten();
        let status = |container: &Value| {
            json!({"name": container["name"], "image": container["image"], "imageID": "",
                "ready": !is_of_job, "started": !is_of_job, "restartCount": 0, "state": state})
        };
        containers.map(status).collect::<Vec<_>>()
    };
    let ready = if is_of_job { "False" } else { "True" };
    json!({
        "phase": phase, "podIP": address, "podIPs": [{"ip": address}],
        "observedGeneration": pod["metadata"]["generation"],
        "conditions": [{"type": "Ready", "status": ready}],
        "containerStatuses": statuses("containers", state),
        "initContainerStatuses": statuses("initContainers", &has_run),
    })
}

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

/// Plays the cases of a guest on a control plane, with its module and those that it works with, whose definitions
/// are of these groups.
async fn hold(guest: &str, groups: &[(&str, &str)], cases: &[&str]) -> Result<()> {
    let stage = Stage::new().await?;
    for (module, group) in groups {
        stage.module(module, module, &json!({"crdGroups": [group]})).await?;
    }
    let _host = stage.host().await?;
    for (module, _) in groups {
        stage.ready(module).await?;
    }
    volumes(&stage.admin).await?;
    let pods = tokio::spawn(run_all_pods(stage.admin.clone()));
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
    hold("podroute", &groups, &["adoption", "drift", "life", "two-of-them"]).await
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
