//! Components that are too large for one ConfigMap, on a real API server: split by `innkeeper push`
//! and by hand, and kept in parts by the host.

#![allow(clippy::unwrap_used, reason = "a test may fail by it")]

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Result;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::read::GzEncoder;
use innkeeper_cluster_tests::stage::{MODULES, SOON, component_path, message, output_with, says};
use innkeeper_cluster_tests::{Chance, Host, Kind, Stage, eventually, manifests};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use tempfile::TempDir;

/// What makes a component large: what gzip cannot make smaller, more than two parts hold.
const NOISE_BYTES: usize = 2_200_000;

/// The most that one of several parts may have, in bytes.
const PART_BYTES_MAX: usize = 900 << 10;

/// A component with a custom section of noise, which changes nothing of what it does.
fn large(component: &str) -> Result<Vec<u8>> {
    let mut bytes = std::fs::read(component_path(component)?)?;
    let mut chance = Chance::new(7);
    let mut section = vec![5];
    section.extend(b"noise");
    section.extend((0..NOISE_BYTES).map(|_| u8::try_from(chance.below(256)).unwrap_or_default()));
    bytes.push(0);
    let mut size = section.len();
    while size >= 0x80 {
        bytes.push(u8::try_from(size & 0x7f)? | 0x80);
        size >>= 7;
    }
    bytes.push(u8::try_from(size)?);
    bytes.extend(section);
    Ok(bytes)
}

fn gzip(bytes: &[u8]) -> Result<Vec<u8>> {
    let mut packed = Vec::new();
    GzEncoder::new(bytes, Compression::default()).read_to_end(&mut packed)?;
    Ok(packed)
}

fn digest(bytes: &[u8]) -> String {
    hex::encode(Sha256::digest(bytes))
}

async fn make(stage: &Stage, namespace: &str, name: &str) -> Result<()> {
    let manifest = manifests::settings(namespace, name, &["a"], "hello");
    stage.admin.apply(&manifest).await?;
    let at = (Kind::CONFIG_MAP, namespace, &*format!("{name}-a"));
    stage.admin.until(&format!("{name} is worked on"), SOON, at, |_| true).await?;
    Ok(())
}

async fn until_serving(stage: &Stage, digest: &str) -> Result<Value> {
    let at = (Kind::MODULE, "", "settings");
    stage
        .admin
        .until(&format!("{digest} serves"), SOON, at, |one| {
            one["status"]["digest"] == digest && says(one, "Ready", "True", "RevisionActive")
        })
        .await
}

/// Waits until the Module says that it is not ready, for this reason and with these words.
async fn until_reported(stage: &Stage, reason: &str, words: &str) -> Result<()> {
    let at = (Kind::MODULE, "", "settings");
    let is_reported =
        |one: &Value| says(one, "Ready", "False", reason) && message(one, "Ready").contains(words);
    stage.admin.until(&format!("the Module says {words:?}"), SOON, at, is_reported).await?;
    Ok(())
}

/// A ConfigMap as a person makes it with kubectl.
async fn put(stage: &Stage, name: &str, parts: Option<&str>, piece: &[u8]) -> Result<()> {
    let mut config_map = json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": MODULES},
        "binaryData": {"guest": STANDARD.encode(piece)}});
    if let Some(parts) = parts {
        config_map["metadata"]["annotations"] = json!({"innkeeper.dev/chunks": parts});
    }
    stage.admin.apply(&config_map.to_string()).await?;
    Ok(())
}

async fn point_at(stage: &Stage, name: &str) -> Result<()> {
    let source = json!({"spec": {"source": {"configMap": {"name": name, "key": null}}}});
    stage.admin.merge(Kind::MODULE, "", "settings", "kubectl-edit", &source).await?;
    Ok(())
}

