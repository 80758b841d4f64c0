//! Which guests a preview runs.

use serde_json::{Value, json};

use crate::support::{Script, Setup, Stage, block_on, complete, config_map, desired, desired_with};

/// More primaries than a preview names changes.
const NAMES: [&str; 12] = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l"];

/// A stage whose module has made an object for each of these primaries.
async fn stage_with(script: &Script, names: &[&str], spec: &Value) -> Stage {
    let stage = Setup::new(script.clone()).spec(spec.clone()).start().await;
    for name in names {
        stage.create(name, &complete(&desired(&[config_map(name, "1")]))).await;
    }
    stage.settle().await;
    stage
}

/// How many runs of guests the preview of a candidate takes that desires something else for one of
/// three primaries, and is held for this reason.
async fn runs_with_one(other: &[Value], spec: &Value, reason: &str) -> u64 {
    let script = Script::new();
    let stage = stage_with(&script, &["one", "two", "three"], spec).await;
    stage.merge_module(&json!({"spec": {"rollout": {"strategy": "Manual"}}})).await;
    stage.settle().await;
    let before = stage.runs();
    stage.push(&script.when("\"name\":\"one\"", &desired(other))).await;
    stage.until_module("Held", "True", reason).await;
    stage.runs() - before
}

/// What the status shows of the preview of a held candidate that would change all objects of a
/// guest, and how many runs of guests the preview took.
async fn preview_of_changes(script: &Script, policies: &[&str], mut spec: Value) -> (Value, u64) {
    spec["rollout"] = json!({"maxChangedPercent": 0});
    let stage = stage_with(script, &NAMES, &spec).await;
    let before = stage.runs();
    let changed = NAMES.iter().fold(script.clone(), |script, name| {
        let primary = format!("\"name\":\"{name}\"");
        script.when(&primary, &desired_with(&config_map(name, "2"), policies))
    });
    stage.push(&changed).await;
    stage.until_module("Held", "True", "WouldExceedChangeLimit").await;
    let mut candidate = stage.module().await["status"]["candidate"].clone();
    for member in ["since", "digest"] {
        candidate.as_object_mut().unwrap().remove(member);
    }
    (candidate, stage.runs() - before)
}

#[test]
fn preview_runs_the_active_revision_only_where_its_answer_counts_and_is_not_known() {
    block_on(async {
        let more = [config_map("one", "1"), config_map("more", "1")];
        let (nothing, secrets) = (json!({}), json!({"secretNames": ["token"]}));
        // The candidate runs for each primary. Nothing differs: nothing to compare.
        assert_eq!(runs_with_one(&[config_map("one", "1")], &nothing, "NeedsApproval").await, 3);
        // It creates one more object, and the host knows that the active revision would not.
        assert_eq!(runs_with_one(&more, &nothing, "NeedsApproval").await, 3);
        // The guest of the active revision gets other Secrets in a preview: it may do otherwise.
        assert_eq!(runs_with_one(&more, &secrets, "NeedsApproval").await, 4);
        // A deletion may hold the candidate back: the host compares both.
        assert_eq!(runs_with_one(&[], &nothing, "WouldDelete").await, 4);
    });
}

#[test]
fn preview_shows_the_same_whether_it_runs_the_active_revision_or_knows_its_answer() {
    block_on(async {
        // Given modules that differ in what the host knows without a run.
        let script = Script::new();
        let known = preview_of_changes(&script, &[], json!({})).await;
        let run = [
            // The clock may have passed a time.
            preview_of_changes(&script.clone().reads_clock(), &[], json!({})).await,
            // In a preview the guest gets digests.
            preview_of_changes(&script, &[], json!({"secretNames": ["token"]})).await,
            // The API server may refuse a field that the active revision desires as well.
            preview_of_changes(&script, &["recreate-when-immutable"], json!({})).await,
        ];

        // Then the preview ran the active revision for all primaries of these, and of the first one
        // for the ten changes that it names.
        assert_eq!(known.1, 22);
        assert_eq!(run.each_ref().map(|run| run.1), [24, 24, 24]);

        // And all previews show the same, with the fields of the named changes.
        assert_eq!(known.0["changes"], 12, "{}", known.0);
        let examples = known.0["examples"].as_array().unwrap();
        let fields: Vec<_> = examples.iter().map(|example| &example["fields"]).collect();
        assert_eq!(fields, [&json!([".data.value"]); 10]);
        for (shown, _) in run {
            assert_eq!(shown, known.0);
        }
    });
}
