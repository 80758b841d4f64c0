//! Objects of somebody else that have the names of desired ones: what they hold back, and what not.

use serde_json::{Value, json};

use crate::support::{Script, Setup, Stage, block_on, complete, condition, config_map, desired};

fn namespace(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
}

fn config_map_in(namespace: &str, name: &str) -> Value {
    let mut object = config_map(name, "ours");
    object["metadata"]["namespace"] = namespace.into();
    object
}

/// A module that may write into all namespaces, and the namespaces `north` and `south`.
async fn stage() -> Stage {
    let setup = Setup::new(Script::new().finalizes()).spec(json!({"allowCrossNamespace": true}));
    let stage = setup.start().await;
    for name in ["north", "south"] {
        stage.api().apply(&namespace(name), "").await.unwrap();
    }
    stage
}

async fn in_namespace(stage: &Stage, namespace: &str, name: &str) -> Option<Value> {
    stage.get(&format!("/api/v1/namespaces/{namespace}/configmaps/{name}")).await
}

#[test]
fn tenants_object_holds_back_creates_in_its_namespace_only() {
    block_on(async {
        // Given a tenant's own ConfigMap `settings` in the namespace `north`.
        let stage = stage().await;
        let mut theirs = config_map_in("north", "settings");
        theirs["data"] = json!({"value": "theirs"});
        stage.api().apply(&theirs, "").await.unwrap();
        let before = in_namespace(&stage, "north", "settings").await;

        // When a primary desires objects of that name and others in all namespaces.
        let objects = ["ns", "north", "south"]
            .map(|namespace| ["settings", "more"].map(|name| config_map_in(namespace, name)));
        stage.create("one", &complete(&desired(&objects.concat()))).await;
        let message = stage.until_primary("one", "Synced", "False", "Conflict").await;
        stage.settle().await;

        // Then the objects of the other namespaces are there, and nothing is written in `north`.
        for namespace in ["ns", "south"] {
            for name in ["settings", "more"] {
                assert!(in_namespace(&stage, namespace, name).await.is_some(), "{namespace}");
            }
        }
        assert_eq!(in_namespace(&stage, "north", "settings").await, before);
        assert_eq!(in_namespace(&stage, "north", "more").await, None);

        // And the condition names the conflict, how to adopt, and what is held back.
        let expected = "ConfigMap north/settings: it exists and has no controller; to let this primary adopt it, annotate the primary with innkeeper.dev/adopt=true; until then the host holds back ConfigMap north/more";
        assert_eq!(message, expected);

        // When the tenant's object is deleted, then the rest is created.
        stage.api().delete("/api/v1/namespaces/north/configmaps/settings").await.unwrap();
        stage.until_primary("one", "Synced", "True", "Applied").await;
        assert!(in_namespace(&stage, "north", "more").await.is_some());
    });
}

#[test]
fn independent_object_is_created_in_spite_of_a_conflict_in_its_namespace() {
    block_on(async {
        // Given an administrator's ConfigMap.
        let stage = Setup::new(Script::new()).object(config_map("b", "theirs")).start().await;

        // When a primary desires its name, an independent object and one that is not.
        let independent = json!({"object": config_map("a", "1"), "policy": ["independent"]});
        let others = [config_map("b", "1"), config_map("c", "1")];
        let mut objects = desired(&others);
        objects["objects"].as_array_mut().unwrap().push(independent);
        stage.create("one", &complete(&objects)).await;
        stage.until_primary("one", "Synced", "False", "Conflict").await;
        stage.settle().await;

        // Then only the independent one is created, and the administrator's stays as it is.
        assert!(stage.config_map("a").await.is_some());
        assert_eq!(stage.config_map("b").await.unwrap()["data"]["value"], "theirs");
        assert_eq!(stage.config_map("c").await, None);
    });
}

#[test]
fn nothing_is_deleted_in_any_namespace_while_a_conflict_stands() {
    block_on(async {
        // Given a primary with objects in two namespaces.
        let stage = stage().await;
        let south = config_map_in("south", "old");
        stage.create("one", &complete(&desired(&[south]))).await;
        stage.until_primary("one", "Synced", "True", "Applied").await;

        // When it desires another object instead, whose name a tenant has in another namespace.
        let theirs = config_map_in("north", "settings");
        stage.api().apply(&theirs, "").await.unwrap();
        stage.set_spec("one", &complete(&desired(&[config_map_in("north", "settings")]))).await;
        stage.until_primary("one", "Synced", "False", "Conflict").await;
        stage.pass(60).await;

        // Then the old object stays, until the conflict is solved.
        assert!(in_namespace(&stage, "south", "old").await.is_some());
        stage.annotate("one", "innkeeper.dev/adopt", &json!("true")).await;
        stage.until_primary("one", "Synced", "True", "Applied").await;
        stage.settle().await;
        assert_eq!(in_namespace(&stage, "south", "old").await, None);
        let primary = stage.primary("one").await;
        assert_eq!(condition(&primary, "Synced").unwrap()["reason"], "Applied");
    });
}
