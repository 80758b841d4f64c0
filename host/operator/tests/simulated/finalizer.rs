//! Finalizers on primaries: when they are added, and what has to be done before they are removed.

use serde_json::{Value, json};

use crate::support::{
    GROUP, NAMESPACE, Reply, Script, Sent, Setup, Stage, block_on, complete, condition, config_map,
    definition, desired, primary_path, refusal,
};

/// The finalizer that the host writes for a guest that gives no name.
const FINALIZER: &str = "innkeeper.dev/scripts";

/// The spec of a primary that desires the ConfigMap `a`, and this document when it is deleted.
fn finalizing(document: &Value) -> Value {
    json!({"complete": desired(&[config_map("a", "1")]), "finalizing": document})
}

#[test]
fn finalizer_is_added_before_the_first_object_is_written() {
    block_on(async {
        // Given a guest with a finalizer.
        let stage = Stage::start(Script::new().finalizes()).await;

        // When a primary is created.
        stage.create("one", &finalizing(&json!({"finalized": true}))).await;
        stage.settle().await;

        // Then the finalizer is the first write.
        let expected = ["apply scripts/one", "apply configmaps/a", "apply scripts/one/status"];
        assert_eq!(stage.writes(), expected);
        assert_eq!(stage.primary("one").await["metadata"]["finalizers"], json!([FINALIZER]));
    });
}

#[test]
fn nothing_is_written_for_a_primary_whose_finalizer_cannot_be_added() {
    block_on(async {
        // Given an API server that refuses changes of primaries.
        let stage = Stage::start(Script::new().finalizes()).await;
        stage.proxy().intercept(|sent: &Sent| {
            let is_meant = sent.is_write() && sent.path == primary_path("one");
            if is_meant { refusal(403, "Forbidden", "no") } else { Reply::Forward }
        });

        // When a primary is created.
        stage.create("one", &finalizing(&json!({"finalized": true}))).await;
        let message = stage.until_primary("one", "Synced", "False", "Forbidden").await;
        stage.pass(60).await;

        // Then its condition names the finalizer, the guest is not run, and no object is written.
        assert!(message.contains("the finalizer cannot be added"), "{message}");
        assert_eq!(stage.runs(), 0);
        assert_eq!(stage.config_map("a").await, None);

        // When the server takes the change, then the primary is reconciled.
        stage.proxy().forward();
        stage.until_primary("one", "Synced", "True", "Applied").await;
        assert!(stage.config_map("a").await.is_some());
    });
}

#[test]
fn deleted_primary_stays_until_its_guest_has_nothing_left_to_do() {
    block_on(async {
        // Given a primary whose guest keeps an object while the primary is deleted.
        let stage = Stage::start(Script::new().finalizes()).await;
        stage.create("one", &finalizing(&desired(&[config_map("a", "last")]))).await;
        stage.settle().await;
        stage.writes();

        // When it is deleted.
        stage.delete("one").await;
        stage.pass(600).await;

        // Then what the guest desires meanwhile is applied, and the primary stays.
        let writes = stage.writes();
        assert_eq!(writes.first().unwrap(), "apply configmaps/a", "{writes:?}");
        assert_eq!(stage.config_map("a").await.unwrap()["data"]["value"], "last");
        assert_eq!(stage.primary("one").await["metadata"]["finalizers"], json!([FINALIZER]));

        // When the guest says that nothing is left to do, but still desires the object.
        let mut document = desired(&[config_map("a", "last")]);
        document["finalized"] = json!(true);
        stage.set_spec("one", &finalizing(&document)).await;
        stage.settle().await;

        // Then the finalizer is removed, and Kubernetes deletes the object with its owner.
        assert_eq!(stage.writes().last().unwrap(), "patch scripts/one");
        assert!(!stage.has_primary("one").await);
        assert_eq!(stage.config_map("a").await, None);
    });
}

