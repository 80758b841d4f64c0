//! Compiled code on disk, with a key from the host's Secret: a restarted host compiles nothing,
//! and code that was tampered with meanwhile is compiled again.

#![allow(clippy::unwrap_used, reason = "a test may fail by it")]

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use anyhow::Result;
use innkeeper_cluster_tests::stage::SOON;
use innkeeper_cluster_tests::{Host, HostOptions, Stage, eventually};
use serde_json::json;

/// Starts the host, waits until one component was loaded, and says how.
async fn load(stage: &Stage, folder: &Path) -> Result<(Host, String)> {
    let flags = vec!["--cache-dir".to_owned(), folder.to_str().unwrap().to_owned()];
    let mut host = Host::start(&HostOptions { flags, ..HostOptions::new(stage.kubeconfig()) })?;
    host.ready(SOON).await?;
    let how = eventually("a component is loaded", SOON, async || {
        let mut loads = Vec::new();
        for result in ["hit", "miss", "refused"] {
            let label = format!("result=\"{result}\"");
            if host.metric("innkeeper_code_cache_total", &[&label]).await? == Some(1.0) {
                loads.push(result);
            }
        }
        Ok(if loads.is_empty() { Err("none yet".to_owned()) } else { Ok(loads.join(", ")) })
    })
    .await?;
    stage.ready("bench").await?;
    Ok((host, how))
}

fn files(folder: &Path) -> Vec<PathBuf> {
    fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restarted_host_compiles_nothing_and_trusts_no_changed_code() -> Result<()> {
    let stage = Stage::new().await?;
    stage
        .module("bench", "bench-guest", &json!({"allowedCRDGroups": ["bench.innkeeper.dev"]}))
        .await?;
    let volume = tempfile::tempdir()?;
    let folder = volume.path().join("code");

    let (host, how) = load(&stage, &folder).await?;
    assert_eq!(how, "miss");
    host.stop(SOON).await?;
    // One entry, and no key next to it: that is the host's, from its Secret.
    let [entry] = <[PathBuf; 1]>::try_from(files(&folder)).unwrap();

    let (host, how) = load(&stage, &folder).await?;
    assert_eq!(how, "hit");
    host.kill().await?;

    let good = fs::read(&entry)?;
    let mut bytes = good.clone();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::remove_file(&entry)?;
    fs::write(&entry, bytes)?;
    fs::set_permissions(&entry, Permissions::from_mode(0o400))?;
    let (host, how) = load(&stage, &folder).await?;
    assert_eq!(how, "refused");
    host.logged("cached code is refused and compiled again", SOON).await?;
    // An earlier host reported the module ready: that says nothing about this host.
    eventually("the code is stored again", SOON, async || {
        let stored = host.metric("innkeeper_code_cache_total", &["result=\"stored\""]).await?;
        Ok(if stored == Some(1.0) { Ok(()) } else { Err(format!("{stored:?}")) })
    })
    .await?;
    host.stop(SOON).await?;
    assert!(fs::read(&entry)? == good, "the entry is not as it was");

    let (host, how) = load(&stage, &folder).await?;
    assert_eq!(how, "hit");
    host.stop(SOON).await?;
    Ok(())
}
