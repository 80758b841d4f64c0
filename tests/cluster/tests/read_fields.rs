//! The program of images runs a guest for fields that it reads, or with a flag for every field.

#![allow(clippy::unwrap_used, reason = "a test may fail by it")]

use anyhow::{Result, ensure};
use innkeeper_cluster_tests::manifests::bench;
use innkeeper_cluster_tests::stage::{SOON, operator_program};
use innkeeper_cluster_tests::{Host, HostOptions, Kind, Stage, eventually};
use serde_json::json;

/// Changes of a field that the guest does not read.
const CHANGES: u32 = 20;

/// Starts the program of images with more flags.
async fn start(stage: &Stage, flags: &[&str]) -> Result<Host> {
    let mut host = Host::start(&HostOptions {
        program: Some(operator_program()?),
        flags: flags.iter().map(ToString::to_string).collect(),
        ..stage.host_options(stage.kubeconfig()).await?
    })?;
    host.ready(SOON).await?;
    Ok(host)
}

/// The calls of the guest since the host has started.
async fn calls(host: &Host) -> Result<f64> {
    let calls = host.metric("innkeeper_guest_call_duration_seconds_count", &["module=\"bench\""]);
    Ok(calls.await?.unwrap_or_default())
}

/// Changes the status of the Deployment in a field that neither the guest nor the host reads.
async fn change_unread(stage: &Stage, namespace: &str, number: u32) -> Result<()> {
    let status = json!({"status": {"collisionCount": number}});
    stage.admin.merge_status(Kind::DEPLOYMENT, namespace, "one", &status).await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn guest_sleeps_through_unread_fields_unless_a_flag_says_otherwise() -> Result<()> {
    let stage = Stage::new().await?;
    let spec = json!({"allowedCRDGroups": ["bench.innkeeper.dev"]});
    stage.module("bench", "bench-guest", &spec).await?;
    let host = start(&stage, &["--threads", "2"]).await?;
    stage.ready("bench").await?;
    let namespace = stage.admin.namespace("fields").await?;
    stage.admin.apply(&bench(&namespace, "one", 1)).await?;
    stage.synced((Kind::BENCH, &namespace, "one")).await?;

    let before = calls(&host).await?;
    for number in 1..=CHANGES {
        change_unread(&stage, &namespace, number).await?;
    }
    // The host takes the changes of a kind in order: when it has repaired this one, it has seen the
    // others.
    let drift = json!({"spec": {"replicas": 5}});
    stage.admin.edit((Kind::DEPLOYMENT, &namespace, "one"), &drift).await?;
    stage
        .admin
        .until("the drift is repaired", SOON, (Kind::DEPLOYMENT, &namespace, "one"), |object| {
            object["spec"]["replicas"] == 1
        })
        .await?;
    let runs = calls(&host).await? - before;
    // Events of the creation may still arrive, and the first change makes the status.
    let most = f64::from(CHANGES) / 2.0;
    ensure!((1.0..most).contains(&runs), "{runs} runs for a repair and {CHANGES} unread changes");
    host.stop(SOON).await?;

    let host = start(&stage, &["--wake-for-every-field"]).await?;
    stage.ready("bench").await?;
    eventually("the host has run once", SOON, async || {
        Ok(if calls(&host).await? > 0.0 { Ok(()) } else { Err("no call".to_owned()) })
    })
    .await?;
    for number in 1..=3 {
        let before = calls(&host).await?;
        change_unread(&stage, &namespace, CHANGES + number).await?;
        eventually("the guest runs for the change", SOON, async || {
            let calls = calls(&host).await?;
            Ok(if calls > before { Ok(()) } else { Err(format!("{calls} calls")) })
        })
        .await?;
    }
    Ok(())
}
