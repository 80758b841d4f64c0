//! Which guests a preview runs.

use serde_json::{Value, json};

use crate::support::{Script, Setup, Stage, block_on, complete, config_map, desired};

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

/// What the status shows of a preview of a held candidate that would change all objects of a guest,
/// and how many runs of guests the preview took.
async fn preview_of_changes(script: &Script, spec: &Value) -> (Value, u64) {
    let stage = stage_with(script, &NAMES, spec).await;
    let before = stage.runs();
    let changed = NAMES.iter().fold(script.clone(), |script, name| {
        let primary = format!("\"name\":\"{name}\"");
        script.when(&primary, &desired(&[config_map(name, "2")]))
    });
    stage.push(&changed).await;
    stage.until_module("Held", "True", "WouldExceedChangeLimit").await;
    let mut candidate = stage.module().await["status"]["candidate"].clone();
    candidate.as_object_mut().unwrap().remove("since");
    (candidate, stage.runs() - before)
}

#[test]
fn preview_asks_the_active_revision_only_where_the_candidate_does_something() {
    block_on(async {
        // Given a module with three primaries, of an object each.
        let stage = stage_with(
            &Script::new(),
            &["one", "two", "three"],
            &json!({"secretNames": ["token"]}),
        )
        .await;
        let before = stage.runs();

        // When the preview of a candidate finds that it would delete the object of one of them, and
        // the host does not know that the active revision would not.
        stage.push(&Script::new().when("\"name\":\"one\"", &desired(&[]))).await;
        stage.until_module("Held", "True", "WouldDelete").await;

        // Then it has run the candidate for each, and the active revision for that one.
        assert_eq!(stage.runs() - before, 4);
    });
}

#[test]
fn preview_does_not_ask_the_active_revision_about_a_primary_without_work() {
    block_on(async {
        // Given a module with three primaries whose objects are as desired.
        let stage = stage_with(&Script::new(), &["one", "two", "three"], &json!({})).await;
        let before = stage.runs();

        // When the preview of a candidate finds that it would delete the object of one of them.
        stage.push(&Script::new().when("\"name\":\"one\"", &desired(&[]))).await;
        stage.until_module("Held", "True", "WouldDelete").await;

        // Then it has run the candidate alone.
        assert_eq!(stage.runs() - before, 3);
    });
}

#[test]
fn preview_shows_the_same_whether_it_asks_the_active_revision_or_knows_its_answer() {
    block_on(async {
        // Given three modules that differ in what the host may take for granted: of guests that get
        // the values of Secrets, and of guests that read the clock, a preview runs both revisions.
        let (script, limit) = (Script::new(), json!({"rollout": {"maxChangedPercent": 0}}));
        let known = preview_of_changes(&script, &limit).await;
        let asked = [
            preview_of_changes(&script.clone().reads_clock(), &limit).await,
            preview_of_changes(
                &script,
                &json!({"rollout": limit["rollout"], "secretNames": ["token"]}),
            )
            .await,
        ];

        // Then the active revision ran for all primaries of two of them, and of the first one for
        // the ten changes that the preview names.
        assert_eq!(known.1, 22);
        assert_eq!(asked.each_ref().map(|asked| asked.1), [24, 24]);

        // And all previews show the same, with the fields of the named changes.
        assert_eq!(known.0["changes"], 12, "{}", known.0);
        let examples = known.0["examples"].as_array().unwrap();
        let fields: Vec<_> = examples.iter().map(|example| &example["fields"]).collect();
        assert_eq!(fields, [&json!([".data.value"]); 10]);
        for (mut shown, _) in asked {
            shown["digest"] = known.0["digest"].clone();
            assert_eq!(shown, known.0);
        }
    });
}
