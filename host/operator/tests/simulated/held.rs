//! Candidates that are held for a cause that may go: the host previews them again.

use serde_json::{Value, json};

use crate::support::{
    GROUP, Script, Sent, Stage, block_on, complete, component, config_map, desired, primary_path,
};

/// How long the host takes at most to preview a held candidate again, in seconds.
const AGAIN: u64 = 330;

/// The kind Namespace, as in a manifest.
fn namespaces() -> Value {
    json!({"apiVersion": "v1", "kind": "Namespace", "plural": "namespaces", "scope": "Cluster"})
}

/// A script that makes a Service for each primary.
fn maker() -> Script {
    let services = json!({"kind": {"apiVersion": "v1", "kind": "Service", "plural": "services",
        "scope": "Namespaced"}});
    let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"},
        "spec": {"ports": [{"port": 80}]}});
    Script::new().owns(services).when("\"kind\":\"Script\"", &desired(&[service]))
}

async fn digest(stage: &Stage) -> Value {
    stage.module().await["status"]["digest"].clone()
}

/// How often the host emitted Events with this reason about the Module.
async fn module_events(stage: &Stage, reason: &str) -> u64 {
    let events = stage.api().list("/api/v1/events").await.unwrap();
    let about = events.iter().filter(|event| event["involvedObject"]["kind"] == "Module");
    let counts = about.filter(|event| event["reason"] == reason);
    counts.map(|event| event["count"].as_u64().unwrap_or(1)).sum()
}

#[test]
fn first_revision_is_shown_as_loading_although_its_source_was_missing() {
    block_on(async {
        // Given a Module without a revision, whose source is missing.
        let stopped = Stage::start(Script::new()).await.stop().await;
        stopped.delete_module().await;
        let module = json!({"apiVersion": "innkeeper.dev/v1alpha1", "kind": "Module",
            "metadata": {"name": "scripts"},
            "spec": {"source": {"configMap": {"name": "later"}}, "serviceAccountName": "scripts"}});
        stopped.api().apply(&module, "").await.unwrap();
        let stage = stopped.start().await;
        stage.until_module("Loaded", "False", "SourceNotFound").await;
        stage.proxy().take();

        // When its source appears.
        let mut object = component(&Script::new().component());
        object["metadata"]["name"] = json!("later");
        stage.apply(&object).await;
        stage.until_module("Ready", "True", "RevisionActive").await;

        // Then the status says that the host loads it before it says that it is active.
        let loading = |sent: &Sent| {
            sent.path.ends_with("/modules/scripts/status")
                && sent.body.to_string().contains("\"Loading\"")
        };
        assert!(stage.proxy().take().iter().any(loading), "no status says Loading");
    });
}

#[test]
fn candidate_whose_preview_lacked_rights_becomes_active_once_they_are_granted() {
    block_on(async {
        // Given a module with a primary.
        let stage = Stage::start(Script::new()).await;
        stage.create("one", &json!({})).await;
        stage.settle().await;
        let active = digest(&stage).await;

        // When a candidate makes Services, which its account may not read.
        stage.push(&maker()).await;
        let message = stage.until_module("Held", "True", "WouldFail").await;

        // Then it is held, and the message says which right is missing and what to do.
        for part in ["may not list services", "`innkeeper rbac`", "repeats the preview"] {
            assert!(message.contains(part), "{part}: {message}");
        }
        assert_eq!(digest(&stage).await, active);

        // When nothing changes, then the host repeats the preview ever more rarely, with one Event.
        stage.proxy().take();
        stage.pass(3_600).await;
        let reviews = stage.proxy().take();
        let reviews = reviews.iter().filter(|sent| sent.path.contains("accessreviews")).count();
        assert!(reviews < 200, "{reviews} access reviews in an hour");
        assert_eq!(module_events(&stage, "Held").await, 1);

        // When the account may do it, then the candidate becomes active without an approval.
        stage.grant(&["get", "list", "watch", "create", "patch", "delete"], "", "services").await;
        stage.pass(AGAIN).await;
        assert_ne!(digest(&stage).await, active);
        stage.until_primary("one", "Synced", "True", "Applied").await;
        assert!(stage.get("/api/v1/namespaces/ns/services/s").await.is_some());
    });
}

