//! Rollbacks by a user and by the host: what holds them, what they write first, and what they never
//! activate.

use serde_json::{Value, json};

use crate::support::{
    Reply, Script, Sent, Stage, block_on, complete, config_map, count, desired, refusal,
};

/// A stage with a primary whose active revision has made the objects `a` and `new`; the revision
/// before it desires `a` only.
async fn stage_with_a_new_object() -> Stage {
    let desiring = |objects: &[Value]| Script::new().when("\"kind\":\"Script\"", &desired(objects));
    let stage = Stage::start(desiring(&[config_map("a", "1")])).await;
    stage.create("one", &json!({})).await;
    stage.until_primary("one", "Synced", "True", "Applied").await;
    stage.push(&desiring(&[config_map("a", "1"), config_map("new", "1")])).await;
    stage.settle().await;
    stage.until_module("Ready", "True", "RevisionActive").await;
    assert!(stage.config_map("new").await.is_some());
    stage.writes();
    stage
}

async fn status(stage: &Stage) -> Value {
    stage.module().await["status"].clone()
}

/// Rejects the active revision and makes an earlier one the source, as `innkeeper modules rollback`
/// does.
async fn roll_back(stage: &Stage, to: &Value) {
    let active = status(stage).await["digest"].clone();
    annotate(stage, &json!(""), &active).await;
    let source = json!({"name": to["configMap"], "key": "guest.wasm"});
    stage.merge_module(&json!({"spec": {"source": {"configMap": source}}})).await;
    stage.settle().await;
}

async fn annotate(stage: &Stage, approve: &Value, reject: &Value) {
    let annotations = json!({"innkeeper.dev/approve": approve, "innkeeper.dev/reject": reject});
    stage.merge_module(&json!({"metadata": {"annotations": annotations}})).await;
}

#[test]
fn rollback_that_would_delete_is_held_and_a_second_one_does_not_go_forward() {
    block_on(async {
        // Given a module with two revisions, of which the active one has made one object more.
        let stage = stage_with_a_new_object().await;
        let before = status(&stage).await;
        let (first, second) = (before["previous"].clone(), before["digest"].clone());

        // When the user rolls it back, then its deletion is previewed and held.
        roll_back(&stage, &first).await;
        let message = stage.until_module("Held", "True", "WouldDelete").await;
        assert!(message.contains("ConfigMap ns/new"), "{message}");
        assert_eq!(status(&stage).await["digest"], second);
        assert_eq!(stage.writes(), [""; 0]);

        // When it is approved, then the host deletes the object, and no revision is left to return
        // to: the other one is rejected.
        annotate(&stage, &first["digest"], &json!("")).await;
        stage.until_module("Ready", "True", "RevisionActive").await;
        stage.settle().await;
        assert_eq!(count(&stage.writes()), [("delete configmaps/new", 1)].into());
        let after = status(&stage).await;
        assert_eq!((&after["digest"], &after["previous"]), (&first["digest"], &Value::Null));
        assert_eq!(after["history"][0]["digest"], second);
        assert_eq!(after["rejected"][0]["digest"], second);

        // When the user makes the rejected revision the source, then it does not become active.
        let forward = after["history"][0].clone();
        stage
            .merge_module(
                &json!({"spec": {"source": {"configMap": {"name": forward["configMap"]}}}}),
            )
            .await;
        stage.until_module("Ready", "False", "Rejected").await;
        assert_eq!(status(&stage).await["digest"], first["digest"]);
        assert_eq!(stage.config_map("new").await, None);

        // When the user approves it, then it is active.
        annotate(&stage, &second, &json!("")).await;
        stage.until_module("Ready", "True", "RevisionActive").await;
        stage.settle().await;
        assert!(stage.config_map("new").await.is_some());
        assert_eq!(status(&stage).await["previous"]["digest"], first["digest"]);
    });
}

