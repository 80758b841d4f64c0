//! Fields that nobody reads: their changes run no guest, and nothing that the host or a guest needs
//! is missed.

use innkeeper_lab::Content;
use serde_json::{Value, json};

use crate::support::{GROUP, Script, Setup, Stage, block_on, complete, definition, desired};

/// Who may do everything with a kind.
const ALL: [&str; 6] = ["get", "list", "watch", "create", "patch", "delete"];

const EXTRA: &str = "/apis/test.example.dev/v1/namespaces/ns/extras/e";

/// The number of changes of a flood.
const FLOOD: usize = 50;

/// The object that the guest desires.
fn extra() -> Value {
    json!({"apiVersion": format!("{GROUP}/v1"), "kind": "Extra", "metadata": {"name": "e"},
        "spec": {"size": 1}})
}

/// The fields of a kind, as a document of the contract has them.
fn read_fields(kind: &str, fields: &Value) -> Value {
    json!({"apiVersion": format!("{GROUP}/v1"), "kind": kind, "fields": fields})
}

/// An answer of a guest that read these fields of its object.
fn reporting(fields: &Value) -> Value {
    let mut answer = desired(&[extra()]);
    answer["readFields"] =
        json!([read_fields("Script", &json!({"f:spec": {}})), read_fields("Extra", fields)]);
    answer
}

fn script() -> Script {
    Script::new().owns(json!({"kind": {"apiVersion": format!("{GROUP}/v1"), "kind": "Extra",
        "plural": "extras", "scope": "Namespaced"}}))
}

/// A cluster where the guest has run for one primary with this answer, and its object has a status:
/// a guest that reads a field of the status sees whether there is a status at all.
async fn stage(script: Script, answer: &Value) -> Stage {
    let setup = Setup::new(script).may(&ALL, GROUP, "extras");
    let stage = setup.object(definition("Extra", "extras")).start().await;
    stage.create("one", &complete(answer)).await;
    stage.settle().await;
    assert_eq!(stage.get(EXTRA).await.unwrap()["spec"]["size"], 1);
    runs_for_status(&stage, &json!({"noise": "none yet"})).await;
    stage.writes();
    stage
}

/// Lays a merge patch over the status of the guest's object, as its controller. Gives how often the
/// guest ran after it.
async fn runs_for_status(stage: &Stage, status: &Value) -> u64 {
    let before = stage.runs();
    let change = json!({ "status": status });
    let path = format!("{EXTRA}/status");
    stage.api().send("PATCH", &path, Content::MergePatch, &change).await.unwrap();
    stage.settle().await;
    stage.runs() - before
}

/// How often the guest runs while a controller writes fields of the status again and again.
async fn runs_for_flood(stage: &Stage) -> u64 {
    let mut runs = 0;
    for number in 0..FLOOD {
        runs += runs_for_status(stage, &json!({"noise": number, "more": {"noise": number}})).await;
    }
    runs
}

#[test]
fn status_flood_that_nobody_reads_runs_no_guest() {
    block_on(async {
        // Given guests that say which fields they read, in the manifest and in each answer.
        let of_answer = stage(script(), &reporting(&json!({"f:status": {"f:phase": {}}}))).await;
        let declared = json!([read_fields("Extra", &json!({"f:status": {"f:phase": {}}}))]);
        let of_manifest = stage(script().with("readFields", declared), &desired(&[extra()])).await;
        for stage in [of_answer, of_manifest] {
            // When a controller writes other fields of the status, then no guest runs.
            assert_eq!(runs_for_flood(&stage).await, 0);

            // When it writes the field that the guest reads, then the guest runs.
            assert_eq!(runs_for_status(&stage, &json!({"phase": "Up"})).await, 1);
            assert_eq!(runs_for_flood(&stage).await, 0);
        }
    });
}

