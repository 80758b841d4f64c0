//! Components that are too large for one ConfigMap, on a real API server: split by `innkeeper push`
//! and by hand, and kept in parts by the host.

#![allow(clippy::unwrap_used, reason = "a test may fail by it")]

use std::io::Read as _;
use std::time::Duration;

use anyhow::Result;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::read::GzEncoder;
use innkeeper_cluster_tests::stage::{MODULES, SOON, component_path, message, output_with, says};
use innkeeper_cluster_tests::{Chance, Host, Kind, Stage, eventually};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

const SETTINGS: Kind = Kind::new("example.innkeeper.dev/v1", "Settings");

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
    let settings = json!({"apiVersion": SETTINGS.api_version, "kind": SETTINGS.kind,
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"names": ["a"], "text": "hello"}});
    stage.admin.apply(&settings.to_string()).await?;
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
    let bytes = large("settings-shouting")?;
    let (digest, folder) = (digest(&bytes), tempfile::tempdir()?);
    let file = folder.path().join("large.wasm");
    std::fs::write(&file, &bytes)?;

    let file = file.to_string_lossy();
    let kubeconfig = stage.plane.kubeconfig().to_owned();
    let output =
        output_with(&kubeconfig, &["push", &file, "--module", "settings", "--wait"]).await?;
    let pushed = format!("settings-{}", &digest[..12]);
    let parts = |first: &str| {
        vec![first.to_owned(), format!("{first}-chunk-2"), format!("{first}-chunk-3")]
    };
    for part in parts(&pushed) {
        assert!(output.contains(&format!("ConfigMap {MODULES}/{part}\n")), "{output}");
    }
    assert!(output.ends_with("the revision is active\n"), "{output}");
    until_serving(&stage, &digest).await?;
    let at = (Kind::CONFIG_MAP, namespace.as_str(), "first-a");
    stage.admin.until("it has its way", SOON, at, |one| one["data"]["text"] == "HELLO").await?;

    // Both what was pushed and what the host keeps: the parts hold all, and never change.
    let copy = format!("settings-copy-{}", &digest[..12]);
    let module = stage.admin.must_get(Kind::MODULE, "", "settings").await?;
    for first in [&pushed, &copy] {
        let found = named(&stage, first).await?;
        assert_eq!(names(&found), parts(first));
        assert_eq!(found[0]["metadata"]["annotations"]["innkeeper.dev/chunks"], "3");
        let mut joined = Vec::new();
        for one in &found {
            assert_eq!(one["immutable"], true);
            let piece = STANDARD.decode(one["binaryData"]["guest.wasm"].as_str().unwrap())?;
            assert!(piece.len() <= PART_BYTES_MAX, "{}", piece.len());
            joined.extend(piece);
            if *first == copy {
                let owner = &one["metadata"]["ownerReferences"][0];
                assert_eq!(owner["uid"], module["metadata"]["uid"], "{owner}");
            }
        }
        let mut unpacked = Vec::new();
        flate2::read::GzDecoder::new(&*joined).read_to_end(&mut unpacked)?;
        assert!(unpacked == bytes, "{first} holds something else");
    }
    // The same again changes nothing.
    output_with(&kubeconfig, &["push", &file, "--module", "settings", "--wait"]).await?;

    // A copy of which a part is gone is made whole again.
    host.stop(Duration::from_secs(10)).await?;
    let part = format!("{copy}-chunk-2");
    stage.admin.delete(Kind::CONFIG_MAP, MODULES, &part).await?;
    let host = stage.host().await?;
    let at = (Kind::CONFIG_MAP, MODULES, part.as_str());
    stage.admin.until("the part is there again", SOON, at, |_| true).await?;

    // One part of the source goes while no host runs: the copy serves.
    host.stop(Duration::from_secs(10)).await?;
    stage.admin.delete(Kind::CONFIG_MAP, MODULES, &format!("{pushed}-chunk-2")).await?;
    let host = stage.host().await?;
    until_reported(&stage, "SourceNotFound", &format!("{pushed}-chunk-2 does not exist")).await?;
    make(&stage, &namespace, "second").await?;
    let module = stage.admin.must_get(Kind::MODULE, "", "settings").await?;
    assert_eq!(module["status"]["digest"], digest.as_str());

    // All of it goes: the same.
    host.stop(Duration::from_secs(10)).await?;
    for part in parts(&pushed) {
        stage.admin.delete(Kind::CONFIG_MAP, MODULES, &part).await?;
    }
    let _host = stage.host().await?;
    until_reported(&stage, "SourceNotFound", &format!("{MODULES}/{pushed} does not exist")).await?;
    make(&stage, &namespace, "third").await?;

    // Another one serves, and back by the command: the copy is a source like any other.
    let push = async |component: &str| {
        let path = component_path(component)?;
        let arguments = ["push", &path.to_string_lossy(), "--module", "settings", "--wait"];
        output_with(&kubeconfig, &arguments).await
    };
    push("settings").await?;
    output_with(&kubeconfig, &["modules", "rollback", "settings"]).await?;
    until_serving(&stage, &digest).await?;
    let module = stage.admin.must_get(Kind::MODULE, "", "settings").await?;
    assert_eq!(module["spec"]["source"]["configMap"]["name"], copy.as_str());

    // As long as it served last or before that its copy stays, and then all parts of it go.
    push("settings-fewer").await?;
    assert_eq!(names(&named(&stage, &copy).await?), parts(&copy));
    push("settings-afraid-of-late").await?;
    eventually("the old copy is deleted", SOON, async || {
        let left = named(&stage, &copy).await?;
        Ok(if left.is_empty() { Ok(()) } else { Err(format!("{:?}", names(&left))) })
    })
    .await?;

    // With the Module its copies go, parts and all.
    output_with(&kubeconfig, &["push", &file, "--module", "settings", "--wait"]).await?;
    assert_eq!(names(&named(&stage, &copy).await?), parts(&copy));
    stage.admin.delete(Kind::MODULE, "", "settings").await?;
    eventually("the copies are deleted", SOON, async || {
        let left = named(&stage, "settings-copy-").await?;
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
