//! Policies of desired objects: recreate, create once, retain, merge.

use innkeeper_lab::Content;
use serde_json::{Value, json};

use crate::support::{
    Script, Setup, Stage, block_on, complete, config_map, config_map_path, desired, desired_with,
    primary_path,
};

fn immutable(value: &str) -> Value {
    let mut object = config_map("a", value);
    object["immutable"] = json!(true);
    object
}

#[test]
fn object_with_an_immutable_field_that_changes_is_recreated_only_by_policy() {
    block_on(async {
        // Given a primary with an immutable ConfigMap.
        let stage = Stage::start(Script::new()).await;
        stage.create("one", &complete(&desired(&[immutable("1")]))).await;
        stage.settle().await;
        let uid = stage.config_map("a").await.unwrap()["metadata"]["uid"].clone();
        stage.writes();

        // When its guest desires another value.
        stage.set_spec("one", &complete(&desired(&[immutable("2")]))).await;
        stage.until_primary("one", "Synced", "False", "Immutable").await;
        stage.pass(600).await;

        // Then the object stays, and was sent once: the same answer is expected.
        let writes = stage.writes();
        assert_eq!(writes, ["apply configmaps/a", "apply scripts/one/status"]);
        assert_eq!(stage.config_map("a").await.unwrap()["metadata"]["uid"], uid);

        // When the guest gives the policy.
        let spec = complete(&desired_with(&immutable("2"), &["recreate-when-immutable"]));
        stage.set_spec("one", &spec).await;
        stage.until_primary("one", "Synced", "True", "Applied").await;

        // Then the object is deleted and created.
        let writes = stage.writes();
        let expected = ["delete configmaps/a", "apply configmaps/a", "apply scripts/one/status"];
        assert_eq!(writes, expected);
        let object = stage.config_map("a").await.unwrap();
        assert_ne!(object["metadata"]["uid"], uid);
        assert_eq!(object["data"]["value"], "2");
    });
}

#[test]
fn create_only_object_is_not_set_back_but_made_again() {
    block_on(async {
        // Given a primary with an object that is made once.
        let stage = Stage::start(Script::new()).await;
        let spec = |value: &str| complete(&desired_with(&config_map("a", value), &["create-only"]));
        stage.create("one", &spec("1")).await;
        stage.settle().await;
        stage.writes();

        // When a user changes it, and the guest desires another value.
        stage.apply(&config_map("a", "theirs")).await;
        stage.set_spec("one", &spec("2")).await;
        stage.settle().await;

        // Then it stays as the user has it.
        assert_eq!(stage.writes(), ["apply scripts/one/status"]);
        assert_eq!(stage.config_map("a").await.unwrap()["data"]["value"], "theirs");

        // When the user deletes it, then it is made with the present value.
        stage.api().delete(&config_map_path("a")).await.unwrap();
        stage.settle().await;
        assert_eq!(stage.config_map("a").await.unwrap()["data"]["value"], "2");

        // When it is no longer desired, then it is deleted.
        stage.set_spec("one", &complete(&json!({}))).await;
        stage.settle().await;
        assert_eq!(stage.config_map("a").await, None);
    });
}

#[test]
fn orphan_outlives_its_primary_and_belongs_to_the_next_one_of_its_name() {
    block_on(async {
        // Given a primary with an orphan.
        let stage = Stage::start(Script::new()).await;
        let spec = |value: &str| complete(&desired_with(&config_map("a", value), &["orphan"]));
        stage.create("one", &spec("1")).await;
        stage.settle().await;
        let object = stage.config_map("a").await.unwrap();
        assert_eq!(object["metadata"]["ownerReferences"], Value::Null);
        assert!(object["metadata"]["labels"]["innkeeper.dev/retained-for"].is_string());

        // When the primary is deleted, then the object stays.
        stage.delete("one").await;
        stage.settle().await;
        assert!(!stage.has_primary("one").await);
        assert_eq!(stage.config_map("a").await.unwrap(), object);

        // When a primary of another name desires it, then it is a conflict.
        stage.create("two", &spec("2")).await;
        stage.until_primary("two", "Synced", "False", "Conflict").await;
        assert_eq!(stage.config_map("a").await.unwrap(), object);

        // When a primary of the same name desires it, then that one has it.
        stage.create("one", &spec("3")).await;
        stage.until_primary("one", "Synced", "True", "Applied").await;
        let retaken = stage.config_map("a").await.unwrap();
        assert_eq!(retaken["metadata"]["uid"], object["metadata"]["uid"]);
        assert_eq!(retaken["data"]["value"], "3");
    });
}

