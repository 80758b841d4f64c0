//! The scenarios of the guests on a real control plane: the same folders that `innkeeper test` plays on the
//! simulator.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use innkeeper_cluster_tests::stage::program;
use innkeeper_cluster_tests::{Admin, Kind, Stage};
use serde_json::json;
use tokio::process::Command;

/// How often it is looked for Pods that nobody runs.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// Says of all Pods that they run and are ready, for ever: the control plane has no nodes.
async fn run_all_pods(admin: Admin) {
    let mut addresses = 1;
    loop {
        for pod in admin.list(Kind::POD, "").await.unwrap_or_default() {
            let going = !pod["metadata"]["deletionTimestamp"].is_null();
            if going || pod["status"]["phase"] == "Running" {
                continue;
            }
            let text = |name: &str| pod["metadata"][name].as_str().unwrap_or_default();
            addresses += 1;
            let address = format!("10.1.{}.{}", addresses / 250, addresses % 250);
            let status = json!({"status": {
                "phase": "Running", "podIP": address, "podIPs": [{"ip": address}],
                "observedGeneration": pod["metadata"]["generation"],
                "conditions": [{"type": "Ready", "status": "True"}],
            }});
            // It may be gone by now.
            let _ = admin.merge_status(Kind::POD, text("namespace"), text("name"), &status).await;
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

/// Plays the cases of a guest with its module on a control plane.
async fn hold(guest: &str, group: &str, cases: &[&str]) -> Result<()> {
    let stage = Stage::new().await?;
    stage.module(guest, guest, &json!({"crdGroups": [group]})).await?;
    let _host = stage.host().await?;
    stage.ready(guest).await?;
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
    hold("podroute", "quay.io", &["adoption", "drift", "life", "two-of-them"]).await
}

#[tokio::test(flavor = "multi_thread")]
async fn the_scenarios_of_maintpage_hold_on_a_real_control_plane() -> Result<()> {
    hold("maintpage", "maintpage.example.com", &["toggle"]).await
}
