//! Update groups of the method `Recreate`: a change that the API server refuses costs one object.

use serde_json::{Value, json};

use crate::support::{Reply, block_on, config_map, config_map_path, refusal};
use crate::updates::{group, grouped, stage_with_maps, writes};

/// A spec whose guest desires the ConfigMaps `a` to `c`; a change affects `b` and `c`.
fn partly_changed(group: &Value, value: &str) -> Value {
    grouped(group, &[config_map("a", "1"), config_map("b", value), config_map("c", value)])
}

#[test]
fn recreate_whose_creates_are_refused_loses_one_object_of_those_that_change() {
    block_on(async {
        // Given a group that recreates, and an API server that refuses the creates that follow.
        let group = group("Recreate");
        for (code, reason) in [(403, "Forbidden"), (422, "Invalid"), (503, "ServiceUnavailable")] {
            let stage = stage_with_maps(&group).await;
            stage.pass(60).await;
            stage.proxy().intercept(move |sent| {
                let is_apply = sent.method == "PATCH" && sent.path.contains("/configmaps/");
                if is_apply && !sent.query.contains("dryRun") {
                    refusal(code, reason, "it is not allowed")
                } else {
                    Reply::Forward
                }
            });

            // When a change affects all objects but one.
            stage.set_spec("one", &partly_changed(&group, "2")).await;
            stage.until_gone(&config_map_path("b")).await;
            stage.pass(600).await;

            // Then one object is missing, and the others stay.
            let mut deletes = writes(&stage);
            deletes.retain(|line| line.starts_with("delete"));
            assert_eq!(deletes, ["delete configmaps/b"], "{code}");
            for name in ["a", "c"] {
                assert_eq!(stage.config_map(name).await.unwrap()["data"], json!({"value": "1"}));
            }

            // When the API server accepts it, then the update ends.
            stage.proxy().forward();
            stage.set_spec("one", &partly_changed(&group, "3")).await;
            stage.pass(600).await;
            stage.until_primary("one", "Synced", "True", "Applied").await;
            let expected = ["apply configmaps/b", "delete configmaps/c", "apply configmaps/c"];
            let mut writes = writes(&stage);
            writes.drain(..writes.len().saturating_sub(expected.len()));
            assert_eq!(writes, expected, "{code}");
        }
    });
}

#[test]
fn recreate_takes_all_others_at_once_after_one_that_the_change_affects() {
    block_on(async {
        // Given a group that recreates four ConfigMaps.
        let group = group("Recreate");
        let spec = |value: &str| {
            let mut objects = ["b", "c", "d"].map(|name| config_map(name, value)).to_vec();
            objects.insert(0, config_map("a", "1"));
            grouped(&group, &objects)
        };
        let stage = stage_with_maps(&group).await;
        stage.set_spec("one", &spec("1")).await;
        stage.pass(60).await;
        writes(&stage);

        // When a change affects three of them.
        stage.set_spec("one", &spec("2")).await;
        stage.settle().await;
        stage.until_primary("one", "Synced", "True", "Applied").await;

        // Then the first one is created before the others are deleted.
        let expected = [
            "delete configmaps/b",
            "apply configmaps/b",
            "delete configmaps/c",
            "delete configmaps/d",
            "apply configmaps/c",
            "apply configmaps/d",
        ];
        assert_eq!(writes(&stage), expected);
    });
}