#[test]
fn rollback_that_the_user_rejects_leaves_the_active_revision_as_it_was() {
    block_on(async {
        // Given a rollback that is held.
        let stage = stage_with_a_new_object().await;
        let before = status(&stage).await;
        roll_back(&stage, &before["previous"]).await;
        stage.until_module("Held", "True", "WouldDelete").await;

        // When the user rejects it, and the host restarts.
        annotate(&stage, &json!(""), &before["previous"]["digest"]).await;
        stage.settle().await;
        let stage = stage.stop().await.start().await;
        stage.pass(60).await;

        // Then the active revision goes on, and only the other one is rejected.
        let after = status(&stage).await;
        assert_eq!(after["digest"], before["digest"]);
        assert_eq!(after["rejected"].as_array().map(Vec::len), Some(1), "{after:#}");
        assert_eq!(after["rejected"][0]["digest"], before["previous"]["digest"]);
        assert!(stage.config_map("new").await.is_some());
    });
}

#[test]
fn rolled_back_revision_is_not_tried_again_by_a_host_that_finds_its_old_approval() {
    block_on(async {
        // Given a revision that a user approved, and that failed in its rollback window.
        let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}});
        let complete = |value: &str| complete(&desired(&[config_map("a", value)]));
        let stage = Stage::start(Script::new()).await;
        stage.create("one", &complete("1")).await;
        stage.settle().await;
        let first = status(&stage).await["digest"].clone();
        stage.push(&Script::new().when("\"value\":\"2\"", &desired(&[secret]))).await;
        stage.until_module("Ready", "True", "RevisionActive").await;
        let second = status(&stage).await["digest"].clone();
        annotate(&stage, &second, &json!("")).await;
        stage.set_spec("one", &complete("2")).await;
        stage.settle().await;
        assert_eq!(status(&stage).await["digest"], first);

        // When the host restarts, then the revision stays rejected.
        let stage = stage.stop().await.start().await;
        stage.pass(60).await;
        let after = status(&stage).await;
        assert_eq!(after["digest"], first);
        assert_eq!(after["candidate"]["state"], "Rejected", "{after:#}");
    });
}

/// A stage whose second revision fails for the primary `one` as soon as its spec changes, and the
/// digests of the two revisions.
async fn stage_with_a_failing_revision() -> (Stage, [Value; 2]) {
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}});
    let stage = Stage::start(Script::new()).await;
    stage.create("one", &complete(&desired(&[config_map("a", "1")]))).await;
    stage.settle().await;
    let first = status(&stage).await["digest"].clone();
    stage.push(&Script::new().when("\"value\":\"2\"", &desired(&[secret]))).await;
    stage.until_module("Ready", "True", "RevisionActive").await;
    let second = status(&stage).await["digest"].clone();
    stage.settle().await;
    stage.proxy().take();
    (stage, [first, second])
}

/// Whether the request writes that a revision is active.
fn is_decision(sent: &Sent, digest: &Value) -> bool {
    sent.path.ends_with("/modules/scripts/status") && sent.body["status"]["digest"] == *digest
}

#[test]
fn rollback_of_the_host_is_written_before_the_previous_revision_writes() {
    block_on(async {
        let (stage, [first, second]) = stage_with_a_failing_revision().await;

        // When the active revision fails.
        stage.set_spec("one", &complete(&desired(&[config_map("a", "2")]))).await;
        stage.until_module("Ready", "False", "RolledBack").await;
        stage.settle().await;

        // Then one write of the status has the whole decision, and the previous revision writes
        // after it.
        let sent = stage.proxy().take();
        let decisions: Vec<usize> =
            (0..sent.len()).filter(|at| is_decision(&sent[*at], &first)).collect();
        let write = sent.iter().position(|one| one.line() == "apply configmaps/a").unwrap();
        assert!(decisions[0] < write, "{decisions:?} {write}");
        assert_eq!(sent[decisions[0]].body["status"]["rejected"][0]["digest"], second);
        assert_eq!(stage.config_map("a").await.unwrap()["data"]["value"], "2");
    });
}