#[test]
fn finalizer_is_removed_only_after_the_objects_are_gone() {
    block_on(async {
        // Given a primary whose object has a finalizer of somebody else.
        let stage = Stage::start(Script::new().finalizes()).await;
        stage.create("one", &finalizing(&json!({"finalized": true}))).await;
        stage.settle().await;
        let path = "/api/v1/namespaces/ns/configmaps/a";
        let finalizers = |names: Value| json!({"metadata": {"finalizers": names}});
        stage.merge_at(path, &finalizers(json!(["example.com/slow"]))).await;
        stage.settle().await;
        stage.writes();

        // When the primary is deleted, and its guest desires nothing any more.
        stage.delete("one").await;
        stage.pass(120).await;

        // Then the object is deleted, and the primary waits until it is gone.
        let writes = stage.writes();
        assert_eq!(writes.first().unwrap(), "delete configmaps/a", "{writes:?}");
        assert!(!writes.contains(&"patch scripts/one".to_owned()), "{writes:?}");
        assert!(stage.has_primary("one").await);

        // When the object goes, then the primary goes at once.
        stage.merge_at(path, &finalizers(json!([]))).await;
        stage.pass(2).await;
        assert!(!stage.has_primary("one").await);
    });
}

#[test]
fn finalizer_of_another_controller_stays_on_a_primary_that_is_finalized() {
    block_on(async {
        // Given a primary with a finalizer of another controller.
        let stage = Stage::start(Script::new().finalizes()).await;
        stage.create("one", &finalizing(&json!({"finalized": true}))).await;
        stage.settle().await;
        let both = json!([FINALIZER, "example.com/other"]);
        stage.merge("one", &json!({"metadata": {"finalizers": both}})).await;

        // When it is deleted.
        stage.delete("one").await;
        stage.settle().await;

        // Then the module's finalizer is removed, the other one stays, and the guest runs no more.
        let primary = stage.primary("one").await;
        assert_eq!(primary["metadata"]["finalizers"], json!(["example.com/other"]));
        let before = stage.runs();
        stage.writes();
        stage.annotate("one", "example.com/touched", &json!("yes")).await;
        stage.pass(60).await;
        assert_eq!(stage.runs(), before);
        assert_eq!(stage.writes(), [""; 0]);
    });
}

#[test]
fn finalizer_is_removed_from_a_primary_that_is_no_longer_selected() {
    block_on(async {
        // Given a module that selects its primaries by a label.
        let setup = Setup::new(Script::new().finalizes());
        let setup = setup.spec(json!({"selector": {"matchLabels": {"run": "yes"}}}));
        let stage = setup.start().await;
        stage.create("one", &finalizing(&json!({}))).await;
        stage.settle().await;
        assert_eq!(stage.writes(), [""; 0], "it is not selected yet");
        stage.merge("one", &json!({"metadata": {"labels": {"run": "yes"}}})).await;
        stage.until_primary("one", "Synced", "True", "Applied").await;

        // When the label is removed.
        stage.merge("one", &json!({"metadata": {"labels": {"run": null}}})).await;
        stage.settle().await;

        // Then so is the finalizer, and the object stays.
        assert_eq!(stage.primary("one").await["metadata"]["finalizers"], Value::Null);
        assert!(stage.config_map("a").await.is_some());
    });
}

/// An Extra in a namespace.
fn extra(namespace: &str) -> Value {
    json!({"apiVersion": format!("{GROUP}/v1"), "kind": "Extra",
        "metadata": {"name": "e", "namespace": namespace}, "spec": {}})
}

fn extra_path(namespace: &str) -> String {
    format!("/apis/{GROUP}/v1/namespaces/{namespace}/extras/e")
}

/// A stage with the deleted primary `one`, which had these objects before the module's account was
/// denied to read Extras.
async fn stage_that_cannot_read_extras(objects: &[Value]) -> Stage {
    stage_that_cannot_read_extras_with(&json!({"allowCrossNamespace": true}), objects).await
}

/// The same with this spec of the Module.
async fn stage_that_cannot_read_extras_with(spec: &Value, objects: &[Value]) -> Stage {
    let kind = json!({"apiVersion": format!("{GROUP}/v1"), "kind": "Extra", "plural": "extras",
        "scope": "Namespaced"});
    let stage = Setup::new(Script::new().owns(json!({ "kind": kind })).finalizes())
        .spec(spec.clone())
        .object(definition("Extra", "extras"))
        .may(&["get", "list", "watch", "create", "patch", "delete"], GROUP, "extras")
        .start()
        .await;
    let spec = json!({"complete": desired(objects), "finalizing": {"finalized": true}});
    stage.create("one", &spec).await;
    stage.until_primary("one", "Synced", "True", "Applied").await;
    stage.revoke("list", "extras").await;
    stage.revoke("watch", "extras").await;
    stage.until_module("Authorized", "False", "Forbidden").await;
    stage.delete("one").await;
    stage.pass(120).await;
    stage
}

