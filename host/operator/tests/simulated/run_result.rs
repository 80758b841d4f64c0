//! The result of the last run in the condition `Running`, and what it costs in writes.

use serde_json::{Value, json};

use crate::support::{
    Script, Setup, Stage, block_on, complete, config_map, definition, primary_path,
};

/// An hour, in seconds.
const HOUR: u64 = 3_600;

/// The path of the definition of the primaries.
const DEFINITION: &str =
    "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/scripts.test.example.dev";

/// A stage whose Module has these fields, with the primary `one` that has a ConfigMap and is at
/// rest.
async fn idle(script: Script, spec: Value, more: &Value) -> Stage {
    let stage = Setup::new(script).spec(spec).start().await;
    let mut desired = json!({"objects": [{"object": config_map("cm", "1")}]});
    desired.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    stage.create("one", &complete(&desired)).await;
    stage.pass(120).await;
    stage.writes();
    stage
}

/// The condition `Running` of the primary `one`; null if there is none.
async fn running(stage: &Stage) -> Value {
    let primary = stage.primary("one").await;
    let conditions = primary["status"]["conditions"].as_array().cloned().unwrap_or_default();
    conditions.into_iter().find(|one| one["type"] == "Running").unwrap_or_default()
}

/// How many writes the module makes in a time. All are of the status.
async fn writes_in(stage: &Stage, seconds: u64) -> usize {
    stage.writes();
    stage.pass(seconds).await;
    let writes = stage.writes();
    assert!(writes.iter().all(|write| write == "apply scripts/one/status"), "{writes:?}");
    writes.len()
}

#[test]
fn idle_primary_writes_nothing_in_an_hour_by_default() {
    block_on(async {
        // Given a primary that its period runs each 90 s.
        let spec = json!({"runResult": "OnChange", "resyncPeriod": "90s"});
        let stage = idle(Script::new(), spec, &json!({})).await;
        let before = running(&stage).await;
        assert_eq!(before["status"], "True");
        assert_eq!(before["reason"], "Successful");
        assert_eq!(before["message"], "Awaiting next reconciliation");
        let result = &before["ansibleResult"];
        assert_eq!(
            [&result["ok"], &result["changed"], &result["skipped"], &result["failures"]],
            [1, 1, 0, 0]
        );

        // When an hour passes, then the guest has run 40 times and nothing is written.
        let runs = stage.runs();
        assert_eq!(writes_in(&stage, HOUR).await, 0);
        assert_eq!(stage.runs() - runs, 40);
        assert_eq!(running(&stage).await, before);
    });
}

#[test]
fn each_period_renews_the_result_once_and_no_faster_than_its_minimum() {
    block_on(async {
        // An hour of the period in the source; ten minutes of one below the minimum of 10 s.
        for (period, seconds, runs, writes) in [("90s", HOUR, 40, 40), ("1s", 600, 600, 60)] {
            let spec = json!({"runResult": "EachPeriod", "resyncPeriod": period});
            let stage = idle(Script::new(), spec, &json!({})).await;
            let before = running(&stage).await;
            let runs_before = stage.runs();
            assert_eq!(writes_in(&stage, seconds).await, writes, "{period}");
            // The host's own writes wake nothing.
            assert_eq!(stage.runs() - runs_before, runs, "{period}");

            let after = running(&stage).await;
            assert_ne!(after["ansibleResult"]["completion"], before["ansibleResult"]["completion"]);
            assert_eq!(after["ansibleResult"]["changed"], 0, "{period}");
            assert_eq!(after["lastTransitionTime"], before["lastTransitionTime"], "{period}");
        }
    });
}

#[test]
fn guests_requeue_time_adds_no_renewals_and_an_event_makes_none() {
    block_on(async {
        // Given a guest that asks to run again after 1 s, and a period of 90 s.
        let spec = json!({"runResult": "EachPeriod", "resyncPeriod": "90s"});
        let stage = idle(Script::new(), spec, &json!({"requeueAfterSeconds": 1})).await;
        let runs = stage.runs();
        assert_eq!(writes_in(&stage, 900).await, 10);
        assert_eq!(stage.runs() - runs, 900);

        // Given a primary without any period.
        let spec = json!({"runResult": "EachPeriod"});
        let stage = idle(Script::new(), spec, &json!({})).await;
        let runs = stage.runs();
        for second in 0..20 {
            stage.annotate("one", "example.com/touched", &json!(second.to_string())).await;
            stage.pass(30).await;
        }
        assert!(stage.runs() - runs >= 20, "each change runs the guest");
        assert_eq!(stage.writes(), [""; 0]);
    });
}

#[test]
fn repaired_object_is_counted_as_changed_and_a_refused_one_as_a_failure() {
    block_on(async {
        let stage = idle(Script::new(), json!({"runResult": "OnChange"}), &json!({})).await;
        let before = running(&stage).await;

        // When another client changes the object, then the run that repairs it is shown.
        stage.pass(60).await;
        stage.apply(&config_map("cm", "2")).await;
        stage.pass(10).await;
        let after = running(&stage).await;
        assert_eq!(after["ansibleResult"]["changed"], 1);
        assert_ne!(after["ansibleResult"]["completion"], before["ansibleResult"]["completion"]);

        // When the module may write no ConfigMaps, then a repair fails.
        stage.revoke("patch", "configmaps").await;
        stage.apply(&config_map("cm", "3")).await;
        stage.until_primary("one", "Running", "False", "Failed").await;
        assert_eq!(running(&stage).await["ansibleResult"]["failures"], 1);
    });
}