/// The ConfigMaps whose names begin so, by name.
async fn named(stage: &Stage, prefix: &str) -> Result<Vec<Value>> {
    let mut all = stage.admin.list(Kind::CONFIG_MAP, MODULES).await?;
    all.retain(|one| one["metadata"]["name"].as_str().unwrap_or_default().starts_with(prefix));
    Ok(all)
}

fn names(config_maps: &[Value]) -> Vec<&str> {
    config_maps.iter().map(|one| one["metadata"]["name"].as_str().unwrap_or_default()).collect()
}

/// A stage on which the module `settings` serves.
async fn stage() -> Result<(Stage, Host, String)> {
    let stage = Stage::new().await?;
    let spec =
        json!({"allowedCRDGroups": ["example.innkeeper.dev"], "rollout": {"maxDeletions": 1000}});
    stage.module("settings", "settings", &spec).await?;
    let host = stage.host().await?;
    stage.ready("settings").await?;
    let namespace = stage.admin.namespace("split").await?;
    make(&stage, &namespace, "first").await?;
    Ok((stage, host, namespace))
}

#[tokio::test(flavor = "multi_thread")]
async fn large_component_is_pushed_and_kept_in_chunks() -> Result<()> {
    let (stage, host, namespace) = stage().await?;
    let large = Large::new("settings-shouting")?;
    push_reports_each_chunk(&stage, &large).await?;
    until_serving(&stage, &large.digest).await?;
    let at = (Kind::CONFIG_MAP, namespace.as_str(), "first-a");
    stage.admin.until("it has its way", SOON, at, |one| one["data"]["text"] == "HELLO").await?;
    source_and_snapshot_hold_the_component(&stage, &large).await?;
    // The same again changes nothing.
    push(&stage, &large.path()).await?;

    let host = incomplete_snapshot_is_completed(&stage, host, &large).await?;
    let host =
        snapshot_serves_without_a_chunk_of_the_source(&stage, host, &large, &namespace).await?;
    let _host = snapshot_serves_without_the_source(&stage, host, &large, &namespace).await?;
    rollback_uses_the_snapshot_as_a_source(&stage, &large).await?;
    old_snapshot_is_deleted_with_all_chunks(&stage, &large).await?;
    snapshots_are_deleted_with_the_module(&stage, &large).await
}

/// A component in a file that is too large for one ConfigMap.
struct Large {
    bytes: Vec<u8>,
    digest: String,
    folder: TempDir,
}

impl Large {
    fn new(component: &str) -> Result<Self> {
        let bytes = large(component)?;
        let large = Self { digest: digest(&bytes), bytes, folder: tempfile::tempdir()? };
        std::fs::write(large.path(), &large.bytes)?;
        Ok(large)
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("large.wasm")
    }

    /// The first ConfigMap that `innkeeper push` makes of it.
    fn source(&self) -> String {
        format!("settings-{}", &self.digest[..12])
    }

    /// The first ConfigMap of the host's snapshot of it.
    fn snapshot(&self) -> String {
        format!("settings-copy-{}", &self.digest[..12])
    }
}

/// The ConfigMaps of a component in three chunks, by the first one's name.
fn chunks(first: &str) -> Vec<String> {
    vec![first.to_owned(), format!("{first}-chunk-2"), format!("{first}-chunk-3")]
}

/// Pushes a component to the module and waits; gives what the command prints.
async fn push(stage: &Stage, path: &Path) -> Result<String> {
    let arguments = ["push", &path.to_string_lossy(), "--module", "settings", "--wait"];
    output_with(stage.plane.kubeconfig(), &arguments).await
}

async fn push_reports_each_chunk(stage: &Stage, large: &Large) -> Result<()> {
    let output = push(stage, &large.path()).await?;
    for chunk in chunks(&large.source()) {
        assert!(output.contains(&format!("ConfigMap {MODULES}/{chunk}\n")), "{output}");
    }
    assert!(output.ends_with("the revision is active\n"), "{output}");
    Ok(())
}

