//! A host that starts on a cluster where another one worked: it needs nothing of what that one
//! remembered.

use serde_json::json;

use crate::support::{
    Script, Setup, Stage, block_on, complete, config_map, config_map_path, desired, primary_path,
};

#[test]
fn restarted_host_writes_nothing_for_primaries_that_are_in_sync() {
    block_on(async {
        // Given a primary with a finalizer and an object of each policy.
        let setup = Setup::new(Script::new().finalizes()).object(config_map("theirs", "1"));
        let stage = setup.start().await;
        let merged = json!({"apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": "theirs", "labels": {"ours": "yes"}}});
        let spec = complete(&json!({"status": {"phase": "Running"}, "objects": [
            {"object": config_map("owned", "1")},
            {"object": config_map("once", "1"), "policy": ["create-only"]},
            {"object": config_map("orphan", "1"), "policy": ["orphan"]},
            {"object": merged, "policy": ["merge"]}]}));
        stage.create("one", &spec).await;
        stage.until_primary("one", "Synced", "True", "Applied").await;
        stage.settle().await;
        stage.writes();

        // When the host restarts.
        let stage = stage.stop().await.start().await;
        stage.settle().await;

        // Then it runs the guest and writes nothing.
        assert!(stage.runs() > 0);
        assert_eq!(stage.writes(), [""; 0]);
    });
}

#[test]
fn restarted_host_does_what_became_necessary_meanwhile_and_nothing_else() {
    block_on(async {
        // Given three primaries with two objects each, and no host.
        let stage = Stage::start(Script::new()).await;
        let spec = |name: &str, value: &str| {
            let names = [format!("{name}-a"), format!("{name}-b")];
            complete(&desired(&names.map(|name| config_map(&name, value))))
        };
        for name in ["same", "less", "drift"] {
            stage.create(name, &spec(name, "1")).await;
        }
        stage.settle().await;
        stage.writes();
        let stopped = stage.stop().await;

        // When one gives up an object, another's is changed, and a new one is created.
        let less = json!({"spec": complete(&desired(&[config_map("less-a", "1")]))});
        stopped.merge_at(&primary_path("less"), &less).await;
        let change = json!({"data": {"value": "drift"}});
        stopped.merge_at(&config_map_path("drift-a"), &change).await;
        let stage = stopped.start().await;
        stage.settle().await;

        // Then the host writes just that.
        let mut writes = stage.writes();
        writes.sort();
        let expected =
            ["apply configmaps/drift-a", "apply scripts/less/status", "delete configmaps/less-b"];
        assert_eq!(writes, expected);
        assert_eq!(stage.config_map("drift-a").await.unwrap()["data"]["value"], "1");
    });
}

#[test]
fn restarted_host_repeats_no_event_about_a_problem_that_persists() {
    block_on(async {
        // Given a primary whose object belongs to an administrator.
        let stage = Setup::new(Script::new()).object(config_map("a", "theirs")).start().await;
        stage.create("one", &complete(&desired(&[config_map("a", "1")]))).await;
        stage.until_primary("one", "Synced", "False", "Conflict").await;
        stage.settle().await;
        let before = stage.events("one").await;
        assert_eq!(before.len(), 1, "{before:?}");
        stage.writes();

        // When the host restarts.
        let stage = stage.stop().await.start().await;
        stage.settle().await;

        // Then it writes neither the status nor an Event again.
        assert_eq!(stage.writes(), [""; 0]);
        assert_eq!(stage.events("one").await, before);

        // When the obstacle goes, then an Event says so.
        stage.api().delete(&config_map_path("a")).await.unwrap();
        stage.until_primary("one", "Synced", "True", "Applied").await;
        let events = stage.events("one").await;
        assert!(events.iter().any(|(reason, _)| reason == "Applied"), "{events:?}");
    });
}
