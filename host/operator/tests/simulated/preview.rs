//! The preview of a candidate: what holds it, and that the later reconciles do what it showed.

use serde_json::{Value, json};

use crate::support::{
    GROUP, Reply, Script, Setup, Stage, block_on, complete, config_map, count, definition, desired,
    desired_with, refusal,
};

/// A guest that desires these objects for each primary.
fn desiring(objects: &[Value]) -> Script {
    Script::new().when("\"kind\":\"Script\"", &desired(objects))
}

/// A stage whose module has made the objects `a` and `b` for the primary `one`.
async fn stage_with_two_objects(rollout: Value) -> Stage {
    let script = desiring(&[config_map("a", "1"), config_map("b", "1")]);
    let stage = Setup::new(script).spec(json!({ "rollout": rollout })).start().await;
    stage.create("one", &json!({})).await;
    stage.until_primary("one", "Synced", "True", "Applied").await;
    stage.settle().await;
    stage.writes();
    stage
}

/// The kind Namespace, as in a manifest.
fn namespaces() -> Value {
    json!({"apiVersion": "v1", "kind": "Namespace", "plural": "namespaces", "scope": "Cluster"})
}

/// What a preview counted: creates, changes, deletes and failures.
fn figures(preview: &Value) -> [i64; 4] {
    ["creates", "changes", "deletes", "failures"]
        .map(|member| preview[member].as_i64().unwrap_or_default())
}

/// Approves the candidate.
async fn approve(stage: &Stage) {
    let digest = stage.module().await["status"]["candidate"]["digest"].clone();
    annotate(stage, "innkeeper.dev/approve", &digest).await;
}

async fn annotate(stage: &Stage, annotation: &str, value: &Value) {
    stage.merge_module(&json!({"metadata": {"annotations": {annotation: value}}})).await;
}

#[test]
fn candidate_that_would_delete_is_held_and_does_what_its_preview_showed_when_approved() {
    block_on(async {
        // Given a module with a primary and two objects.
        let stage = stage_with_two_objects(json!({})).await;

        // When a candidate would create one object, change one and delete one.
        stage.push(&desiring(&[config_map("a", "2"), config_map("c", "1")])).await;
        let message = stage.until_module("Held", "True", "WouldDelete").await;

        // Then the status shows all three, and the preview has written nothing.
        assert!(message.contains("ConfigMap ns/b"), "{message}");
        let candidate = stage.module().await["status"]["candidate"].clone();
        assert_eq!(candidate["state"], "Held");
        assert_eq!(figures(&candidate), [1, 1, 1, 0], "{candidate}");
        assert_eq!((&candidate["primaries"], &candidate["previewed"]), (&json!(1), &json!(1)));
        let examples = candidate["examples"].as_array().unwrap().iter();
        let examples: Vec<(&str, &str)> = examples
            .map(|one| (one["action"].as_str().unwrap(), one["object"].as_str().unwrap()))
            .collect();
        let expected = [
            ("Delete", "ConfigMap ns/b"),
            ("Change", "ConfigMap ns/a"),
            ("Create", "ConfigMap ns/c"),
        ];
        assert_eq!(examples, expected);
        stage.pass(600).await;
        assert_eq!(stage.writes(), [""; 0]);

        // And the active revision goes on.
        stage.apply(&config_map("a", "drift")).await;
        stage.settle().await;
        assert_eq!(stage.writes(), ["apply configmaps/a"]);
        assert_eq!(stage.config_map("a").await.unwrap()["data"]["value"], "1");

        // When it is approved, then exactly these three changes are made.
        approve(&stage).await;
        stage.until_module("Ready", "True", "RevisionActive").await;
        stage.settle().await;
        let writes = stage.writes();
        let expected =
            [("apply configmaps/a", 1), ("apply configmaps/c", 1), ("delete configmaps/b", 1)];
        assert_eq!(count(&writes), expected.into());
        assert_eq!(stage.module().await["status"]["digest"], candidate["digest"]);
    });
}

