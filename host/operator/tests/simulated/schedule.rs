//! When a primary runs again: after a time that the guest, the Module or the primary gives, and
//! after a change of what the guest has read.

use std::time::Duration;

use bytes::Bytes;
use serde_json::json;

use crate::support::{
    NAMESPACE, Reply, Script, Setup, Stage, block_on, complete, config_map, config_map_path,
};

/// The annotation by which a primary has a resync period of its own.
const RESYNC: &str = "innkeeper.dev/resync-period";

#[test]
fn primary_runs_again_after_the_time_that_its_guest_asks_for() {
    block_on(async {
        // Given two primaries, of which one's guest asks to be run again after 30 s.
        let stage = Stage::start(Script::new()).await;
        stage.create("calm", &complete(&json!({}))).await;
        stage.settle().await;
        stage.create("busy", &complete(&json!({"requeueAfterSeconds": 30}))).await;
        stage.pass(1).await;
        let before = stage.runs();
        stage.writes();

        // When ten minutes pass.
        stage.pass(600).await;

        // Then it has run 20 times, and nothing has been written.
        assert_eq!(stage.runs() - before, 20);
        assert_eq!(stage.writes(), [""; 0]);

        // When the guest asks no more, then the primary runs no more.
        stage.set_spec("busy", &complete(&json!({}))).await;
        stage.pass(60).await;
        let before = stage.runs();
        stage.pass(600).await;
        assert_eq!(stage.runs(), before);
    });
}

#[test]
fn primary_that_failed_permanently_runs_again_only_after_the_time_in_its_failure() {
    block_on(async {
        // Given a guest that fails permanently.
        let failed = |more: serde_json::Value| {
            let mut failure =
                json!({"reason": "NoLicence", "message": "Buy one.", "permanent": true});
            failure.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            json!({ "failed": failure })
        };
        let stage = Stage::start(Script::new()).await;
        stage.create("one", &failed(json!({}))).await;
        let message = stage.until_primary("one", "Synced", "False", "NoLicence").await;
        assert_eq!(message, "Buy one.");
        let before = stage.runs();

        // When ten minutes pass, then it does not run.
        stage.pass(600).await;
        assert_eq!(stage.runs(), before);

        // When its failure has a time, then it runs after that time, and not with backoff.
        stage.set_spec("one", &failed(json!({"requeueAfterSeconds": 60}))).await;
        stage.pass(1).await;
        let before = stage.runs();
        stage.pass(600).await;
        assert_eq!(stage.runs() - before, 10);
    });
}

#[test]
fn resync_period_of_the_guest_gives_way_to_the_modules_and_that_to_the_primarys() {
    block_on(async {
        // Given a guest with a resync period of 20 s.
        let stage = Stage::start(Script::new().with("resyncSeconds", json!(20))).await;
        stage.create("one", &complete(&json!({}))).await;
        stage.pass(1).await;
        let runs = async |seconds| {
            let before = stage.runs();
            stage.pass(seconds).await;
            stage.runs() - before
        };
        assert_eq!(runs(600).await, 30);

        // When the Module has one of 60 s, then that one is used.
        stage.merge_module(&json!({"spec": {"resyncPeriod": "60s"}})).await;
        stage.pass(60).await;
        assert_eq!(runs(600).await, 10);

        // When the primary has one of 2 m, then that one is used.
        stage.annotate("one", RESYNC, &json!("2m")).await;
        stage.pass(60).await;
        assert_eq!(runs(600).await, 5);

        // When it is 0 s, then the primary does not run.
        stage.annotate("one", RESYNC, &json!("0s")).await;
        stage.pass(60).await;
        assert_eq!(runs(600).await, 0);
        let events = stage.events("one").await;
        assert!(events.is_empty(), "{events:?}");
    });
}

#[test]
fn invalid_resync_period_of_a_primary_is_an_event_and_leaves_the_modules_in_force() {
    block_on(async {
        // Given a module with a resync period of 60 s.
        let setup = Setup::new(Script::new()).spec(json!({"resyncPeriod": "60s"}));
        let stage = setup.start().await;
        stage.create("one", &complete(&json!({}))).await;
        stage.pass(1).await;

        // When a primary gives a period that is no duration.
        stage.annotate("one", RESYNC, &json!("often")).await;
        stage.pass(1).await;

        // Then an Event names the annotation, and the primary runs each 60 s.
        let events = stage.events("one").await;
        let [(reason, message)] = events.as_slice() else { panic!("{events:?}") };
        assert_eq!(reason, "InvalidResyncPeriod");
        assert!(message.contains(RESYNC) && message.contains("often"), "{message}");
        let before = stage.runs();
        stage.pass(600).await;
        assert_eq!(stage.runs() - before, 10);
        assert_eq!(stage.events("one").await.len(), 1, "the Event is counted, not repeated");
    });
}

