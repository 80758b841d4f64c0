//! An older backup of etcd is restored without greater versions: the host follows what is there.

#![allow(clippy::unwrap_used, reason = "a test may fail by it")]

use std::path::Path;
use std::{fs, io};

use anyhow::Result;
use innkeeper_cluster_tests::manifests::settings;
use innkeeper_cluster_tests::stage::SOON;
use innkeeper_cluster_tests::{Kind, Stage};
use serde_json::json;

fn copy(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy(&entry.path(), &target)?;
        } else {
            fs::copy(entry.path(), target)?;
        }
    }
    Ok(())
}

/// Ends etcd, changes its files, and starts it and the API server again.
fn restart(stage: &mut Stage, change: impl FnOnce(&Path) -> io::Result<()>) -> Result<()> {
    tokio::task::block_in_place(|| {
        stage.plane.restart_after("etcd", change)?;
        Ok(stage.plane.restart("kube-apiserver")?)
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn host_follows_specs_after_a_backup_of_etcd_was_restored() -> Result<()> {
    let mut stage = Stage::new().await?;
    let spec = json!({"allowedCRDGroups": ["example.innkeeper.dev"]});
    stage.module("settings", "settings", &spec).await?;
    let _host = stage.host().await?;
    stage.ready("settings").await?;
    let ns = stage.admin.namespace("restored").await?;
    let text = |text: &str| settings(&ns, "first", &["a"], text);
    let at = (Kind::CONFIG_MAP, &*ns, "first-a");
    stage.admin.apply(&text("backup")).await?;
    stage
        .admin
        .until("it has the text of the backup", SOON, at, |map| map["data"]["text"] == "backup")
        .await?;

    restart(&mut stage, |folder| copy(&folder.join("etcd"), &folder.join("backup")))?;
    // The versions go on, and the host sees them.
    for number in 0..10 {
        let later = format!("later {number}");
        stage.admin.apply(&text(&later)).await?;
        stage
            .admin
            .until("it has a later text", SOON, at, |map| map["data"]["text"] == *later)
            .await?;
    }
    let before = stage.admin.must_get(at.0, at.1, at.2).await?;
    restart(&mut stage, |folder| {
        fs::remove_dir_all(folder.join("etcd"))?;
        fs::rename(folder.join("backup"), folder.join("etcd"))
    })?;
    stage
        .admin
        .until("the backup is there", SOON, at, |map| map["data"]["text"] == "backup")
        .await?;

    stage.admin.apply(&text("after")).await?;
    let after = stage
        .admin
        .until("it has the new text", SOON, at, |map| map["data"]["text"] == "after")
        .await?;
    let version = |object: &serde_json::Value| -> u64 {
        object["metadata"]["resourceVersion"].as_str().unwrap().parse().unwrap()
    };
    assert!(version(&after) < version(&before), "versions are given out again");
    // The host knows what it wrote: a change by others is set back.
    let mut other = after.clone();
    other["data"] = json!({"text": "of somebody else"});
    other["metadata"] = json!({"name": at.2, "namespace": at.1});
    stage.admin.apply(&other.to_string()).await?;
    stage
        .admin
        .until("it has its text again", SOON, at, |map| map["data"]["text"] == "after")
        .await?;
    Ok(())
}