#[test]
fn candidate_that_does_no_harm_is_activated_and_does_what_its_preview_showed() {
    block_on(async {
        // Given a module with two primaries.
        let of_spec = Script::new();
        let stage = Stage::start(of_spec.clone()).await;
        stage.create("one", &complete(&desired(&[config_map("a", "1")]))).await;
        stage.create("two", &complete(&desired(&[config_map("b", "1")]))).await;
        stage.settle().await;
        stage.writes();

        // When a candidate makes another object for one of them.
        let more = desired(&[config_map("a", "1"), config_map("c", "1")]);
        stage.push(&of_spec.when("\"name\":\"one\"", &more)).await;
        stage.until_module("Ready", "True", "RevisionActive").await;
        stage.settle().await;

        // Then it is active without an approval, and has written what its preview showed.
        let module = stage.module().await;
        let preview = &module["status"]["preview"];
        assert_eq!(figures(preview), [1, 0, 0, 0], "{preview}");
        assert_eq!(preview["digest"], module["status"]["digest"]);
        assert_eq!(preview["primaries"], 2);
        assert_eq!(stage.writes(), ["apply configmaps/c"]);
    });
}

#[test]
fn candidate_for_another_kind_is_held_while_primaries_of_the_active_revision_exist() {
    block_on(async {
        // Given a module with a primary and two objects.
        let stage = stage_with_two_objects(json!({})).await;

        // When somebody puts a guest for another kind into its ConfigMap.
        stage.push(&desiring(&[]).with("primary", namespaces())).await;
        let message = stage.until_module("Held", "True", "WouldAbandonPrimaries").await;

        // Then the active revision goes on, and the condition says what would happen.
        let expected = format!("it reconciles Namespace and not Script of {GROUP}");
        assert!(message.contains(&expected), "{message}");
        stage.apply(&config_map("a", "drift")).await;
        stage.settle().await;
        assert_eq!(stage.writes(), ["apply configmaps/a"]);

        // When the host starts again, then it is still held, though nothing was read before.
        let active = stage.module().await["status"]["digest"].clone();
        let stage = stage.stop().await.start().await;
        stage.pass(120).await;
        stage.until_module("Held", "True", "WouldAbandonPrimaries").await;
        assert_eq!(stage.module().await["status"]["digest"], active);
    });
}

#[test]
fn user_returns_to_the_guest_of_another_kind_without_an_approval() {
    block_on(async {
        // Given a module with a primary, whose guest another one for Namespaces has replaced.
        let stage = stage_with_two_objects(json!({"strategy": "Immediate"})).await;
        let before = stage.module().await["status"]["digest"].clone();
        stage.push(&desiring(&[]).with("primary", namespaces())).await;
        stage.pass(10).await;
        assert_ne!(stage.module().await["status"]["digest"], before);

        // When a user returns to the earlier one, then it is active, whatever there is of the kind.
        stage.merge_module(&json!({"spec": {"rollout": {"strategy": "Guarded"}}})).await;
        stage.push(&desiring(&[config_map("a", "1"), config_map("b", "1")])).await;
        stage.pass(10).await;
        assert_eq!(stage.module().await["status"]["digest"], before);
    });
}

#[test]
fn candidate_that_deletes_no_more_than_the_module_permits_is_activated() {
    block_on(async {
        // Given a module that permits one deletion.
        let stage = stage_with_two_objects(json!({"maxDeletions": 1})).await;

        // When a candidate would delete two, then it is held.
        stage.push(&desiring(&[])).await;
        stage.until_module("Held", "True", "WouldDelete").await;
        assert_eq!(stage.writes(), [""; 0]);

        // When another one would delete one, then that one is active.
        stage.push(&desiring(&[config_map("a", "1")])).await;
        stage.until_module("Ready", "True", "RevisionActive").await;
        stage.settle().await;
        assert_eq!(stage.writes(), ["delete configmaps/b"]);
    });
}