#[test]
fn writes_that_a_pause_holds_back_are_skipped() {
    block_on(async {
        let stage = idle(Script::new(), json!({"runResult": "OnChange"}), &json!({})).await;
        stage.annotate("one", "innkeeper.dev/paused", &json!("true")).await;
        stage.apply(&config_map("cm", "2")).await;
        stage.until_primary("one", "Synced", "False", "Paused").await;
        stage.pass(10).await;
        let result = running(&stage).await["ansibleResult"].clone();
        assert_eq!([&result["ok"], &result["skipped"], &result["failures"]], [0, 1, 0]);
    });
}

#[test]
fn result_disappears_with_manage_status_false_and_comes_back() {
    block_on(async {
        let stage = idle(Script::new(), json!({"runResult": "OnChange"}), &json!({})).await;
        assert!(running(&stage).await["ansibleResult"].is_object());
        stage.merge_module(&json!({"spec": {"manageStatus": false}})).await;
        stage.pass(10).await;
        assert_eq!(running(&stage).await, Value::Null);
        stage.merge_module(&json!({"spec": {"manageStatus": true}})).await;
        stage.until_primary("one", "Running", "True", "Successful").await;
    });
}

#[test]
fn schema_that_declares_the_result_asks_for_it_and_one_that_prunes_it_does_not_get_it() {
    block_on(async {
        // Given a schema that preserves unknown members, and a Module that asks for nothing.
        let stage = idle(Script::new(), json!({}), &json!({})).await;
        assert_eq!(running(&stage).await, Value::Null);

        // When the schema declares the result, then the next run shows it.
        let with = |condition: &Value| {
            let mut definition = definition("Script", "scripts");
            let version = &mut definition["spec"]["versions"][0];
            let status = &mut version["schema"]["openAPIV3Schema"]["properties"]["status"];
            status["properties"]["conditions"]["items"] = condition.clone();
            json!({"spec": {"versions": definition["spec"]["versions"]}})
        };
        let mut condition = json!({"type": "object", "required": ["type"], "properties": {}});
        for member in ["type", "status", "reason", "message", "lastTransitionTime"] {
            condition["properties"][member] = json!({"type": "string"});
        }
        condition["properties"]["observedGeneration"] = json!({"type": "integer"});
        let pruning = condition.clone();
        condition["properties"]["ansibleResult"] =
            json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
        stage.merge_at(DEFINITION, &with(&condition)).await;
        stage.pass(30).await;
        stage.annotate("one", "example.com/touched", &json!("1")).await;
        stage.until_primary("one", "Running", "True", "Successful").await;
        assert_eq!(running(&stage).await["ansibleResult"]["ok"], 1);

        // When it prunes the result, then not even a Module that asks for it gets a part.
        stage.merge_at(DEFINITION, &with(&pruning)).await;
        stage.merge_module(&json!({"spec": {"runResult": "EachPeriod"}})).await;
        stage.pass(30).await;
        stage.create("two", &complete(&json!({}))).await;
        stage.until_primary("two", "Synced", "True", "Applied").await;
        let two = stage.primary("two").await["status"]["conditions"].to_string();
        assert!(!two.contains("Running"), "{two}");
    });
}

#[test]
fn result_of_the_original_operator_is_replaced_with_one_write() {
    block_on(async {
        // Given a primary with the status that an Ansible operator left.
        let stage = idle(Script::new(), json!({"manageStatus": false}), &json!({})).await;
        let status = json!({"status": {"conditions": [{"type": "Running", "status": "True",
            "reason": "Successful", "message": "Awaiting next reconciliation",
            "lastTransitionTime": "2020-05-27T05:38:41Z",
            "ansibleResult": {"ok": 2, "changed": 0, "skipped": 0, "failures": 0,
                "completion": "2020-05-27T05:38:46.113867"}}]}});
        let path = format!("{}/status", primary_path("one"));
        stage.merge_at(&path, &status).await;
        stage.pass(10).await;
        stage.writes();

        // When the Module asks for the result.
        let asks = json!({"spec": {"manageStatus": true, "runResult": "OnChange"}});
        stage.merge_module(&asks).await;
        stage.pass(60).await;

        // Then one write has replaced it, which keeps the time of the transition.
        assert_eq!(stage.writes(), ["apply scripts/one/status"]);
        let running = running(&stage).await;
        assert_eq!(running["lastTransitionTime"], "2020-05-27T05:38:41Z");
        assert_eq!(running["ansibleResult"]["ok"], 1);
        let completion = running["ansibleResult"]["completion"].as_str().unwrap();
        assert!(completion.ends_with('Z'), "{completion}");
    });
}