#[test]
fn deleted_primary_keeps_its_objects_and_finalizer_while_a_kind_cannot_be_read() {
    block_on(async {
        // Given a primary with a ConfigMap and an object of another kind, which is deleted when the
        // module's account may not read that kind any more.
        let objects = [extra(NAMESPACE), config_map("a", "1")];
        let stage = stage_that_cannot_read_extras(&objects).await;

        // Then nothing is deleted, and the primary stays with its finalizer.
        assert!(stage.get(&extra_path(NAMESPACE)).await.is_some());
        assert!(stage.config_map("a").await.is_some());
        let primary = stage.primary("one").await;
        assert_eq!(primary["metadata"]["finalizers"], json!([FINALIZER]));

        // When the account may read it again, then the primary is finalized.
        stage.grant(&["list", "watch"], GROUP, "extras").await;
        stage.until_gone(&primary_path("one")).await;
        assert_eq!(stage.get(&extra_path(NAMESPACE)).await, None);
        assert_eq!(stage.config_map("a").await, None);
    });
}

#[test]
fn deleted_primary_that_waits_for_a_kind_that_cannot_be_read_says_so() {
    block_on(async {
        // Given a deleted primary that cannot be finalized, since a kind cannot be read.
        let objects = [extra(NAMESPACE), config_map("a", "1")];
        let stage = stage_that_cannot_read_extras(&objects).await;

        // Then its condition says so.
        let primary = stage.primary("one").await;
        let synced = condition(&primary, "Synced").unwrap();
        assert_eq!(synced["status"], "False", "{synced}");
        assert!(synced["message"].as_str().unwrap().contains("Extra"), "{synced}");
    });
}

#[test]
fn deleted_primary_keeps_its_finalizer_while_its_only_object_cannot_be_read() {
    block_on(async {
        // Given a deleted primary whose only object is in another namespace, where Kubernetes would
        // not delete it, and of a kind that cannot be read.
        let stage = stage_that_cannot_read_extras(&[extra("default")]).await;

        // Then the primary stays.
        assert!(stage.get(&extra_path("default")).await.is_some());
        assert!(stage.has_primary("one").await);

        // When the account may read the kind again, then the object is deleted before the primary.
        stage.grant(&["list", "watch"], GROUP, "extras").await;
        stage.until_gone(&primary_path("one")).await;
        assert_eq!(stage.get(&extra_path("default")).await, None);
    });
}

#[test]
fn deleted_primary_is_released_when_kubernetes_deletes_its_unreadable_objects() {
    block_on(async {
        // Given a deleted primary whose only object is in its namespace, with an owner reference,
        // and of a kind that cannot be read.
        let objects = [extra(NAMESPACE)];
        let stage = stage_that_cannot_read_extras_with(&json!({}), &objects).await;

        // Then the primary is gone, and Kubernetes deletes the object.
        stage.until_gone(&primary_path("one")).await;
        stage.until_gone(&extra_path(NAMESPACE)).await;
    });
}

#[test]
fn deleted_primary_says_why_it_deletes_nothing_while_a_kind_cannot_be_read() {
    block_on(async {
        // Given a deleted primary with a ConfigMap, whose other kind cannot be read.
        let objects = [extra(NAMESPACE), config_map("a", "1")];
        let stage = stage_that_cannot_read_extras_with(&json!({}), &objects).await;

        // Then the ConfigMap stays, and the condition says why.
        assert!(stage.config_map("a").await.is_some());
        let message = stage.until_primary("one", "Synced", "False", "Unreadable").await;
        assert!(message.contains("deletes no object") && message.contains("Extra"), "{message}");
    });
}