#[test]
fn candidate_that_fails_is_held_only_for_primaries_that_do_not_fail_now() {
    block_on(async {
        // Given a module with a primary that fails.
        let failure = json!({"reason": "NoLicence", "message": "Buy one.", "permanent": true});
        let stage = Stage::start(Script::new()).await;
        stage.create("broken", &json!({ "failed": failure })).await;
        stage.until_primary("broken", "Synced", "False", "NoLicence").await;

        // When a candidate fails for it too, then the candidate is activated.
        let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}});
        let refused = desired(&[secret]);
        stage.push(&Script::new().when("\"failed\":", &refused)).await;
        stage.until_module("Ready", "True", "RevisionActive").await;
        assert_eq!(figures(&stage.module().await["status"]["preview"]), [0, 0, 0, 0]);
        let active = stage.module().await["status"]["digest"].clone();

        // When one fails for another primary, which does not fail.
        stage.create("sound", &complete(&desired(&[config_map("a", "1")]))).await;
        stage.until_primary("sound", "Synced", "True", "Applied").await;
        stage.settle().await;
        stage.writes();
        stage.push(&Script::new().when("\"spec\":{", &refused)).await;
        let message = stage.until_module("Held", "True", "WouldFail").await;

        // Then the candidate is held, names that primary and why, and has written nothing.
        assert!(message.contains("Script ns/sound"), "{message}");
        let module = stage.module().await;
        assert_eq!(figures(&module["status"]["candidate"]), [0, 0, 0, 1]);
        let example = &module["status"]["candidate"]["examples"][0];
        assert!(example["fields"][0].as_str().unwrap().starts_with("UndeclaredKind"), "{example}");
        assert_eq!(module["status"]["digest"], active);
        assert_eq!(stage.writes(), [""; 0]);
        stage.until_primary("sound", "Synced", "True", "Applied").await;
    });
}

#[test]
fn candidate_that_meets_a_foreign_object_is_held() {
    block_on(async {
        // Given a module with a primary, and a ConfigMap of an administrator.
        let stage = stage_with_two_objects(json!({})).await;
        stage.apply(&config_map("c", "theirs")).await;

        // When a candidate desires an object of that name.
        let all = ["a", "b", "c"].map(|name| config_map(name, "1"));
        stage.push(&desiring(&all)).await;
        let message = stage.until_module("Held", "True", "WouldFail").await;

        // Then it is held for the conflict that the primary would have.
        assert!(message.contains("Script ns/one"), "{message}");
        let example = stage.module().await["status"]["candidate"]["examples"][0].clone();
        assert!(example["fields"][0].as_str().unwrap().starts_with("Conflict: "), "{example}");
        assert_eq!(stage.writes(), [""; 0]);

        // When the foreign object goes, and the candidate is approved, then it agrees.
        stage.api().delete("/api/v1/namespaces/ns/configmaps/c").await.unwrap();
        approve(&stage).await;
        stage.until_module("Ready", "True", "RevisionActive").await;
        stage.settle().await;
        assert_eq!(stage.writes(), ["apply configmaps/c"]);
    });
}

#[test]
fn candidate_that_gives_up_a_kind_is_held_for_the_objects_of_it() {
    block_on(async {
        // Given a module that has made an object of another kind.
        let kind = json!({"apiVersion": format!("{GROUP}/v1"), "kind": "Extra", "plural": "extras",
            "scope": "Namespaced"});
        let object = json!({"apiVersion": format!("{GROUP}/v1"), "kind": "Extra",
            "metadata": {"name": "e"}, "spec": {}});
        let script = desiring(&[config_map("a", "1"), object]).owns(json!({ "kind": kind }));
        let stage = Setup::new(script)
            .object(definition("Extra", "extras"))
            .may(&["get", "list", "watch", "create", "patch", "delete"], GROUP, "extras")
            .start()
            .await;
        stage.create("one", &json!({})).await;
        stage.until_primary("one", "Synced", "True", "Applied").await;
        stage.writes();

        // When a candidate does not declare that kind.
        stage.push(&desiring(&[config_map("a", "1")])).await;
        let message = stage.until_module("Held", "True", "WouldDelete").await;

        // Then it is held for the object.
        assert!(message.contains("Extra ns/e"), "{message}");
        assert_eq!(figures(&stage.module().await["status"]["candidate"]), [0, 0, 1, 0]);

        // When it is approved, then the object is deleted, and the status names the kind no more.
        approve(&stage).await;
        stage.until_module("Ready", "True", "RevisionActive").await;
        stage.settle().await;
        assert_eq!(stage.writes(), ["delete extras/e"]);
        let kinds = stage.module().await["status"]["ownedKinds"].clone();
        assert_eq!(kinds.as_array().unwrap().len(), 1, "{kinds}");
        assert_eq!(kinds[0]["kind"], "ConfigMap");
    });
}

