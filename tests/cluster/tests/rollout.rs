//! The life of a module on a real API server: a new version is previewed, held, approved, rejected,
//! taken back; what served last survives whatever becomes of its source.

#![allow(clippy::unwrap_used, reason = "a test may fail by it")]

use std::time::Duration;

use anyhow::Result;
use innkeeper_cluster_tests::stage::{MODULES, SOON, component_path, output_with, says};
use innkeeper_cluster_tests::{Host, Kind, Stage, eventually, manifests};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

/// Primaries that there are while versions come and go.
const PRIMARIES: usize = 20;

fn settings(namespace: &str, name: &str) -> String {
    manifests::settings(namespace, name, &["a", "b"], "hello")
}

/// A stage on which the module `settings` serves [`PRIMARIES`] primaries with two ConfigMaps each.
async fn stage(spec: &Value) -> Result<(Stage, Host, String)> {
    let stage = Stage::new().await?;
    let mut whole = json!({"allowedCRDGroups": ["example.innkeeper.dev"]});
    for (member, value) in spec.as_object().into_iter().flatten() {
        whole[member] = value.clone();
    }
    stage.module("settings", "settings", &whole).await?;
    let host = stage.host().await?;
    stage.ready("settings").await?;
    let namespace = stage.admin.namespace("life").await?;
    for index in 0..PRIMARIES {
        stage.admin.apply(&settings(&namespace, &format!("s{index:02}"))).await?;
    }
    stage.all_synced(Kind::SETTINGS, &namespace, PRIMARIES).await?;
    Ok((stage, host, namespace))
}

fn digest(component: &str) -> Result<String> {
    Ok(hex::encode(Sha256::digest(std::fs::read(component_path(component)?)?)))
}

/// How many ConfigMaps say this text.
async fn saying(stage: &Stage, namespace: &str, text: &str) -> Result<usize> {
    let all = stage.admin.list(Kind::CONFIG_MAP, namespace).await?;
    Ok(all.iter().filter(|one| one["data"]["text"] == text).count())
}

async fn until_saying(stage: &Stage, namespace: &str, text: &str, count: usize) -> Result<()> {
    eventually(&format!("{count} ConfigMaps say {text}"), SOON, async || {
        let now = saying(stage, namespace, text).await?;
        Ok(if now == count { Ok(()) } else { Err(format!("{now} do")) })
    })
    .await
}

async fn until_serving(stage: &Stage, component: &str) -> Result<Value> {
    let digest = digest(component)?;
    let at = (Kind::MODULE, "", "settings");
    stage
        .admin
        .until(&format!("{component} serves"), SOON, at, |one| {
            one["status"]["digest"] == digest.as_str()
                && says(one, "Ready", "True", "RevisionActive")
        })
        .await
}

async fn annotate(stage: &Stage, annotation: &str, value: &str) -> Result<()> {
    let patch = json!({"metadata": {"annotations": {annotation: value}}});
    stage.admin.merge(Kind::MODULE, "", "settings", "kubectl-annotate", &patch).await?;
    Ok(())
}

/// Runs `innkeeper modules` with these arguments.
async fn modules(stage: &Stage, arguments: &[&str]) -> Result<String> {
    output_with(stage.plane.kubeconfig(), &[&["modules"], arguments].concat()).await
}

/// The candidate would delete one ConfigMap of each primary: the status shows this, and nothing is
/// written.
async fn deletions_are_previewed_and_held(stage: &Stage, namespace: &str) -> Result<()> {
    stage.push("settings", "settings-fewer").await?;
    let message = stage.module_says("settings", "Held", "True", "WouldDelete").await?;
    assert!(message.contains(&format!("{PRIMARIES} objects")), "{message}");
    let module = stage.admin.must_get(Kind::MODULE, "", "settings").await?;
    let candidate = &module["status"]["candidate"];
    assert_eq!(candidate["deletes"], PRIMARIES, "{candidate:#}");
    assert_eq!(candidate["creates"], 0);
    assert_eq!(candidate["examples"][0]["action"], "Delete");
    assert_eq!(candidate["examples"].as_array().unwrap().len(), 10);
    assert_eq!(module["status"]["digest"], digest("settings")?.as_str(), "the old one serves");
    assert_eq!(saying(stage, namespace, "hello").await?, 2 * PRIMARIES);
    Ok(())
}

