//! Update groups on a real API server: Pods, whose fields are immutable, are recreated one after
//! the other, and a dry run of an apply that changes nothing gives the live object.

use anyhow::{Result, ensure};
use innkeeper_cluster_tests::stage::{SOON, output};
use innkeeper_cluster_tests::{Kind, Stage};
use innkeeper_tiny_guests::Tiny;
use serde_json::{Value, json};

const CREW: Kind = Kind::new("updates.example.com/v1", "Crew");
const NAMES: [&str; 3] = ["a", "b", "c"];
const APPLIED: &str = "innkeeper.dev/applied";

/// The definition of the primaries.
fn definition() -> Value {
    let any = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    json!({"apiVersion": Kind::CRD.api_version, "kind": Kind::CRD.kind,
        "metadata": {"name": "crews.updates.example.com"},
        "spec": {"group": "updates.example.com", "scope": "Namespaced",
            "names": {"kind": "Crew", "listKind": "CrewList", "plural": "crews", "singular": "crew"},
            "versions": [{"name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": any, "status": any}}}}]}})
}

/// A guest that desires three Pods with this command, which are recreated one after the other.
fn guest(version: &str, command: &str) -> Vec<u8> {
    let manifest = json!({"name": "crews", "version": version,
        "primary": {"apiVersion": CREW.api_version, "kind": CREW.kind, "plural": "crews"},
        "owned": [{"kind": {"apiVersion": "v1", "kind": "Pod", "plural": "pods"}}]});
    let pods = NAMES.map(|name| {
        json!({"updateGroup": "crew", "object": {"apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": name},
            "spec": {"containers": [{"name": "app", "image": "example.com/app:1",
                "command": [command], "resources": {"requests": {"cpu": "1000m"}}}]}}})
    });
    let groups = json!([{"name": "crew", "method": "RollingRecreate"}]);
    Tiny::default()
        .manifest(&manifest.to_string())
        .outcome(0, &json!({"objects": pods, "updateGroups": groups}).to_string())
        .component()
}

/// Starts a module with the first guest.
async fn module(stage: &Stage) -> Result<()> {
    let definition = definition();
    stage.admin.apply(&definition.to_string()).await?;
    stage.admin.until_established(&definition).await?;
    let first = guest("1.0.0", "one");
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("guest.wasm");
    std::fs::write(&file, &first)?;
    let rights = output(&["rbac", &file.to_string_lossy(), "--module", "crews"]).await?;
    stage.admin.apply(&rights).await?;
    let at_once = json!({"rollout": {"strategy": "Immediate", "rollbackWindow": "0s"}});
    stage.module_of_bytes("crews", &first, &at_once).await
}

/// Has a Pod run and be ready, as a node does.
async fn ready(stage: &Stage, namespace: &str, name: &str) -> Result<()> {
    let status = json!({"status": {"phase": "Running", "conditions": [
        {"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}]}});
    stage.admin.merge_status(Kind::POD, namespace, name, &status).await?;
    Ok(())
}

/// The uids of the Pods.
async fn uids(stage: &Stage, namespace: &str) -> Result<Vec<Value>> {
    let mut uids = Vec::new();
    for name in NAMES {
        let pod = stage.admin.must_get(Kind::POD, namespace, name).await?;
        uids.push(pod["metadata"]["uid"].clone());
    }
    Ok(uids)
}

#[tokio::test(flavor = "multi_thread")]
async fn pods_are_recreated_one_after_the_other_and_not_for_a_digest_alone() -> Result<()> {
    // Given a primary with three Pods that are ready.
    let stage = Stage::new().await?;
    module(&stage).await?;
    let host = stage.host().await?;
    stage.ready("crews").await?;
    let namespace = stage.admin.namespace("updates").await?;
    let crew = json!({"apiVersion": CREW.api_version, "kind": CREW.kind,
        "metadata": {"name": "one", "namespace": namespace}, "spec": {}});
    stage.admin.apply(&crew.to_string()).await?;
    let primary = (CREW, &*namespace, "one");
    stage.synced(primary).await?;
    for name in NAMES {
        ready(&stage, &namespace, name).await?;
    }
    let before = uids(&stage, &namespace).await?;

    // When another revision desires another command, then only the first Pod is recreated.
    stage.push_bytes("crews", &guest("2.0.0", "two")).await?;
    let at = (Kind::POD, &*namespace, "a");
    let is_new = |pod: &Value| pod["spec"]["containers"][0]["command"] == json!(["two"]);
    stage.admin.until("the first Pod is recreated", SOON, at, is_new).await?;
    let is_counted = |one: &Value| {
        let mut conditions = one["status"]["conditions"].as_array().into_iter().flatten();
        conditions.any(|synced| {
            let message = synced["message"].as_str().unwrap_or_default();
            synced["reason"] == "Updating" && message.contains("1 of 3 objects is updated")
        })
    };
    stage.admin.until("the primary counts it", SOON, primary, is_counted).await?;
    let during = uids(&stage, &namespace).await?;
    ensure!(during[0] != before[0] && during[1..] == before[1..], "{during:?}");

    // When each is ready, then the next one follows.
    for (name, next) in [("a", "b"), ("b", "c")] {
        ready(&stage, &namespace, name).await?;
        let at = (Kind::POD, &*namespace, next);
        stage.admin.until("the next Pod is recreated", SOON, at, is_new).await?;
    }
    ready(&stage, &namespace, "c").await?;
    stage.synced(primary).await?;

    // When somebody removes a digest while no host runs.
    let before = uids(&stage, &namespace).await?;
    host.stop(SOON).await?;
    let removed = json!({"metadata": {"annotations": {APPLIED: null}}});
    stage.admin.edit((Kind::POD, &namespace, "b"), &removed).await?;
    let _host = stage.host().await?;

    // Then the host writes the digest, and recreates nothing.
    let at = (Kind::POD, &*namespace, "b");
    let has_digest = |pod: &Value| pod["metadata"]["annotations"][APPLIED].is_string();
    stage.admin.until("the Pod has its digest again", SOON, at, has_digest).await?;
    stage.synced(primary).await?;
    let after = uids(&stage, &namespace).await?;
    ensure!(after == before, "{before:?} and {after:?}");
    Ok(())
}