#[test]
fn revision_that_fails_soon_after_its_activation_is_rolled_back() {
    block_on(async {
        // Given a revision that was activated, since it does not fail for the present primaries.
        let stage = Stage::start(Script::new()).await;
        stage.create("one", &complete(&desired(&[config_map("a", "1")]))).await;
        stage.settle().await;
        let before = stage.module().await["status"]["digest"].clone();
        let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}});
        stage.push(&Script::new().when("\"value\":\"2\"", &desired(&[secret]))).await;
        stage.until_module("Ready", "True", "RevisionActive").await;
        let after = stage.module().await["status"]["digest"].clone();
        assert_ne!(after, before);

        // When a primary changes within the rollback window, and the revision fails for it.
        stage.set_spec("one", &complete(&desired(&[config_map("a", "2")]))).await;
        stage.settle().await;

        // Then the revision before is active again and reconciles the primary, and the other one is
        // rejected.
        let status = stage.module().await["status"].clone();
        assert_eq!(status["digest"], before);
        assert_eq!(status["rejected"][0]["digest"], after, "{status:#}");
        stage.until_primary("one", "Synced", "True", "Applied").await;
        assert_eq!(stage.config_map("a").await.unwrap()["data"]["value"], "2");
    });
}

#[test]
fn revision_stays_active_when_a_primary_is_too_large_for_its_status() {
    block_on(async {
        // Given a revision in its rollback window.
        let stage = Stage::start(Script::new()).await;
        stage.create("one", &complete(&desired(&[config_map("a", "1")]))).await;
        stage.settle().await;
        stage.push(&Script::new().when("never", &desired(&[]))).await;
        stage.until_module("Ready", "True", "RevisionActive").await;
        let active = stage.module().await["status"]["digest"].clone();

        // When the API server refuses the status of a changed primary as too large.
        stage.proxy().intercept(|sent| match sent.line().as_str() {
            "apply scripts/one/status" => refusal(413, "RequestEntityTooLarge", "limit is 3145728"),
            _ => Reply::Forward,
        });
        stage.set_spec("one", &complete(&desired(&[config_map("b", "2")]))).await;
        stage.pass(60).await;

        // Then the objects are applied, and the revision stays active.
        assert_eq!(stage.config_map("b").await.unwrap()["data"]["value"], "2");
        let status = stage.module().await["status"].clone();
        assert_eq!(status["digest"], active, "{status:#}");
    });
}

#[test]
fn candidate_that_is_rejected_is_not_tried_again_by_another_host() {
    block_on(async {
        // Given a candidate that is held.
        let stage = stage_with_two_objects(json!({})).await;
        let active = stage.module().await["status"]["digest"].clone();
        stage.push(&desiring(&[config_map("a", "1")])).await;
        stage.until_module("Held", "True", "WouldDelete").await;

        // When it is rejected, and the host restarts.
        let digest = stage.module().await["status"]["candidate"]["digest"].clone();
        annotate(&stage, "innkeeper.dev/reject", &digest).await;
        stage.settle().await;
        let stage = stage.stop().await.start().await;
        stage.pass(120).await;

        // Then the revision before is active, and both objects are there.
        let module = stage.module().await;
        assert_eq!(module["status"]["digest"], active);
        assert_eq!(module["status"]["candidate"]["state"], "Rejected");
        assert!(stage.config_map("a").await.is_some() && stage.config_map("b").await.is_some());
        let writes = stage.writes();
        assert!(!writes.iter().any(|line| line.contains("configmaps")), "{writes:?}");

        // When it is approved, then it is active after all.
        annotate(&stage, "innkeeper.dev/reject", &Value::Null).await;
        annotate(&stage, "innkeeper.dev/approve", &digest).await;
        stage.until_module("Ready", "True", "RevisionActive").await;
        stage.settle().await;
        assert_eq!(stage.module().await["status"]["digest"], digest);
        assert_eq!(stage.config_map("b").await, None);
    });
}

#[test]
fn candidate_that_would_recreate_an_object_is_held() {
    block_on(async {
        // Given a module that has made an immutable ConfigMap.
        let immutable = |value: &str| {
            let mut object = config_map("a", value);
            object["immutable"] = json!(true);
            let policies = ["recreate-when-immutable"];
            Script::new().when("\"kind\":\"Script\"", &desired_with(&object, &policies))
        };
        let stage = Stage::start(immutable("1")).await;
        stage.create("one", &json!({})).await;
        stage.settle().await;
        let uid = stage.config_map("a").await.unwrap()["metadata"]["uid"].clone();

        // When a candidate desires another value, which a recreate brings about.
        stage.push(&immutable("2")).await;
        stage.pass(60).await;

        // Then the object is not deleted without an approval.
        assert_eq!(stage.config_map("a").await.unwrap()["metadata"]["uid"], uid);
        stage.until_module("Held", "True", "WouldDelete").await;
    });
}