/// An approval that names another version is none; the active revision reconciles meanwhile.
async fn approval_of_another_version_allows_nothing(stage: &Stage, namespace: &str) -> Result<()> {
    annotate(stage, "innkeeper.dev/approve", &digest("settings")?).await?;
    stage.admin.apply(&settings(namespace, "new")).await?;
    until_saying(stage, namespace, "hello", 2 * PRIMARIES + 2).await?;
    stage.module_says("settings", "Held", "True", "WouldDelete").await?;
    Ok(())
}

/// Rejects the candidate by kubectl alone: the host does not try it again.
async fn rejected_candidate_is_not_tried_again(stage: &Stage) -> Result<()> {
    annotate(stage, "innkeeper.dev/reject", &digest("settings-fewer")?).await?;
    stage.module_says("settings", "Ready", "False", "Rejected").await?;
    stage.push("settings", "settings").await?;
    until_serving(stage, "settings").await?;
    stage.push("settings", "settings-fewer").await?;
    stage.module_says("settings", "Ready", "False", "Rejected").await?;
    Ok(())
}

/// Approves the rejected candidate by the command, which shows it.
async fn approved_candidate_becomes_active(stage: &Stage, namespace: &str) -> Result<()> {
    let listed = modules(stage, &["list"]).await?;
    assert!(listed.contains("settings") && listed.contains("Rejected"), "{listed}");
    modules(stage, &["approve", "settings", &digest("settings-fewer")?[..12]]).await?;
    until_serving(stage, "settings-fewer").await?;
    until_saying(stage, namespace, "hello", PRIMARIES + 1).await
}

async fn candidate_without_deletions_becomes_active_by_itself(
    stage: &Stage,
    namespace: &str,
) -> Result<()> {
    stage.push("settings", "settings-shouting").await?;
    stage.module_says("settings", "Held", "False", "NoApprovalNeeded").await?;
    until_serving(stage, "settings-shouting").await?;
    until_saying(stage, namespace, "HELLO", 2 * (PRIMARIES + 1)).await
}