#[test]
fn status_flood_runs_a_guest_that_may_read_everything() {
    block_on(async {
        let mut groups = reporting(&json!({"f:spec": {}}));
        groups["updateGroups"] = json!([{"name": "all", "method": "RollingInPlace"}]);
        groups["objects"][0]["updateGroup"] = json!("all");
        let mut unknown = reporting(&json!({"f:spec": {}}));
        unknown["readFields"][1]["kind"] = json!("Extras");
        let mut without_primary = reporting(&json!({"f:spec": {}}));
        without_primary["readFields"].as_array_mut().unwrap().remove(0);
        for answer in [
            // No word about fields.
            desired(&[extra()]),
            // The whole object.
            reporting(&json!({})),
            // The host itself reads the status of objects in update groups.
            groups,
            // A kind that the manifest does not name, or no word about the primary: a mistake.
            unknown,
            without_primary,
        ] {
            let stage = stage(script(), &answer).await;
            assert!(runs_for_flood(&stage).await >= FLOOD as u64, "{answer}");
        }
    });
}

#[test]
fn what_the_host_needs_runs_the_guest_whatever_it_reads() {
    block_on(async {
        // Given a guest that reads nothing of its object.
        let stage = stage(script(), &reporting(&json!({"f:status": {"f:phase": {}}}))).await;

        // When its readiness changes, then the guest runs, and the primary is not ready.
        let stalled =
            json!({"conditions": [{"type": "Stalled", "status": "True", "message": "m"}]});
        assert_eq!(runs_for_status(&stage, &stalled).await, 1);
        stage.until_primary("one", "Ready", "False", "Failed").await;
        assert_eq!(runs_for_status(&stage, &json!({"conditions": []})).await, 1);
        stage.writes();

        // When another client changes a field that the host applied, then the host repairs it.
        let mut drifted = extra();
        drifted["spec"]["size"] = json!(2);
        stage.apply(&drifted).await;
        stage.settle().await;
        assert_eq!(stage.writes(), ["apply extras/e"]);
        assert_eq!(stage.get(EXTRA).await.unwrap()["spec"]["size"], 1);

        // When its owner reference or its digest goes, then the host writes them again.
        for metadata in [
            json!({"ownerReferences": null}),
            json!({"annotations": {"innkeeper.dev/applied": null}}),
        ] {
            stage.merge_at(EXTRA, &json!({ "metadata": metadata })).await;
            stage.settle().await;
            assert_eq!(stage.writes(), ["apply extras/e"], "{metadata}");
        }

        // When it is deleted, then the host creates it.
        stage.api().delete(EXTRA).await.unwrap();
        stage.settle().await;
        assert_eq!(stage.writes(), ["apply extras/e"]);
    });
}

#[test]
fn field_that_another_manager_gives_up_is_merged_whatever_the_guest_reads() {
    block_on(async {
        // Given a guest that reads nothing of an object, and merges a field that a user holds.
        let mut theirs = extra();
        theirs["metadata"]["namespace"] = json!("ns");
        theirs["spec"]["size"] = json!(5);
        let setup = Setup::new(script()).may(&ALL, GROUP, "extras");
        let stage = setup.object(definition("Extra", "extras")).object(theirs).start().await;
        let mut answer = reporting(&json!({"f:status": {"f:phase": {}}}));
        answer["objects"] = json!([{"object": extra(), "policy": ["merge"]}]);
        stage.create("one", &complete(&answer)).await;
        stage.until_primary("one", "Synced", "False", "FieldConflict").await;
        stage.settle().await;

        // When the user gives up the field, whose value stays, then the host merges its own.
        let managed = json!([{"manager": "user", "operation": "Update", "fieldsType": "FieldsV1",
            "apiVersion": format!("{GROUP}/v1"), "fieldsV1": {"f:spec": {".": {}}}}]);
        stage.merge_at(EXTRA, &json!({"metadata": {"managedFields": managed}})).await;
        stage.settle().await;
        assert_eq!(stage.get(EXTRA).await.unwrap()["spec"]["size"], 1);
    });
}

