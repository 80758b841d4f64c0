//! Which guests a preview runs.

use crate::support::{Script, Stage, block_on, complete, config_map, desired};

#[test]
fn preview_asks_the_active_revision_only_where_the_candidate_does_something() {
    block_on(async {
        // Given a module with three primaries, of an object each.
        let script = Script::new();
        let stage = Stage::start(script.clone()).await;
        for name in ["one", "two", "three"] {
            stage.create(name, &complete(&desired(&[config_map(name, "1")]))).await;
        }
        stage.settle().await;
        let before = stage.runs();

        // When the preview of a candidate finds that it would delete the object of one of them.
        stage.push(&script.when("\"name\":\"one\"", &desired(&[]))).await;
        stage.until_module("Held", "True", "WouldDelete").await;

        // Then it has run the candidate for each, and the active revision for that one.
        assert_eq!(stage.runs() - before, 4);
    });
}