/// Both what was pushed and the host's snapshot: the chunks hold all, and never change.
async fn source_and_snapshot_hold_the_component(stage: &Stage, large: &Large) -> Result<()> {
    for first in [large.source(), large.snapshot()] {
        let found = named(stage, &first).await?;
        assert_eq!(names(&found), chunks(&first));
        assert_eq!(found[0]["metadata"]["annotations"]["innkeeper.dev/chunks"], "3");
        assert!(unpacked(&found)? == large.bytes, "{first} holds something else");
    }
    let module = stage.admin.must_get(Kind::MODULE, "", "settings").await?;
    for one in named(stage, &large.snapshot()).await? {
        let owner = &one["metadata"]["ownerReferences"][0];
        assert_eq!(owner["uid"], module["metadata"]["uid"], "{owner}");
    }
    Ok(())
}

/// The component that immutable chunks hold, none of them too large.
fn unpacked(chunks: &[Value]) -> Result<Vec<u8>> {
    let mut joined = Vec::new();
    for one in chunks {
        assert_eq!(one["immutable"], true);
        let piece = STANDARD.decode(one["binaryData"]["guest.wasm"].as_str().unwrap())?;
        assert!(piece.len() <= PART_BYTES_MAX, "{}", piece.len());
        joined.extend(piece);
    }
    let mut unpacked = Vec::new();
    flate2::read::GzDecoder::new(&*joined).read_to_end(&mut unpacked)?;
    Ok(unpacked)
}

/// Deletes ConfigMaps of modules while no host runs; gives the next host.
async fn delete_without_a_host(stage: &Stage, host: Host, names: &[String]) -> Result<Host> {
    host.stop(Duration::from_secs(10)).await?;
    for name in names {
        stage.admin.delete(Kind::CONFIG_MAP, MODULES, name).await?;
    }
    stage.host().await
}

async fn incomplete_snapshot_is_completed(
    stage: &Stage,
    host: Host,
    large: &Large,
) -> Result<Host> {
    let chunk = format!("{}-chunk-2", large.snapshot());
    let host = delete_without_a_host(stage, host, std::slice::from_ref(&chunk)).await?;
    let at = (Kind::CONFIG_MAP, MODULES, chunk.as_str());
    stage.admin.until("the chunk is there again", SOON, at, |_| true).await?;
    Ok(host)
}

async fn snapshot_serves_without_a_chunk_of_the_source(
    stage: &Stage,
    host: Host,
    large: &Large,
    namespace: &str,
) -> Result<Host> {
    let chunk = format!("{}-chunk-2", large.source());
    let host = delete_without_a_host(stage, host, std::slice::from_ref(&chunk)).await?;
    until_reported(stage, "SourceNotFound", &format!("{chunk} does not exist")).await?;
    make(stage, namespace, "second").await?;
    let module = stage.admin.must_get(Kind::MODULE, "", "settings").await?;
    assert_eq!(module["status"]["digest"], large.digest.as_str());
    Ok(host)
}

async fn snapshot_serves_without_the_source(
    stage: &Stage,
    host: Host,
    large: &Large,
    namespace: &str,
) -> Result<Host> {
    let source = large.source();
    let host = delete_without_a_host(stage, host, &chunks(&source)).await?;
    until_reported(stage, "SourceNotFound", &format!("{MODULES}/{source} does not exist")).await?;
    make(stage, namespace, "third").await?;
    Ok(host)
}

async fn rollback_uses_the_snapshot_as_a_source(stage: &Stage, large: &Large) -> Result<()> {
    push(stage, &component_path("settings")?).await?;
    output_with(stage.plane.kubeconfig(), &["modules", "rollback", "settings"]).await?;
    until_serving(stage, &large.digest).await?;
    let module = stage.admin.must_get(Kind::MODULE, "", "settings").await?;
    assert_eq!(module["spec"]["source"]["configMap"]["name"], large.snapshot().as_str());
    Ok(())
}