#[test]
fn candidate_that_would_recreate_the_objects_of_a_group_is_held_with_all_of_them() {
    block_on(async {
        // Given a guest with 12 objects in a group that recreates them.
        let desiring = |value: &str| {
            let objects: Vec<Value> = (0..12)
                .map(|number| json!({"object": config_map(&format!("m{number}"), value), "updateGroup": "maps"}))
                .collect();
            let groups = json!([{"name": "maps", "method": "RollingRecreate"}]);
            let document = json!({"objects": objects, "updateGroups": groups});
            Script::new().when("\"kind\":\"Script\"", &document)
        };
        let stage = Setup::new(desiring("1")).start().await;
        stage.create("one", &json!({})).await;
        stage.until_primary("one", "Synced", "True", "Applied").await;
        stage.settle().await;
        stage.writes();

        // When a candidate would change all of them, then it is held, and nothing was written.
        stage.push(&desiring("2")).await;
        stage.until_module("Held", "True", "WouldDelete").await;
        let candidate = stage.module().await["status"]["candidate"].clone();
        assert_eq!(candidate["deletes"], 12, "{candidate}");
        assert_eq!(stage.writes(), [""; 0]);

        // When it is approved, then all are recreated.
        approve(&stage).await;
        stage.pass(60).await;
        stage.until_primary("one", "Synced", "True", "Applied").await;
        let lines = stage.writes();
        assert_eq!(lines.iter().filter(|line| line.starts_with("delete")).count(), 12);
    });
}

#[test]
fn change_that_no_dry_run_can_check_counts_as_a_recreate() {
    block_on(async {
        // Given a module with an object that its guest lets the host recreate, on an API server
        // that answers no dry run.
        let script = |value: &str| {
            let object = config_map("a", value);
            let policies = ["recreate-when-immutable"];
            Script::new().when("\"kind\":\"Script\"", &desired_with(&object, &policies))
        };
        let stage = Stage::start(script("1")).await;
        stage.create("one", &json!({})).await;
        stage.settle().await;
        stage.proxy().intercept(|sent| {
            if sent.query.contains("dryRun=All") {
                refusal(400, "BadRequest", "admission webhook does not support dry run")
            } else {
                Reply::Forward
            }
        });

        // When a candidate changes the object, then it is held.
        stage.push(&script("2")).await;
        stage.until_module("Held", "True", "WouldDelete").await;
        assert_eq!(stage.config_map("a").await.unwrap()["data"]["value"], "1");
    });
}

#[test]
fn strategy_of_the_module_decides_whether_a_candidate_waits() {
    block_on(async {
        // Given a module whose every revision needs an approval.
        let stage = stage_with_two_objects(json!({})).await;
        let set = async |rollout: Value| {
            stage.merge_module(&json!({"spec": {"rollout": rollout}})).await;
            stage.settle().await;
        };
        set(json!({"strategy": "Manual"})).await;

        // When a candidate would change nothing, then it is held all the same.
        let same = desiring(&[config_map("a", "1"), config_map("b", "1")]);
        stage.push(&same.with("version", json!("1.1.0"))).await;
        stage.until_module("Held", "True", "NeedsApproval").await;
        approve(&stage).await;
        stage.until_module("Ready", "True", "RevisionActive").await;

        // When at most 40 % may change, then a candidate that changes one of two is held.
        set(json!({"strategy": "Guarded", "maxChangedPercent": 40})).await;
        stage.push(&desiring(&[config_map("a", "2"), config_map("b", "1")])).await;
        stage.until_module("Held", "True", "WouldExceedChangeLimit").await;
        assert_eq!(stage.writes(), [""; 0]);

        // When the strategy is Immediate, then a candidate that deletes is activated.
        set(json!({"strategy": "Immediate"})).await;
        stage.push(&desiring(&[config_map("a", "3")])).await;
        stage.until_module("Ready", "True", "RevisionActive").await;
        stage.settle().await;
        assert_eq!(stage.config_map("b").await, None);
    });
}
