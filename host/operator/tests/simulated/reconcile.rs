//! Rounds of one primary: what is written when, and what ends them.

use std::time::Duration;

use serde_json::json;

use crate::support::{
    GROUP, Reply, Script, Setup, Stage, block_on, complete, config_map, count, definition, desired,
    refusal,
};

/// Who may do everything with a kind.
const ALL: [&str; 6] = ["get", "list", "watch", "create", "patch", "delete"];

/// A kind in the tests' group, owned by the guest.
fn extra() -> serde_json::Value {
    json!({"apiVersion": format!("{GROUP}/v1"), "kind": "Extra", "plural": "extras",
        "scope": "Namespaced"})
}

fn extra_object() -> serde_json::Value {
    json!({"apiVersion": format!("{GROUP}/v1"), "kind": "Extra", "metadata": {"name": "e"},
        "spec": {"size": 1}})
}

fn extra_path() -> String {
    format!("/apis/{GROUP}/v1/namespaces/ns/extras/e")
}

#[test]
fn reconcile_sends_three_requests_for_a_new_primary_two_for_a_change_and_none_afterwards() {
    block_on(async {
        // Given a module that serves.
        let stage = Stage::start(Script::new()).await;

        // When a primary with two objects is created.
        let spec = |a: &str| complete(&desired(&[config_map("a", a), config_map("b", "1")]));
        stage.create("one", &spec("1")).await;
        stage.settle().await;

        // Then each object is written once, and the status.
        let writes = stage.writes();
        let expected =
            [("apply configmaps/a", 1), ("apply configmaps/b", 1), ("apply scripts/one/status", 1)];
        assert_eq!(count(&writes), expected.into());

        // When its guest desires another value of one object.
        stage.set_spec("one", &spec("2")).await;
        stage.settle().await;

        // Then that object is written, and the status for its observedGeneration.
        assert_eq!(stage.writes(), ["apply configmaps/a", "apply scripts/one/status"]);
        assert_eq!(stage.config_map("a").await.unwrap()["data"], json!({"value": "2"}));
        let primary = stage.primary("one").await;
        assert_eq!(primary["status"]["observedGeneration"], primary["metadata"]["generation"]);

        // When ten minutes pass, then nothing is written.
        stage.pass(600).await;
        assert_eq!(stage.writes(), [""; 0]);
    });
}

#[test]
fn status_is_written_again_after_a_conflict_although_the_primary_has_not_changed() {
    block_on(async {
        // Given an API server that refuses one status for a reason of its own.
        let stage = Stage::start(Script::new()).await;
        let mut is_refused = false;
        stage.proxy().intercept(move |sent| {
            if is_refused || !sent.path.ends_with("/scripts/one/status") {
                return Reply::Forward;
            }
            is_refused = true;
            refusal(409, "Conflict", "a webhook is busy")
        });

        // When a primary is created.
        stage.create("one", &complete(&desired(&[config_map("a", "1")]))).await;

        // Then the host writes the status later.
        stage.until_primary("one", "Synced", "True", "Applied").await;
        stage.settle().await;
        let expected = [("apply configmaps/a", 1), ("apply scripts/one/status", 2)];
        assert_eq!(count(&stage.writes()), expected.into());
    });
}