#[test]
fn rollback_whose_decision_is_lost_or_refused_is_neither_forgotten_nor_repeated() {
    block_on(async {
        for is_stored in [false, true] {
            // Given a host whose write of the decision is refused, or is stored without an answer.
            let (stage, [first, second]) = stage_with_a_failing_revision().await;
            let to = first.clone();
            stage.proxy().intercept(move |sent| match is_decision(sent, &to) {
                true if is_stored => Reply::Lose,
                true => refusal(500, "InternalError", "the disk is full"),
                false => Reply::Forward,
            });
            stage.set_spec("one", &complete(&desired(&[config_map("a", "2")]))).await;
            // The host finds a stored decision when it tries again.
            stage.pass(if is_stored { 1 } else { 20 }).await;

            // Then the previous revision has written nothing.
            let decided = if is_stored { &first } else { &second };
            assert_eq!(status(&stage).await["digest"], *decided);
            assert_eq!(stage.config_map("a").await.unwrap()["data"]["value"], "1");
            assert_eq!(stage.writes().iter().filter(|one| one.contains("configmaps")).count(), 0);

            // When the host dies, and its next writes succeed.
            let stage = if is_stored {
                let stopped = stage.stop().await;
                stopped.proxy().forward();
                stopped.start().await
            } else {
                stage.proxy().forward();
                stage
            };
            stage.pass(60).await;

            // Then the previous revision is active, once, and the failing one is rejected.
            let after = status(&stage).await;
            assert_eq!((&after["digest"], &after["history"][0]["digest"]), (&first, &second));
            assert_eq!(after["rejected"].as_array().map(Vec::len), Some(1), "{after:#}");
            assert_eq!(after["rejected"][0]["digest"], second);
            assert_eq!(after["rejected"][0]["reason"], "RolledBack");
            assert_eq!(stage.config_map("a").await.unwrap()["data"]["value"], "2");
            let decisions = stage.proxy().take();
            assert!(!decisions.iter().any(|one| is_decision(one, &second)), "it went forward");
        }
    });
}

/// What a guest desires with an object of Innkeeper itself, which it merges into.
fn desiring_reserved() -> Value {
    let reserved = json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "theirs", "namespace": "innkeeper-system"}});
    let mut desired = desired(&[config_map("a", "2")]);
    let objects = desired["objects"].as_array_mut().unwrap();
    objects.push(json!({"object": reserved, "policy": ["merge"]}));
    desired
}

/// A stage whose module may write into other namespaces, with a primary of the given spec and a
/// second revision, which desires an object of Innkeeper itself once the spec has the value 2. The
/// digests of the two revisions.
async fn stage_with_a_reserving_revision(first: Script) -> (Stage, [Value; 2]) {
    let stage = Stage::start(first).await;
    stage.merge_module(&json!({"spec": {"allowCrossNamespace": true}})).await;
    stage.create("one", &complete(&desired(&[config_map("a", "1")]))).await;
    stage.settle().await;
    let first = status(&stage).await["digest"].clone();
    let second = Script::new().when("\"value\":\"2\"", &desiring_reserved());
    stage.push(&second.with("version", json!("2.0.0"))).await;
    stage.until_module("Ready", "True", "RevisionActive").await;
    stage.settle().await;
    let second = status(&stage).await["digest"].clone();
    assert_ne!(first, second);
    (stage, [first, second])
}

#[test]
fn revision_that_desires_a_reserved_object_is_rolled_back() {
    block_on(async {
        // Given a second revision in its rollback window.
        let (stage, [first, second]) = stage_with_a_reserving_revision(Script::new()).await;

        // When it desires an object of Innkeeper itself.
        stage.set_spec("one", &complete(&desired(&[config_map("a", "2")]))).await;

        // Then the host returns to the first revision, which does not.
        let message = stage.until_module("Ready", "False", "RolledBack").await;
        assert!(message.contains("ConfigMap innkeeper-system/theirs"), "{message}");
        stage.settle().await;
        let after = status(&stage).await;
        assert_eq!((&after["digest"], &after["rejected"][0]["digest"]), (&first, &second));
        stage.until_primary("one", "Synced", "True", "Applied").await;
    });
}

#[test]
fn revision_that_desires_a_reserved_object_is_not_rolled_back_if_both_do() {
    block_on(async {
        // Given two revisions that desire an object of Innkeeper itself from the same data.
        let first = Script::new().when("\"value\":\"2\"", &desiring_reserved());
        let (stage, [_, second]) = stage_with_a_reserving_revision(first).await;

        // When the data comes.
        stage.set_spec("one", &complete(&desired(&[config_map("a", "2")]))).await;
        stage.until_primary("one", "Synced", "False", "ReservedObject").await;
        stage.pass(30).await;

        // Then a rollback would not help: the revision stays active, the Module says why, and the
        // other object is applied.
        stage.until_module("Healthy", "False", "ReservedObject").await;
        assert_eq!(status(&stage).await["digest"], second);
        assert_eq!(stage.config_map("a").await.unwrap()["data"]["value"], "2");
    });
}
