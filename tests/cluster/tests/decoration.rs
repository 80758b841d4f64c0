//! Decoration on a real API server: modules merge fields into Namespaces that are not theirs.

#![allow(clippy::unwrap_used, reason = "a test may fail by it")]

use anyhow::Result;
use innkeeper_cluster_tests::stage::{MODULES, SOON};
use innkeeper_cluster_tests::{Kind, Stage, eventually};
use serde_json::{Value, json};

async fn labels_of(stage: &Stage, namespace: &str) -> Result<Value> {
    let namespace = stage.admin.must_get(Kind::NAMESPACE, "", namespace).await?;
    Ok(namespace["metadata"]["labels"].clone())
}

async fn until_labelled(stage: &Stage, namespace: &str, wanted: &Value) -> Result<()> {
    eventually(&format!("{namespace} has {wanted}"), SOON, async || {
        let labels = labels_of(stage, namespace).await?;
        let fits = wanted.as_object().into_iter().flatten().all(|(name, value)| {
            if value.is_null() { labels.get(name).is_none() } else { labels[name] == *value }
        });
        Ok(if fits { Ok(()) } else { Err(format!("it has {labels}")) })
    })
    .await
}

fn parameters(labels: &Value) -> Value {
    json!({"parameters": {"labels": labels}})
}

async fn set_labels(stage: &Stage, module: &str, labels: &Value) -> Result<()> {
    let patch = json!({"spec": {"parameters": {"labels": labels}}});
    stage.admin.merge(Kind::MODULE, "", module, "kubectl-edit", &patch).await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn decorations_of_two_modules_are_unmerged_when_they_are_no_longer_desired() -> Result<()> {
    let stage = Stage::new().await?;
    stage.module("team", "labels", &parameters(&json!({"team": "a", "tier": "web"}))).await?;
    stage.module("cost", "labels", &parameters(&json!({"cost": "low"}))).await?;
    let host = stage.host().await?;
    stage.ready("team").await?;
    stage.ready("cost").await?;

    // Both decorate a namespace of somebody, whose own labels stay.
    let namespace = stage.admin.namespace("shared").await?;
    let own = json!({"apiVersion": "v1", "kind": "Namespace",
        "metadata": {"name": namespace, "labels": {"mine": "yes"}}});
    stage.admin.apply_as("owner", false, &own.to_string()).await?;
    let all = json!({"team": "a", "tier": "web", "cost": "low", "mine": "yes"});
    until_labelled(&stage, &namespace, &all).await?;
    let seen = stage.admin.must_get(Kind::NAMESPACE, "", &namespace).await?;
    assert_eq!(seen["metadata"].get("ownerReferences"), None, "merged into, not owned");

    // One no longer wants a label, and changes another.
    set_labels(&stage, "team", &json!({"team": "b", "tier": null})).await?;
    until_labelled(
        &stage,
        &namespace,
        &json!({"team": "b", "tier": null, "cost": "low", "mine": "yes"}),
    )
    .await?;

    // A namespace that is to be plain is left as its owner wants it.
    let plain = json!({"metadata": {"annotations": {"example.innkeeper.dev/plain": "true"}}});
    stage.admin.merge(Kind::NAMESPACE, "", &namespace, "kubectl-annotate", &plain).await?;
    until_labelled(&stage, &namespace, &json!({"team": null, "cost": null, "mine": "yes"})).await?;
    eventually("nothing of the modules is left on it", SOON, async || {
        let seen = stage.admin.must_get(Kind::NAMESPACE, "", &namespace).await?;
        let text = seen["metadata"].to_string();
        Ok(if text.contains("innkeeper.dev/applied") || text.contains("/merge\"") {
            Err(text)
        } else {
            Ok(())
        })
    })
    .await?;
    let not_plain = json!({"metadata": {"annotations": {"example.innkeeper.dev/plain": null}}});
    stage.admin.merge(Kind::NAMESPACE, "", &namespace, "kubectl-annotate", &not_plain).await?;
    until_labelled(&stage, &namespace, &json!({"team": "b", "cost": "low", "mine": "yes"})).await?;

    // Quiet is quiet: nothing is written as long as nothing changes, also after a restart.
    host.kill().await?;
    let host = stage.host().await?;
    stage.quiet(std::time::Duration::from_secs(3)).await?;
    let writes = host.metric("innkeeper_writes_total", &["verb=\"merge\""]).await?;
    assert!(writes.is_none_or(|count| count < 1.0), "a restart writes nothing: {writes:?}");

    // The modules go, what they merged stays.
    stage.admin.delete(Kind::MODULE, "", "team").await?;
    stage.admin.until_gone(SOON, (Kind::MODULE, "", "team")).await?;
    assert_eq!(labels_of(&stage, &namespace).await?["team"], "b");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_field_of_another_manager_is_not_taken_and_the_manager_is_named() -> Result<()> {
    let stage = Stage::new().await?;
    let namespace = stage.admin.namespace("taken").await?;
    let own = json!({"apiVersion": "v1", "kind": "Namespace",
        "metadata": {"name": namespace, "labels": {"team": "theirs"}}});
    stage.admin.apply_as("gitops", false, &own.to_string()).await?;
    stage.module("team", "labels", &parameters(&json!({"team": "ours"}))).await?;
    let _host = stage.host().await?;
    stage.ready("team").await?;

    // The conflict is reported where a decoration has a status: by an Event, and on the Module.
    let note = eventually("an Event names the other manager", SOON, async || {
        let events = stage.admin.list(Kind::EVENT, "default").await?;
        let found = events.iter().find(|one| {
            one["reason"] == "FieldConflict" && one["involvedObject"]["name"] == namespace.as_str()
        });
        Ok(found.map(|one| one["message"].to_string()).ok_or("there is none".to_owned()))
    })
    .await?;
    assert!(note.contains("gitops") && note.contains("team"), "{note}");
    assert_eq!(labels_of(&stage, &namespace).await?["team"], "theirs");

    // When the other gives the field up, it is ours.
    let nothing = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}});
    stage.admin.apply_as("gitops", false, &nothing.to_string()).await?;
    until_labelled(&stage, &namespace, &json!({"team": "ours"})).await?;
    // The namespace of the modules belongs to Innkeeper itself: no module decorates it.
    until_labelled(&stage, "default", &json!({"team": "ours"})).await?;
    stage.quiet(std::time::Duration::from_secs(1)).await?;
    assert_eq!(labels_of(&stage, MODULES).await?["team"], Value::Null);
    Ok(())
}