#[test]
fn primary_runs_again_when_an_object_that_its_guest_read_appears_changes_and_goes() {
    block_on(async {
        // Given a guest that reads the ConfigMap cm and reports what it contains.
        let status = |value: &str| json!({"status": {"read": value}});
        let script = Script::new()
            .reads()
            .when_read("\"value\":\"1\"", &status("1"))
            .when_read("\"value\":\"2\"", &status("2"))
            .when("\"kind\":\"Script\"", &status("none"));
        let stage = Stage::start(script).await;
        let read = async || {
            stage.pass(2).await;
            stage.primary("one").await["status"]["read"].clone()
        };
        stage.create("one", &json!({})).await;
        assert_eq!(read().await, "none");

        // When the ConfigMap appears, changes and is deleted, then the status follows.
        stage.apply(&config_map("cm", "1")).await;
        assert_eq!(read().await, "1");
        stage.apply(&config_map("cm", "2")).await;
        assert_eq!(read().await, "2");
        stage.api().delete(&config_map_path("cm")).await.unwrap();
        assert_eq!(read().await, "none");

        // When another ConfigMap changes, then the guest is not run.
        let before = stage.runs();
        stage.apply(&config_map("other", "1")).await;
        stage.pass(5).await;
        assert_eq!(stage.runs(), before);
    });
}

#[test]
fn primary_runs_again_when_an_object_changes_during_the_first_run_that_reads_it() {
    block_on(async {
        // Given a guest that reads the ConfigMap cm, and a module that grants a Secret, so that
        // each run begins with a request.
        let status = |value: &str| json!({"status": {"read": value}});
        let script = Script::new()
            .with(
                "reads",
                json!([{"apiVersion": "v1", "kind": "Secret", "plural": "secrets", "scope": "Namespaced"}]),
            )
            .reads()
            .when_read("\"value\":\"old\"", &status("old"))
            .when_read("\"value\":\"new\"", &status("new"));
        let secret = json!({"apiVersion": "v1", "kind": "Secret",
            "metadata": {"name": "token", "namespace": NAMESPACE}, "data": {"key": "c2VjcmV0"}});
        let stage = Setup::new(script)
            .spec(json!({"secretNames": ["token"]}))
            .may(&["get", "list", "watch"], "", "secrets")
            .object(secret)
            .object(config_map("cm", "old"))
            .start()
            .await;

        // When the ConfigMap changes after the first run has begun, and before the guest is called.
        let simulator = stage.simulator().clone();
        let mut is_changed = false;
        stage.proxy().intercept(move |sent| {
            if is_changed || !sent.path.ends_with("/secrets/token") {
                return Reply::Forward;
            }
            is_changed = true;
            let change = json!({"data": {"value": "new"}}).to_string();
            let request = http::Request::patch(config_map_path("cm"))
                .header("content-type", "application/merge-patch+json")
                .body(Bytes::from(change));
            assert_eq!(simulator.request(request.unwrap()).status(), 200);
            // Time for the watch to deliver the change.
            Reply::Delay(Duration::from_millis(100))
        });
        stage.create("one", &json!({})).await;
        stage.pass(5).await;

        // Then the first run saw the old object, and a second one the new object.
        assert_eq!(stage.runs(), 2);
        assert_eq!(stage.primary("one").await["status"]["read"], "new");
    });
}

#[test]
fn all_primaries_run_once_more_when_the_parameters_of_the_module_change() {
    block_on(async {
        // Given a module with parameters and two primaries.
        let script = Script::new()
            .with("parametersSchema", json!({"type": "object"}))
            .when("\"parameters\":{\"mode\":\"new\"}", &json!({"status": {"mode": "new"}}))
            .when("\"kind\":\"Script\"", &json!({"status": {"mode": "old"}}));
        let stage = Setup::new(script).spec(json!({"parameters": {"mode": "old"}})).start().await;
        for name in ["one", "two"] {
            stage.create(name, &json!({})).await;
            stage.until_primary(name, "Synced", "True", "Applied").await;
        }
        stage.settle().await;
        stage.writes();
        let before = stage.runs();

        // When the parameters change.
        stage.merge_module(&json!({"spec": {"parameters": {"mode": "new"}}})).await;
        stage.settle().await;

        // Then each primary is run once, and its status written once.
        assert_eq!(stage.runs() - before, 2);
        let mut writes = stage.writes();
        writes.sort();
        assert_eq!(writes, ["apply scripts/one/status", "apply scripts/two/status"]);
        assert_eq!(stage.primary("two").await["status"]["mode"], "new");
    });
}