/// The snapshots of the active revision and of the two before it stay; an older one is deleted.
async fn old_snapshot_is_deleted_with_all_chunks(stage: &Stage, large: &Large) -> Result<()> {
    let snapshot = large.snapshot();
    push(stage, &component_path("settings-fewer")?).await?;
    assert_eq!(names(&named(stage, &snapshot).await?), chunks(&snapshot));
    push(stage, &component_path("settings-afraid-of-late")?).await?;
    assert_eq!(names(&named(stage, &snapshot).await?), chunks(&snapshot));
    push(stage, &component_path("settings-shouting")?).await?;
    until_none_named(stage, &snapshot).await
}

async fn snapshots_are_deleted_with_the_module(stage: &Stage, large: &Large) -> Result<()> {
    let snapshot = large.snapshot();
    push(stage, &large.path()).await?;
    assert_eq!(names(&named(stage, &snapshot).await?), chunks(&snapshot));
    stage.admin.delete(Kind::MODULE, "", "settings").await?;
    until_none_named(stage, "settings-copy-").await
}

async fn until_none_named(stage: &Stage, prefix: &str) -> Result<()> {
    eventually(&format!("no ConfigMap {prefix}* is left"), SOON, async || {
        let left = named(stage, prefix).await?;
        Ok(if left.is_empty() { Ok(()) } else { Err(format!("{:?}", names(&left))) })
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn handmade_chunks_are_served_and_a_wrong_one_is_reported() -> Result<()> {
    let (stage, _host, namespace) = stage().await?;
    let bytes = large("settings-shouting")?;
    let packed = gzip(&bytes)?;
    let pieces: Vec<&[u8]> = packed.chunks(packed.len().div_ceil(3)).collect();

    // A part that is not there is reported; when it comes, the guest serves.
    put(&stage, "by-hand", Some("3"), pieces[0]).await?;
    put(&stage, "by-hand-chunk-3", None, pieces[2]).await?;
    point_at(&stage, "by-hand").await?;
    until_reported(
        &stage,
        "SourceNotFound",
        "by-hand says that it has 3 chunks, and ConfigMap innkeeper-modules/by-hand-chunk-2 does not \
         exist: create it with its bytes under the key guest of binaryData",
    )
    .await?;
    make(&stage, &namespace, "meanwhile").await?;
    put(&stage, "by-hand-chunk-2", None, pieces[1]).await?;
    until_serving(&stage, &digest(&bytes)).await?;
    make(&stage, &namespace, "after").await?;

    // So is a part that has something else, and each is read again when it changes.
    put(&stage, "by-hand-chunk-2", None, pieces[0]).await?;
    until_reported(
        &stage,
        "SourceMalformed",
        "ConfigMap innkeeper-modules/by-hand is not whole gzip",
    )
    .await?;
    put(&stage, "by-hand-chunk-2", None, pieces[1]).await?;
    until_serving(&stage, &digest(&bytes)).await?;
    let no_key = json!({"binaryData": {"guest": null}});
    let part = "by-hand-chunk-3";
    stage.admin.merge(Kind::CONFIG_MAP, MODULES, part, "kubectl-edit", &no_key).await?;
    until_reported(
        &stage,
        "SourceNotFound",
        "by-hand-chunk-3, chunk 3 of by-hand, has no key guest",
    )
    .await?;
    put(&stage, "by-hand-chunk-3", None, pieces[2]).await?;
    until_serving(&stage, &digest(&bytes)).await?;

    // And an annotation that is no number.
    put(&stage, "by-hand", Some("many"), pieces[0]).await?;
    until_reported(&stage, "SourceMalformed", "\"many\" in its annotation innkeeper.dev/chunks")
        .await?;
    put(&stage, "by-hand", Some("3"), pieces[0]).await?;
    until_serving(&stage, &digest(&bytes)).await?;
    Ok(())
}