#[test]
fn primary_runs_for_every_change_of_it() {
    block_on(async {
        // Given a guest that says that it reads one field of its primary.
        let mut answer = reporting(&json!({"f:spec": {}}));
        answer["readFields"][0]["fields"] = json!({"f:spec": {"f:complete": {}}});
        let stage = stage(script(), &answer).await;

        // When an annotation, another field, or the status of the primary changes, then it runs.
        for change in
            [json!({"metadata": {"annotations": {"a": "b"}}}), json!({"spec": {"other": 1}})]
        {
            let before = stage.runs();
            stage.merge("one", &change).await;
            stage.settle().await;
            assert_eq!(stage.runs() - before, 1, "{change}");
        }
    });
}

#[test]
fn fields_of_an_earlier_revision_do_not_count_for_the_next() {
    block_on(async {
        // Given a guest that does not read the noise of its object.
        let answer = reporting(&json!({"f:status": {"f:phase": {}}}));
        let stage = stage(script(), &answer).await;
        assert_eq!(runs_for_flood(&stage).await, 0);

        // When a revision is active that says nothing about the fields that it reads.
        let reads_all = script().when("\"kind\":\"Script\"", &desired(&[extra()]));
        stage.push(&reads_all).await;
        stage.until_decided().await;
        stage.settle().await;

        // Then it runs for each change.
        assert!(runs_for_flood(&stage).await >= FLOOD as u64);
    });
}

#[test]
fn guest_gets_the_fields_of_its_manifest_only() {
    block_on(async {
        // Given a guest that would desire another object if it saw a field outside its mask.
        let mut other = extra();
        other["metadata"]["name"] = json!("seen");
        let declared = json!([
            read_fields("Extra", &json!({"f:status": {"f:phase": {}}})),
            read_fields("Script", &json!({"f:spec": {}})),
        ]);
        let script = script()
            .with("readFields", declared)
            .when("secret noise", &desired(&[extra(), other.clone()]))
            .when("visible phase", &desired(&[extra(), other]));
        let stage = stage(script, &desired(&[extra()])).await;

        // When fields outside the mask have the text, then it does not see them.
        runs_for_status(&stage, &json!({"noise": "secret noise"})).await;
        stage.annotate("one", "note", &json!("secret noise")).await;
        stage.settle().await;
        assert_eq!(stage.writes(), [""; 0]);

        // When a field of the mask has its text, then it does.
        runs_for_status(&stage, &json!({"phase": "visible phase"})).await;
        assert!(stage.writes().contains(&"apply extras/seen".to_owned()));
    });
}

#[test]
fn guest_reads_the_readiness_of_an_object_whose_status_it_does_not_get() {
    block_on(async {
        for (function, name) in [("get", "e"), ("list", "")] {
            // Given a guest that gets the spec of its object only.
            let mut other = extra();
            other["metadata"]["name"] = json!("seen");
            let seen = desired(&[extra(), other]);
            let declared = json!([read_fields("Extra", &json!({"f:spec": {}}))]);
            let script = script()
                .with("readFields", declared)
                .reads_with(function, ["test.example.dev/v1", "Extra", "ns", name])
                .when_read("why it stalls", &seen);
            let stage = stage(script, &desired(&[extra()])).await;

            // When the status says that the object has stalled, then the guest reads why.
            let stalled =
                json!([{"type": "Stalled", "status": "True", "message": "why it stalls"}]);
            runs_for_status(&stage, &json!({ "conditions": stalled })).await;
            assert!(stage.writes().contains(&"apply extras/seen".to_owned()), "{function}");
        }
    });
}

#[test]
fn malformed_fields_are_refused_with_the_path() {
    block_on(async {
        let setup = Setup::new(script()).may(&ALL, GROUP, "extras");
        let stage = setup.object(definition("Extra", "extras")).start().await;
        let mut twice = reporting(&json!({}));
        twice["readFields"][1] = twice["readFields"][0].clone();
        for (name, answer, expected) in [
            (
                "a",
                reporting(&json!({"status": {}})),
                "readFields[1].fields: `.` has the element `status`",
            ),
            ("b", twice, "readFields[1]: test.example.dev/v1 Script is named twice"),
        ] {
            stage.create(name, &complete(&answer)).await;
            let message = stage.until_primary(name, "Synced", "False", "MalformedReadFields").await;
            assert!(message.contains(expected), "{message}");
            assert!(stage.get(EXTRA).await.is_none());
        }
    });
}
