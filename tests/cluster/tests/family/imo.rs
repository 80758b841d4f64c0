//! Imo: periods, and a status of its own.

use std::time::Duration;

use anyhow::Result;
use innkeeper_cluster_tests::stage::{HOST, SOON, message, output, says};
use innkeeper_cluster_tests::{AuditFilter, Host, Kind, Stage, condition, eventually, kubelet};
use innkeeper_tiny_guests::Tiny;
use serde_json::{Value, json};

use crate::stage::{IMO, stage, until_at_rest, until_phase, until_run_again};

#[tokio::test(flavor = "multi_thread")]
async fn guest_runs_by_the_resync_period_of_the_module_or_the_object() -> Result<()> {
    let (stage, host, namespace) = stage(&[("imo", json!({}))]).await?;
    let (admin, ns) = (&stage.admin, &*namespace);
    admin.apply_in(ns, include_str!("../../../../deploy/samples/imo.yaml")).await?;
    let other = json!({"apiVersion": IMO.api_version, "kind": IMO.kind,
        "metadata": {"name": "other"}});
    admin.apply_in(ns, &other.to_string()).await?;
    stage.all_synced(IMO, ns, 2).await?;
    // The guest asks for no period.
    until_at_rest(&stage, &host, "imo").await?;

    period_of_the_module_runs_the_guest_without_writes(&stage, &host, ns).await?;
    // First that no object is ever to be looked at; then one says otherwise.
    set_period_of_the_module(&stage, "1h").await?;
    stage.ready("imo").await?;
    until_at_rest(&stage, &host, "imo").await?;
    period_of_an_object_counts_first(&stage, &host, ns).await?;
    unreadable_period_of_an_object_is_reported(&stage, ns).await?;
    too_short_period_of_the_module_is_reported(&stage).await
}

async fn set_period_of_the_module(stage: &Stage, period: &str) -> Result<()> {
    let patch = json!({"spec": {"resyncPeriod": period}});
    stage.admin.edit((Kind::MODULE, "", "imo"), &patch).await?;
    Ok(())
}

async fn set_period_of_the_object(stage: &Stage, ns: &str, period: Value) -> Result<()> {
    let patch = json!({"metadata": {"annotations": {"innkeeper.dev/resync-period": period}}});
    stage.admin.edit((IMO, ns, "example-imo"), &patch).await?;
    Ok(())
}

async fn period_of_the_module_runs_the_guest_without_writes(
    stage: &Stage,
    host: &Host,
    ns: &str,
) -> Result<()> {
    set_period_of_the_module(stage, "1s").await?;
    stage.ready("imo").await?;
    stage.quiet(Duration::from_secs(1)).await?;
    let mark = stage.plane.audit()?.mark()?;
    let running = async || {
        let imo = stage.admin.must_get(IMO, ns, "example-imo").await?;
        let conditions = imo["status"]["conditions"].as_array().unwrap();
        anyhow::Ok(conditions.iter().find(|one| one["type"] == "Running").unwrap().clone())
    };
    let before = running().await?;
    assert_eq!(before["reason"], "Successful");
    assert_eq!(before["message"], "Awaiting next reconciliation");
    let result = &before["ansibleResult"];
    assert_eq!([&result["ok"], &result["skipped"], &result["failures"]], [1, 0, 0], "{before}");
    until_run_again(host, "imo").await?;
    let writes = stage.plane.audit()?.since(mark, &AuditFilter::new().writes().user(HOST))?;
    assert!(writes.is_empty(), "looked at, and nothing to write: {writes:?}");
    assert_eq!(running().await?, before);
    Ok(())
}

async fn period_of_an_object_counts_first(stage: &Stage, host: &Host, ns: &str) -> Result<()> {
    set_period_of_the_object(stage, ns, json!("1s")).await?;
    until_run_again(host, "imo").await?;
    set_period_of_the_object(stage, ns, json!("0s")).await?;
    until_at_rest(stage, host, "imo").await
}

async fn unreadable_period_of_an_object_is_reported(stage: &Stage, ns: &str) -> Result<()> {
    set_period_of_the_object(stage, ns, json!("often")).await?;
    eventually("an Event says what is wrong", SOON, async || {
        let events = stage.admin.list(Kind::EVENT, ns).await?;
        let found = events.iter().find(|one| one["reason"] == "InvalidResyncPeriod");
        let note = found.and_then(|one| one["message"].as_str()).unwrap_or_default();
        let whole = note.contains("innkeeper.dev/resync-period") && note.contains("\"often\"");
        Ok(if whole { Ok(()) } else { Err(format!("{events:?}")) })
    })
    .await?;
    set_period_of_the_object(stage, ns, Value::Null).await
}