#[test]
fn primary_without_a_finalizer_is_gone_with_its_objects_and_runs_no_more() {
    block_on(async {
        // Given a primary of a guest without a finalizer.
        let stage = Stage::start(Script::new()).await;
        stage.create("one", &complete(&desired(&[config_map("a", "1")]))).await;
        stage.settle().await;
        let before = stage.runs();
        stage.writes();

        // When it is deleted.
        stage.delete("one").await;
        stage.settle().await;

        // Then Kubernetes deletes its object; the host writes nothing, and does not run the guest.
        assert_eq!(stage.config_map("a").await, None);
        assert_eq!(stage.writes(), [""; 0]);
        assert_eq!(stage.runs(), before);
    });
}

#[test]
fn deleted_primary_whose_guest_traps_stays_and_is_retried_until_it_is_finalized() {
    block_on(async {
        // Given a primary whose guest traps.
        let stage = Stage::start(Script::new().finalizes()).await;
        stage.create("one", &finalizing(&json!({"finalized": true}))).await;
        stage.settle().await;
        stage.set_spec("one", &json!({"trap": true})).await;
        stage.settle().await;
        stage.writes();

        // When it is deleted, then it stays, and its object too.
        stage.delete("one").await;
        stage.until_primary("one", "Synced", "False", "GuestTrapped").await;
        stage.pass(60).await;
        assert!(stage.has_primary("one").await);
        assert!(stage.config_map("a").await.is_some());
        let writes = stage.writes();
        assert!(writes.iter().all(|line| line == "apply scripts/one/status"), "{writes:?}");

        // When the guest does no longer, then the primary is finalized.
        stage.set_spec("one", &finalizing(&json!({"finalized": true}))).await;
        stage.until_gone(&primary_path("one")).await;
        assert_eq!(stage.writes(), ["delete configmaps/a", "patch scripts/one"]);
    });
}

#[test]
fn finalized_primary_takes_its_objects_and_merged_fields_with_it_and_leaves_its_orphans() {
    block_on(async {
        // Given a primary with an object, an orphan, and fields merged into a foreign object.
        let setup = Setup::new(Script::new().finalizes()).object(config_map("theirs", "1"));
        let stage = setup.start().await;
        let merged = json!({"apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": "theirs"}, "data": {"ours": "1"}});
        let objects = json!({"objects": [
            {"object": config_map("a", "1")},
            {"object": config_map("orphan", "1"), "policy": ["orphan"]},
            {"object": merged, "policy": ["merge"]}]});
        let spec = json!({"complete": objects, "finalizing": {"finalized": true}});
        stage.create("one", &spec).await;
        stage.until_primary("one", "Synced", "True", "Applied").await;
        let orphan = stage.config_map("orphan").await.unwrap();
        stage.settle().await;
        stage.writes();

        // When it is deleted.
        stage.delete("one").await;
        stage.settle().await;

        // Then the object is deleted, the fields are unmerged, and the orphan is not touched.
        let mut writes = stage.writes();
        assert_eq!(writes.pop().unwrap(), "patch scripts/one");
        writes.sort();
        assert_eq!(writes, ["apply configmaps/theirs", "delete configmaps/a"]);
        assert_eq!(stage.config_map("a").await, None);
        assert_eq!(stage.config_map("theirs").await.unwrap()["data"], json!({"value": "1"}));
        assert_eq!(stage.config_map("orphan").await.unwrap(), orphan);
    });
}

#[test]
fn finalizer_of_the_revision_before_is_replaced_by_that_of_the_active_one() {
    block_on(async {
        // Given a primary with the finalizer of the first revision.
        let stage = Stage::start(Script::new().finalizes()).await;
        stage.create("one", &finalizing(&json!({"finalized": true}))).await;
        stage.settle().await;
        let finalizers = async || stage.primary("one").await["metadata"]["finalizers"].clone();
        assert_eq!(finalizers().await, json!([FINALIZER]));

        // When a revision has a finalizer of another name, then that one replaces it.
        let other = format!("{GROUP}/cleanup");
        stage.push(&Script::new().with("finalizer", json!(other))).await;
        stage.until_module("Ready", "True", "RevisionActive").await;
        stage.settle().await;
        assert_eq!(finalizers().await, json!([other]));

        // When a revision has none, then it is removed.
        stage.push(&Script::new()).await;
        stage.until_module("Ready", "True", "RevisionActive").await;
        stage.settle().await;
        assert_eq!(finalizers().await, Value::Null);
        assert!(stage.config_map("a").await.is_some());
    });
}