#[test]
fn candidate_for_another_kind_becomes_active_once_the_last_primary_is_gone() {
    block_on(async {
        // Given a candidate that is held for a primary.
        let stage = Stage::start(Script::new()).await;
        stage.create("one", &json!({})).await;
        stage.settle().await;
        let active = digest(&stage).await;
        stage.push(&Script::new().with("primary", namespaces())).await;
        stage.until_module("Held", "True", "WouldAbandonPrimaries").await;
        stage.pass(AGAIN).await;
        assert_eq!(digest(&stage).await, active);

        // When the primary is deleted, then the candidate becomes active.
        stage.delete("one").await;
        stage.pass(AGAIN).await;
        assert_ne!(digest(&stage).await, active);
        stage.until_module("Held", "False", "NoApprovalNeeded").await;
    });
}

#[test]
fn candidate_that_selects_fewer_primaries_is_held_for_the_others() {
    block_on(async {
        // Given a module with two primaries.
        let stage = Stage::start(Script::new()).await;
        let spec = complete(&desired(&[config_map("a", "1")]));
        stage.create("one", &spec).await;
        stage.create("two", &json!({})).await;
        stage.merge("two", &json!({"metadata": {"labels": {"run": "yes"}}})).await;
        stage.settle().await;
        let active = digest(&stage).await;

        // When a candidate selects one of them by a label, then it is held for the other one.
        let selector = json!({"matchLabels": {"run": "yes"}});
        stage.push(&Script::new().with("selector", selector)).await;
        let message = stage.until_module("Held", "True", "WouldAbandonPrimaries").await;
        let expected = format!("its selector leaves out primaries of Script of {GROUP}");
        assert!(message.contains(&expected) && message.contains("1 primary"), "{message}");
        assert_eq!(digest(&stage).await, active);

        // When the other one has the label too, then the candidate becomes active.
        stage.merge("one", &json!({"metadata": {"labels": {"run": "yes"}}})).await;
        stage.pass(AGAIN).await;
        assert_ne!(digest(&stage).await, active);
        stage.until_primary("one", "Synced", "True", "Applied").await;
    });
}

#[test]
fn candidate_for_another_kind_is_held_although_the_active_revision_is_lost() {
    block_on(async {
        // Given a module with a primary, whose source and snapshot go while no host runs.
        let stage = Stage::start(Script::new().finalizes()).await;
        stage.create("one", &json!({})).await;
        stage.settle().await;
        let active = digest(&stage).await;
        let snapshot = format!("scripts-copy-{}", &active.as_str().unwrap()[..12]);
        let stopped = stage.stop().await;
        let path = format!("/api/v1/namespaces/innkeeper-modules/configmaps/{snapshot}");
        stopped.api().delete(&path).await.unwrap();
        let other = Script::new().with("primary", namespaces());
        stopped.api().apply(&component(&other.component()), "innkeeper-modules").await.unwrap();

        // When a host starts with a component for another kind, then that is held for the primary,
        // also when yet another host starts.
        let mut stage = stopped.start().await;
        for _ in 0..2 {
            stage.until_module("Held", "True", "WouldAbandonPrimaries").await;
            assert_eq!(digest(&stage).await, Value::Null);
            stage = stage.stop().await.start().await;
            stage.pass(60).await;
        }

        // When the primary is gone, then it becomes active.
        let finalizers = json!({"metadata": {"finalizers": null}});
        stage.merge_at(&primary_path("one"), &finalizers).await;
        stage.delete("one").await;
        stage.pass(AGAIN).await;
        stage.until_module("Serving", "True", "RevisionActive").await;
    });
}