async fn too_short_period_of_the_module_is_reported(stage: &Stage) -> Result<()> {
    set_period_of_the_module(stage, "10ms").await?;
    eventually("the Module says what is wrong", SOON, async || {
        let module = stage.admin.must_get(Kind::MODULE, "", "imo").await?;
        let conditions = module["status"]["conditions"].to_string();
        let is_named = conditions.contains("10ms is too short: at least 1s");
        Ok(if is_named { Ok(()) } else { Err(conditions) })
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn status_is_the_guests_alone_when_manage_status_is_false() -> Result<()> {
    let (stage, _host, namespace) = stage(&[("imo", json!({"manageStatus": false}))]).await?;
    let (admin, ns) = (&stage.admin, &*namespace);
    let applied = admin.apply_in(ns, include_str!("../../../../deploy/samples/imo.yaml")).await?;
    assert_eq!(applied[0]["spec"], json!({"size": 3}));
    let at = (IMO, ns, "example-imo");
    let seen = until_phase(&stage, at, "setup").await?;
    stage.says(at, ("Ready", "False", "InProgress")).await?;
    let deployment = admin.must_get(Kind::DEPLOYMENT, ns, "example-imo").await?;
    assert_eq!(deployment["spec"]["replicas"], json!(3), "a number");
    assert_eq!(deployment["spec"]["template"]["metadata"]["labels"], json!({"app": "imo"}));
    let container = &deployment["spec"]["template"]["spec"]["containers"][0];
    assert_eq!(container["image"], "nginx");
    assert_eq!(container["ports"], json!([{"containerPort": 80, "protocol": "TCP"}]));
    assert_eq!(seen["status"]["observedGeneration"], Value::Null);

    kubelet::runs_all(admin, ns, ("app", "imo"), 3).await?;
    let seen = until_phase(&stage, at, "ready").await?;
    let mut status = seen["status"].clone();
    let conditions = status.as_object_mut().unwrap().remove("conditions").unwrap();
    assert_eq!(status, json!({"phase": "ready", "replicas": 3, "readyReplicas": 3}));
    let [ready] = &conditions.as_array().unwrap()[..] else { panic!("{conditions:#}") };
    let since = ready["lastTransitionTime"].as_str().unwrap().to_owned();
    assert!(since.ends_with('Z') && since.len() == "2026-01-01T00:00:00Z".len(), "{since}");
    assert_eq!(
        *ready,
        json!({"type": "Ready", "status": "True", "reason": "AllReady",
            "message": ready["message"], "lastTransitionTime": since})
    );

    // A text is not a number, for the server and for everybody.
    let wrong = |size: Value| json!({"spec": {"size": size}});
    for (size, why) in
        [(json!("3"), "must be of type integer"), (json!(-1), "greater than or equal to 0")]
    {
        let refused = admin.edit(at, &wrong(size)).await.map_err(|error| format!("{error:#}"));
        assert!(refused.as_ref().is_err_and(|error| error.contains(why)), "{refused:?}");
    }
    admin.edit(at, &wrong(json!(5))).await?;
    let five = |one: &Value| one["spec"]["replicas"] == json!(5);
    admin.until("five are wanted", SOON, (Kind::DEPLOYMENT, ns, "example-imo"), five).await?;

    // The host's own, as soon as the Module wants them.
    admin.edit((Kind::MODULE, "", "imo"), &json!({"spec": {"manageStatus": null}})).await?;
    stage.says(at, ("Synced", "True", "Applied")).await?;
    let is_whole = |one: &Value| {
        one["status"]["observedGeneration"] == one["metadata"]["generation"]
            && says(one, "Ready", "False", "InProgress")
    };
    admin.until("the generation is reported", SOON, at, is_whole).await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn malformed_condition_is_refused_with_its_path_and_no_status_is_written() -> Result<()> {
    let stage = Stage::new().await?;
    let crd: Value = serde_json::from_str(include_str!("../../../../guests/imo/crd.json"))?;
    for crd in stage.admin.apply(&crd.to_string()).await? {
        stage.admin.until_established(&crd).await?;
    }
    // A guest that says what the SDK would not let it say.
    let manifest = json!({"name": "imo", "version": "1.0.0",
        "primary": {"apiVersion": IMO.api_version, "kind": IMO.kind, "plural": "imos"}});
    let says = |reason: &str| {
        let condition = json!({"type": "Tasty", "status": "True", "reason": reason, "message": ""});
        let outcome = json!({"status": {"phase": "setup"}, "conditions": [condition]});
        Tiny::default().manifest(&manifest.to_string()).outcome(0, &outcome.to_string()).component()
    };
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("guest.wasm");
    std::fs::write(&file, says("Because"))?;
    let rights = output(&["rbac", &file.to_string_lossy(), "--module", "imo"]).await?;
    stage.admin.apply(&rights).await?;
    stage.module_of_bytes("imo", &says("not one word"), &json!({})).await?;
    let _host = stage.host().await?;
    stage.ready("imo").await?;
    let (admin, ns) = (&stage.admin, &*stage.admin.namespace("family").await?);
    admin.apply_in(ns, include_str!("../../../../deploy/samples/imo.yaml")).await?;
    let at = (IMO, ns, "example-imo");
    let refused = |one: &Value| {
        let text = message(one, "Synced");
        condition(one, "Synced") == Some("False") && text.contains("conditions[0].reason")
    };
    let seen = admin.until("the condition is refused", SOON, at, refused).await?;
    assert_eq!(condition(&seen, "Tasty"), None);
    assert_eq!(seen["status"]["phase"], Value::Null, "nothing of such an answer is taken");

    stage.push_bytes("imo", &says("Because")).await?;
    stage.says(at, ("Tasty", "True", "Because")).await?;
    stage.says(at, ("Synced", "True", "Applied")).await?;
    Ok(())
}