/// Goes back by the command: the deletions of the way back are held as well. Once more, the module
/// does not go forward to the rejected revision, but back to the one before.
async fn rollback_by_command_is_held_as_well(stage: &Stage, namespace: &str) -> Result<()> {
    let message = modules(stage, &["describe", "settings"]).await?;
    assert!(message.contains("settings-copy-"), "{message}");
    modules(stage, &["rollback", "settings"]).await?;
    stage.module_says("settings", "Held", "True", "WouldDelete").await?;
    assert_eq!(saying(stage, namespace, "HELLO").await?, 2 * (PRIMARIES + 1));
    let error = modules(stage, &["rollback", "settings"]).await.unwrap_err().to_string();
    assert!(error.contains("innkeeper modules reject settings"), "{error}");
    modules(stage, &["approve", "settings"]).await?;
    until_serving(stage, "settings-fewer").await?;
    until_saying(stage, namespace, "hello", PRIMARIES + 1).await?;

    modules(stage, &["rollback", "settings"]).await?;
    until_serving(stage, "settings").await?;
    until_saying(stage, namespace, "hello", 2 * (PRIMARIES + 1)).await?;
    let error = modules(stage, &["rollback", "settings"]).await.unwrap_err().to_string();
    assert!(error.contains("needs an approval first"), "{error}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn candidate_that_would_delete_is_held_until_it_is_rejected_or_approved() -> Result<()> {
    // Given a module that serves.
    let (stage, _host, namespace) = stage(&json!({})).await?;

    // When a candidate would delete, then only an approval of it makes it active.
    deletions_are_previewed_and_held(&stage, &namespace).await?;
    approval_of_another_version_allows_nothing(&stage, &namespace).await?;
    rejected_candidate_is_not_tried_again(&stage).await?;
    approved_candidate_becomes_active(&stage, &namespace).await?;

    // And so on the way back.
    candidate_without_deletions_becomes_active_by_itself(&stage, &namespace).await?;
    rollback_by_command_is_held_as_well(&stage, &namespace).await
}

#[tokio::test(flavor = "multi_thread")]
async fn failing_candidate_is_held_and_one_that_fails_after_the_swap_is_rolled_back() -> Result<()>
{
    let (stage, _host, namespace) = stage(&json!({})).await?;
    // It fails for what is there now: held.
    stage.push("settings", "settings-afraid-of-b").await?;
    stage.module_says("settings", "Held", "True", "WouldFail").await?;
    let module = stage.admin.must_get(Kind::MODULE, "", "settings").await?;
    assert_eq!(module["status"]["candidate"]["failures"], PRIMARIES);

    // It does well with what is there now, and fails when a primary says "late".
    stage.push("settings", "settings-afraid-of-late").await?;
    until_serving(&stage, "settings-afraid-of-late").await?;
    let late = json!({"spec": {"text": "late"}});
    stage.admin.merge(Kind::SETTINGS, &namespace, "s00", "somebody", &late).await?;
    let message = stage.module_says("settings", "Ready", "False", "RolledBack").await?;
    assert!(message.contains("1 primary fails where"), "{message}");
    let module = stage.admin.must_get(Kind::MODULE, "", "settings").await?;
    assert_eq!(module["status"]["digest"], digest("settings")?.as_str());
    assert_eq!(module["status"]["rejected"][0]["reason"], "RolledBack");
    until_saying(&stage, &namespace, "late", 2).await?;
    eventually("an Event tells of it", SOON, async || {
        let events = stage.admin.list(Kind::EVENT, "default").await?;
        let found = events.iter().any(|event| event["reason"] == "RolledBack");
        Ok(if found { Ok(()) } else { Err(format!("{} Events, none of it", events.len())) })
    })
    .await?;
    // The same bytes again are not tried again.
    stage.push("settings", "settings").await?;
    until_serving(&stage, "settings").await?;
    stage.push("settings", "settings-afraid-of-late").await?;
    stage.module_says("settings", "Ready", "False", "RolledBack").await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn active_revision_survives_a_broken_source_a_deleted_source_and_a_restart() -> Result<()> {
    let (stage, host, namespace) = stage(&json!({})).await?;
    for (break_it, reason) in [("garbage", "SourceMalformed"), ("gone", "SourceNotFound")] {
        if break_it == "garbage" {
            stage.push_bytes("settings", b"no component at all").await?;
        } else {
            stage.admin.delete(Kind::CONFIG_MAP, MODULES, "settings").await?;
        }
        stage.module_says("settings", "Ready", "False", reason).await?;
    }
    host.stop(Duration::from_secs(10)).await?;

    // Made while no host runs: only a version that served can answer it.
    stage.admin.apply(&settings(&namespace, "later")).await?;
    let host = stage.host().await?;
    until_saying(&stage, &namespace, "hello", 2 * PRIMARIES + 2).await?;
    let module = stage.admin.must_get(Kind::MODULE, "", "settings").await?;
    assert!(says(&module, "Serving", "True", "RevisionActive"), "{module:#}");

    // What comes while no host runs is previewed against the active revision, and held.
    host.stop(Duration::from_secs(10)).await?;
    stage.push("settings", "settings-fewer").await?;
    let _host = stage.host().await?;
    stage.module_says("settings", "Held", "True", "WouldDelete").await?;
    assert_eq!(saying(&stage, &namespace, "hello").await?, 2 * PRIMARIES + 2);

    // Three copies at most, whatever has come and gone.
    annotate(&stage, "innkeeper.dev/approve", &digest("settings-fewer")?).await?;
    until_serving(&stage, "settings-fewer").await?;
    for component in ["settings-shouting", "settings", "settings-shouting"] {
        annotate(&stage, "innkeeper.dev/approve", &digest(component)?).await?;
        stage.push("settings", component).await?;
        until_serving(&stage, component).await?;
    }
    eventually("old copies are deleted", SOON, async || {
        let all = stage.admin.list(Kind::CONFIG_MAP, MODULES).await?;
        let copies = all
            .iter()
            .filter(|one| one["metadata"]["labels"]["innkeeper.dev/copy-of"] == "settings");
        let copies = copies.count();
        Ok(if copies == 3 { Ok(()) } else { Err(format!("{copies} copies")) })
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn manual_strategy_requires_approval_of_the_first_revision_and_immediate_of_none()
-> Result<()> {
    let stage = Stage::new().await?;
    let spec =
        json!({"allowedCRDGroups": ["example.innkeeper.dev"], "rollout": {"strategy": "Manual"}});
    stage.module("settings", "settings", &spec).await?;
    let _host = stage.host().await?;
    stage.module_says("settings", "Held", "True", "NeedsApproval").await?;
    annotate(&stage, "innkeeper.dev/approve", &digest("settings")?).await?;
    until_serving(&stage, "settings").await?;
    stage.push("settings", "settings-shouting").await?;
    stage.module_says("settings", "Held", "True", "NeedsApproval").await?;
    let immediate = json!({"spec": {"rollout": {"strategy": "Immediate"}}});
    stage.admin.merge(Kind::MODULE, "", "settings", "kubectl-edit", &immediate).await?;
    until_serving(&stage, "settings-shouting").await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn source_replaced_a_hundred_times_in_ten_seconds_is_compiled_one_at_a_time() -> Result<()> {
    let (stage, host, namespace) = stage(&json!({"rollout": {"maxDeletions": 1000}})).await?;
    host.stop(Duration::from_secs(10)).await?;
    let host = stage.compiling_host().await?;
    let components = ["settings", "settings-shouting", "settings-fewer"];
    let mut ticks = tokio::time::interval(Duration::from_millis(100));
    let mut most = 0;
    for index in 0..100 {
        ticks.tick().await;
        stage.push("settings", components[index % components.len()]).await?;
        most = most.max(host.children()?);
    }
    // The hundredth is `settings` again.
    until_serving(&stage, "settings").await?;
    until_saying(&stage, &namespace, "hello", 2 * PRIMARIES).await?;
    assert_eq!(most, 1, "compilers at once");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn modules_with_overlapping_primaries_are_refused_until_their_scopes_differ() -> Result<()> {
    let (stage, host, namespace) = stage(&json!({})).await?;
    stage.module("rival", "settings-shouting", &json!({})).await?;
    let message = stage.module_says("rival", "Ready", "False", "PrimaryOverlap").await?;
    assert!(message.contains("module settings reconciles"), "{message}");
    // Also by a host that starts again: the module that was active goes first.
    host.stop(Duration::from_secs(10)).await?;
    let _host = stage.host().await?;
    stage.ready("settings").await?;
    stage.module_says("rival", "Ready", "False", "PrimaryOverlap").await?;
    assert_eq!(saying(&stage, &namespace, "hello").await?, 2 * PRIMARIES);

    let there = stage.admin.namespace("there").await?;
    for (module, namespace) in [("settings", &namespace), ("rival", &there)] {
        let patch = json!({"spec": {"namespaces": [namespace]}});
        stage.admin.merge(Kind::MODULE, "", module, "kubectl-edit", &patch).await?;
        stage.ready(module).await?;
    }
    stage.admin.apply(&settings(&there, "s")).await?;
    until_saying(&stage, &there, "HELLO", 2).await?;
    assert_eq!(saying(&stage, &namespace, "hello").await?, 2 * PRIMARIES);

    // When the first goes, the other may have its primaries.
    let all = json!({"spec": {"namespaces": null}});
    stage.admin.merge(Kind::MODULE, "", "rival", "kubectl-edit", &all).await?;
    stage.module_says("rival", "Ready", "False", "PrimaryOverlap").await?;
    stage.admin.delete(Kind::MODULE, "", "settings").await?;
    stage.ready("rival").await?;
    stage.admin.apply(&settings(&namespace, "new")).await?;
    until_saying(&stage, &namespace, "HELLO", 2 * PRIMARIES + 2).await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deletion_that_waits_for_something_else_counts_as_one() -> Result<()> {
    let spec = json!({"rollout": {"maxDeletions": PRIMARIES}});
    let (stage, _host, namespace) = stage(&spec).await?;
    stage.admin.apply(&settings(&namespace, "odd")).await?;
    until_saying(&stage, &namespace, "hello", 2 * PRIMARIES + 2).await?;
    // As long as a name is somebody else's, nothing of this primary is pruned.
    let theirs = json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "odd-c", "namespace": namespace}, "data": {"text": "theirs"}});
    stage.admin.apply(&theirs.to_string()).await?;
    let names = json!({"spec": {"names": ["c", "a", "b"]}});
    stage.admin.merge(Kind::SETTINGS, &namespace, "odd", "somebody", &names).await?;
    stage.says((Kind::SETTINGS, &namespace, "odd"), ("Synced", "False", "Conflict")).await?;

    // One deletion for each of the others may pass; the one that waits is one more.
    stage.push("settings", "settings-fewer").await?;
    let message = stage.module_says("settings", "Held", "True", "WouldDelete").await?;
    assert!(message.contains(&format!("{} objects", PRIMARIES + 1)), "{message}");
    Ok(())
}