#[test]
fn reconcile_ends_after_ten_rounds_and_backs_off_when_the_guest_never_converges() {
    block_on(async {
        // Given a guest that desires another value after each write.
        let script = Script::new()
            .when(r#"{"value":"odd"}"#, &desired(&[config_map("a", "even")]))
            .when(r#"{"value":"even"}"#, &desired(&[config_map("a", "odd")]))
            .when("\"kind\":\"Script\"", &desired(&[config_map("a", "odd")]));
        let stage = Stage::start(script).await;

        // When a primary is created.
        stage.create("one", &json!({})).await;
        let message = stage.until_primary("one", "Synced", "False", "NotConverging").await;

        // Then the first reconcile writes ten times, and reports.
        let writes = stage.writes();
        let expected = [("apply configmaps/a", 10), ("apply scripts/one/status", 1)];
        assert_eq!(count(&writes), expected.into());
        assert!(message.contains("10 rounds did not converge"), "{message}");

        // And it is tried again after 1, 2, 4, 8, 16 and 32 s: six times in 80 s, and not more.
        stage.pass(80).await;
        let writes = stage.writes();
        assert_eq!(count(&writes), [("apply configmaps/a", 60)].into());
        let events = stage.events("one").await;
        let warnings = events.iter().filter(|(reason, _)| reason == "NotConverging").count();
        assert_eq!(warnings, 1, "{events:?}");
    });
}

#[test]
fn paused_primary_is_not_written_for_until_it_is_deleted() {
    block_on(async {
        // Given a paused primary of a guest with a finalizer.
        let stage = Stage::start(Script::new().finalizes()).await;
        let spec = |value: &str| json!({"complete": desired(&[config_map("a", value)]), "finalizing": {"finalized": true}});
        stage.create("one", &spec("1")).await;
        stage.settle().await;
        stage.annotate("one", "innkeeper.dev/paused", &json!("true")).await;
        stage.settle().await;
        stage.writes();

        // When its spec changes, and its object is changed.
        stage.set_spec("one", &spec("2")).await;
        stage.apply(&config_map("a", "drift")).await;
        stage.settle().await;

        // Then only the status is written, and it names what is left undone.
        let message = stage.until_primary("one", "Synced", "False", "Paused").await;
        assert!(message.contains("ConfigMap ns/a"), "{message}");
        assert!(stage.writes().iter().all(|line| line == "apply scripts/one/status"));
        assert_eq!(stage.config_map("a").await.unwrap()["data"]["value"], "drift");

        // When it is deleted, then the deletion goes on.
        stage.delete("one").await;
        stage.settle().await;
        assert_eq!(stage.writes(), ["delete configmaps/a", "patch scripts/one"]);
        assert!(!stage.has_primary("one").await);
    });
}

#[test]
fn paused_module_writes_nothing_but_finalizes_deleted_primaries() {
    block_on(async {
        // Given a module with a primary, then paused.
        let stage = Stage::start(Script::new().finalizes()).await;
        let spec = |value: &str| json!({"complete": desired(&[config_map("a", value)]), "finalizing": {"finalized": true}});
        stage.create("one", &spec("1")).await;
        stage.settle().await;
        stage.merge_module(&json!({"spec": {"paused": true}})).await;
        stage.settle().await;
        stage.writes();

        // When a primary changes and another is created.
        stage.set_spec("one", &spec("2")).await;
        stage.create("two", &complete(&desired(&[config_map("b", "1")]))).await;
        stage.settle().await;

        // Then nothing is written, no status either.
        assert_eq!(stage.writes(), [""; 0]);
        assert_eq!(stage.config_map("b").await, None);

        // When the first is deleted, then its deletion goes on.
        stage.delete("one").await;
        stage.settle().await;
        assert!(!stage.has_primary("one").await);
        assert_eq!(stage.config_map("a").await, None);

        // When the module is no longer paused, then the second is reconciled.
        stage.merge_module(&json!({"spec": {"paused": false}})).await;
        stage.until_primary("two", "Synced", "True", "Applied").await;
        assert!(stage.config_map("b").await.is_some());
    });
}

#[test]
fn object_that_is_refused_as_malformed_is_sent_once() {
    block_on(async {
        // Given a primary whose object the API server refuses for good.
        let stage = Stage::start(Script::new()).await;
        let mut malformed = config_map("a", "1");
        malformed["bogus"] = json!(1);
        let spec = complete(&desired(&[malformed]));
        stage.create("one", &spec).await;
        let message = stage.until_primary("one", "Synced", "False", "Malformed").await;
        assert!(message.contains("bogus"), "{message}");
        assert_eq!(count(&stage.writes())["apply configmaps/a"], 1);

        // When the primary runs again, then the host remembers the answer.
        stage.annotate("one", "example.com/touched", &json!("yes")).await;
        stage.pass(60).await;
        assert_eq!(stage.writes(), [""; 0]);

        // When another primary desires the same, then the object is sent for that one.
        stage.create("two", &spec).await;
        stage.until_primary("two", "Synced", "False", "Malformed").await;
        assert_eq!(count(&stage.writes())["apply configmaps/a"], 1);
    });
}

#[test]
fn primary_of_the_same_name_and_another_uid_begins_with_a_fresh_state() {
    block_on(async {
        // Given a primary with a problem, whose status takes two seconds to write.
        let stage = Setup::new(Script::new()).object(config_map("a", "theirs")).start().await;
        let mut is_first = true;
        stage.proxy().intercept(move |sent| {
            let is_status = sent.path.ends_with("/status") && sent.path.contains("/scripts/");
            if is_status && std::mem::take(&mut is_first) {
                return Reply::Delay(Duration::from_secs(2));
            }
            Reply::Forward
        });
        let spec = complete(&desired(&[config_map("a", "1")]));
        stage.create("one", &spec).await;
        stage.pass(1).await;
        let before = stage.events("one").await;
        assert_eq!(before.len(), 1, "{before:?}");

        // When the primary is deleted and created again during that time, so that the next round
        // finds another uid under the name.
        let uid = stage.primary("one").await["metadata"]["uid"].clone();
        stage.delete("one").await;
        stage.create("one", &spec).await;
        assert_ne!(stage.primary("one").await["metadata"]["uid"], uid);
        stage.until_primary("one", "Synced", "False", "Conflict").await;

        // Then what was reported about the primary before counts for nothing: the new one has a
        // status and an Event of its own.
        assert_eq!(stage.events("one").await.len(), 2);
    });
}

#[test]
fn optional_kind_that_is_not_served_is_reported_and_its_object_made_when_it_is() {
    block_on(async {
        // Given a guest with an optional kind that the cluster does not serve.
        let script = Script::new().owns(json!({"kind": extra(), "optional": true}));
        let stage = Setup::new(script).may(&ALL, GROUP, "extras").start().await;

        // When a primary desires an object of it.
        stage.create("one", &complete(&desired(&[extra_object(), config_map("a", "1")]))).await;
        let message = stage.until_primary("one", "KindsAvailable", "False", "NotServed").await;

        // Then the others are applied, and the primary is in sync.
        assert!(message.contains("Extra"), "{message}");
        stage.until_primary("one", "Synced", "True", "Applied").await;
        assert!(stage.config_map("a").await.is_some());

        // When the kind is served, then the object is made.
        stage.apply(&definition("Extra", "extras")).await;
        stage.until_primary("one", "KindsAvailable", "True", "AllKindsServed").await;
        assert!(stage.get(&extra_path()).await.is_some());
    });
}

#[test]
fn required_kind_that_is_not_served_is_a_problem_of_its_object_and_stops_pruning() {
    block_on(async {
        // Given a guest with a required kind that the cluster does not serve, and two objects.
        let script = Script::new().owns(json!({"kind": extra()}));
        let stage = Setup::new(script).may(&ALL, GROUP, "extras").start().await;
        let both = desired(&[config_map("a", "1"), config_map("b", "1")]);
        stage.create("one", &complete(&both)).await;
        stage.until_primary("one", "Synced", "True", "Applied").await;

        // When an object of the kind is desired, and one of the others no longer.
        stage.set_spec("one", &complete(&desired(&[extra_object(), config_map("a", "2")]))).await;
        let message = stage.until_primary("one", "Synced", "False", "NotServed").await;
        stage.settle().await;

        // Then the condition names it, the other is applied, and nothing is pruned.
        assert!(message.contains("Extra ns/e"), "{message}");
        assert_eq!(stage.config_map("a").await.unwrap()["data"]["value"], "2");
        assert!(stage.config_map("b").await.is_some());

        // When the kind is served, then the object is made and the other pruned.
        stage.apply(&definition("Extra", "extras")).await;
        stage.until_primary("one", "Synced", "True", "Applied").await;
        stage.settle().await;
        assert!(stage.get(&extra_path()).await.is_some());
        assert_eq!(stage.config_map("b").await, None);
    });
}

#[test]
fn guest_is_not_run_until_its_account_may_read_the_secrets_that_the_module_grants() {
    block_on(async {
        // Given a module that grants a Secret, whose account may list Secrets and not get them.
        let secret = json!({"apiVersion": "v1", "kind": "Secret",
            "metadata": {"name": "token", "namespace": "ns"}, "data": {"key": "c2VjcmV0"}});
        let kind = json!({"apiVersion": "v1", "kind": "Secret", "plural": "secrets", "scope": "Namespaced"});
        let stage = Setup::new(Script::new().with("reads", json!([kind])))
            .spec(json!({"secretNames": ["token"]}))
            .may(&["list", "watch"], "", "secrets")
            .object(secret)
            .start()
            .await;

        // When a primary is created.
        stage.create("one", &complete(&desired(&[config_map("a", "1")]))).await;
        let message = stage.until_primary("one", "Synced", "False", "Forbidden").await;

        // Then the guest is not run, nothing but the status is written, and the message says why.
        assert!(message.contains("Secret ns/token"), "{message}");
        assert_eq!(stage.runs(), 0);
        assert_eq!(stage.writes(), ["apply scripts/one/status"]);

        // When the account gets the right, then the guest runs.
        stage.grant(&["get"], "", "secrets").await;
        stage.until_primary("one", "Synced", "True", "Applied").await;
        assert!(stage.runs() > 0);
        assert!(stage.config_map("a").await.is_some());
    });
}

#[test]
fn trap_of_the_guest_writes_nothing_but_the_status_and_is_retried_with_backoff() {
    block_on(async {
        // Given a primary in sync.
        let stage = Stage::start(Script::new()).await;
        stage.create("one", &complete(&desired(&[config_map("a", "1")]))).await;
        stage.settle().await;
        stage.writes();

        // When its guest traps from then on.
        stage.set_spec("one", &json!({"trap": true})).await;
        let message = stage.until_primary("one", "Synced", "False", "GuestTrapped").await;
        stage.pass(80).await;

        // Then nothing is deleted, and the guest is run again after 1, 2, 4, 8, 16 and 32 s.
        assert!(message.starts_with("The guest failed: "), "{message}");
        assert_eq!(stage.writes(), ["apply scripts/one/status"]);
        assert!(stage.config_map("a").await.is_some());
        assert_eq!(stage.failures("GuestTrapped"), 7);

        // When it no longer does, then the primary is in sync at once.
        stage.set_spec("one", &complete(&desired(&[config_map("a", "2")]))).await;
        stage.pass(1).await;
        assert_eq!(stage.config_map("a").await.unwrap()["data"]["value"], "2");
    });
}

#[test]
fn output_that_breaks_the_contract_is_refused_as_a_whole_and_not_retried() {
    block_on(async {
        // Given a primary in sync.
        let stage = Stage::start(Script::new()).await;
        stage.create("one", &complete(&desired(&[config_map("a", "1")]))).await;
        stage.settle().await;
        stage.writes();
        let before = stage.runs();

        // When its guest desires an object of a kind that it has not declared, and a changed one.
        let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}});
        stage.set_spec("one", &complete(&desired(&[config_map("a", "2"), secret]))).await;
        let message = stage.until_primary("one", "Synced", "False", "UndeclaredKind").await;
        stage.pass(80).await;

        // Then nothing of it is applied, and only a change runs the guest again.
        assert!(message.contains("Secret"), "{message}");
        assert_eq!(stage.writes(), ["apply scripts/one/status"]);
        assert_eq!(stage.config_map("a").await.unwrap()["data"]["value"], "1");
        assert_eq!(stage.runs() - before, 1);
    });
}