#[test]
fn objects_of_a_primary_that_is_deleted_without_its_dependents_stay_without_an_owner() {
    block_on(async {
        // Given a primary with an object.
        let stage = Stage::start(Script::new()).await;
        stage.create("one", &complete(&desired(&[config_map("a", "1")]))).await;
        stage.settle().await;
        let before = stage.config_map("a").await.unwrap();

        // When a user deletes the primary as with `kubectl delete --cascade=orphan`.
        let path = primary_path("one");
        let options = json!({"propagationPolicy": "Orphan"});
        stage.api().send("DELETE", &path, Content::Json, &options).await.unwrap();
        stage.until_gone(&path).await;
        stage.pass(60).await;

        // Then the object stays, without an owner.
        let after = stage.config_map("a").await.unwrap();
        assert_eq!(after["metadata"]["uid"], before["metadata"]["uid"]);
        assert_eq!(after["metadata"]["ownerReferences"], Value::Null);
        assert_eq!(after["data"], before["data"]);
    });
}

#[test]
fn merge_writes_its_fields_only_and_unmerge_leaves_the_others() {
    block_on(async {
        // Given a ConfigMap of an administrator.
        let stage = Setup::new(Script::new()).object(config_map("a", "theirs")).start().await;
        let fields = |data: &Value| {
            let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"},
                "data": data});
            complete(&desired_with(&object, &["merge"]))
        };

        // When a primary merges a key into it.
        stage.create("one", &fields(&json!({"ours": "1"}))).await;
        stage.until_primary("one", "Synced", "True", "Applied").await;

        // Then it has both keys and no owner.
        let object = stage.config_map("a").await.unwrap();
        assert_eq!(object["data"], json!({"value": "theirs", "ours": "1"}));
        assert_eq!(object["metadata"]["ownerReferences"], Value::Null);

        // When the administrator changes their key, then the merged key stays.
        stage.apply(&config_map("a", "changed")).await;
        stage.settle().await;
        let object = stage.config_map("a").await.unwrap();
        assert_eq!(object["data"], json!({"value": "changed", "ours": "1"}));

        // When the primary merges another key, then that one replaces the first.
        stage.set_spec("one", &fields(&json!({"more": "2"}))).await;
        stage.settle().await;
        let object = stage.config_map("a").await.unwrap();
        assert_eq!(object["data"], json!({"value": "changed", "more": "2"}));

        // When the primary merges nothing any more, then the administrator's fields are left.
        stage.set_spec("one", &complete(&json!({}))).await;
        stage.settle().await;
        let object = stage.config_map("a").await.unwrap();
        assert_eq!(object["data"], json!({"value": "changed"}));
    });
}

#[test]
fn merge_of_a_field_that_another_manager_holds_is_a_conflict_and_takes_nothing() {
    block_on(async {
        // Given a ConfigMap of an administrator.
        let stage = Setup::new(Script::new()).object(config_map("a", "theirs")).start().await;
        let before = stage.config_map("a").await;

        // When a primary merges another value of a field that it has, and makes an object.
        let spec = json!({"objects": [
            {"object": config_map("a", "ours"), "policy": ["merge"]},
            {"object": config_map("b", "1")}]});
        stage.create("one", &complete(&spec)).await;
        let message = stage.until_primary("one", "Synced", "False", "FieldConflict").await;
        stage.settle().await;

        // Then the condition names field and manager, and the object stays as it is.
        assert!(message.contains(".data.value") && message.contains("innkeeper-test"), "{message}");
        assert_eq!(stage.config_map("a").await, before);
        assert!(stage.config_map("b").await.is_some(), "the other object is made");

        // When the administrator deletes the object, then the message says that it is missing.
        stage.api().delete(&config_map_path("a")).await.unwrap();
        stage.until_primary("one", "Synced", "False", "MergeTargetMissing").await;
        assert_eq!(stage.config_map("a").await, None, "merge creates nothing");
    });
}

#[test]
fn candidate_that_gives_up_create_only_counts_the_objects_that_users_have_changed() {
    block_on(async {
        // Given a module with an object that its guest only creates, and a user has changed it.
        let script = |policies: &[&str]| {
            let object = config_map("a", "1");
            Script::new().when("\"kind\":\"Script\"", &desired_with(&object, policies))
        };
        let limit = json!({"rollout": {"maxChangedPercent": 0}});
        let stage = Setup::new(script(&["create-only"])).spec(limit).start().await;
        stage.create("one", &json!({})).await;
        stage.until_primary("one", "Synced", "True", "Applied").await;
        stage.apply(&config_map("a", "of a user")).await;
        stage.settle().await;

        // When a candidate desires the same, and not only once.
        stage.push(&script(&[])).await;

        // Then the preview counts the change that it would take back.
        stage.until_module("Held", "True", "WouldExceedChangeLimit").await;
        let candidate = stage.module().await["status"]["candidate"].clone();
        assert_eq!(candidate["changes"], 1, "{candidate}");
    });
}
