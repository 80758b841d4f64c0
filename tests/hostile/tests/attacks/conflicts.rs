//! Objects of others that have the names of desired ones: what neither a guest nor a tenant gains
//! by them.

use innkeeper_hostile_tests::{Arena, Attack, GROUP, block_on, guest, manifest};
use serde_json::{Value, json};

use crate::objects::{apply_as, claims, config_map, replace, semver};

fn namespace(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
}

fn config_map_in(namespace: &str, name: &str) -> Value {
    let mut object = config_map(name);
    object["metadata"]["namespace"] = namespace.into();
    object
}

/// A guest that writes into all namespaces, with these desired objects.
fn crossing(name: &str, version: &str, objects: &Value) -> Attack {
    let mut manifest = manifest(&[claims()]);
    manifest["finalizer"] = "".into();
    manifest["version"] = semver(version).into();
    let spec = json!({"allowCrossNamespace": true, "namespaces": [],
        "rollout": {"strategy": "Immediate", "rollbackWindow": "0s"}});
    let guest = guest(&manifest, &json!({ "objects": objects, "finalized": true }));
    Attack::new(name, &guest).spec(spec).has_all_rights()
}

/// The object at a path without what the API server adds.
async fn content(arena: &Arena, path: &str) -> Value {
    let object = arena.get(path).await.unwrap();
    let metadata = &object["metadata"];
    json!({"data": object["data"], "labels": metadata["labels"], "uid": metadata["uid"],
        "owners": metadata["ownerReferences"], "deleted": metadata["deletionTimestamp"],
        "version": metadata["resourceVersion"]})
}

#[test]
fn independent_object_of_somebody_else_is_neither_overwritten_nor_adopted_nor_deleted() {
    block_on(async {
        // Given objects of others at home and in a tenant's namespace, one with a controller.
        let arena = Arena::start(&[namespace("tenant"), namespace("attack-alone")]).await;
        let controller = config_map_in("tenant", "controller");
        arena.apply(&controller).await;
        let path = |namespace: &str, name: &str| {
            format!("/api/v1/namespaces/{namespace}/configmaps/{name}")
        };
        let uid =
            arena.get(&path("tenant", "controller")).await.unwrap()["metadata"]["uid"].clone();
        let theirs = [("attack-alone", "theirs"), ("tenant", "theirs"), ("tenant", "controlled")];
        let mut before = Vec::new();
        for (namespace, name) in theirs {
            let mut object = config_map_in(namespace, name);
            object["data"] = json!({"whose": "theirs"});
            if name == "controlled" {
                object["metadata"]["ownerReferences"] = json!([{"apiVersion": "v1",
                    "kind": "ConfigMap", "name": "controller", "uid": uid, "controller": true}]);
            }
            arena.apply(&object).await;
            before.push(content(&arena, &path(namespace, name)).await);
        }

        // When a guest with all rights desires them, with every policy that may go with it.
        let policy = ["independent", "recreate-when-immutable", "deletable", "orphan"];
        let mut objects: Vec<Value> = theirs
            .map(|(namespace, name)| {
                json!({"object": config_map_in(namespace, name), "policy": policy})
            })
            .into();
        objects.push(json!({"object": config_map("made"), "policy": ["independent"]}));
        arena.install(&crossing("alone", "1", &Value::from(objects))).await;
        arena.primary_says("alone", "Synced", "False", "Conflict").await;
        arena.pass(60).await;
        assert!(arena.get(&path("attack-alone", "made")).await.is_some());

        // And when it desires none of them any more.
        let mut manifest = manifest(&[claims()]);
        manifest["finalizer"] = "".into();
        manifest["version"] = semver("2").into();
        replace(&arena, "alone", "2", &guest(&manifest, &json!({}))).await;
        arena.primary_says("alone", "Synced", "True", "Applied").await;

        // Then they are as they were.
        for ((namespace, name), before) in theirs.into_iter().zip(before) {
            assert_eq!(content(&arena, &path(namespace, name)).await, before, "{namespace}/{name}");
        }
    });
}

#[test]
fn tenant_with_an_object_of_a_desired_name_stops_no_other_namespace_and_loses_nothing() {
    block_on(async {
        // Given a module that makes the same object in each namespace, and a tenant who has made
        // one, under the name of the module's manager and with a primary of the module as owner.
        let names = ["one", "two", "tenant"];
        let arena = Arena::start(&names.map(namespace)).await;
        let objects = names.map(|name| json!({"object": config_map_in(name, "settings")}));
        let owners = json!([{"apiVersion": format!("{GROUP}/v1"), "kind": "Hostile",
            "name": "another", "uid": "another", "controller": true}]);
        let mut theirs = config_map_in("tenant", "settings");
        theirs["metadata"]["ownerReferences"] = owners;
        theirs["metadata"]["finalizers"] = json!(["example.com/stay"]);
        theirs["data"] = json!({"whose": "theirs"});
        let path = |name: &str| format!("/api/v1/namespaces/{name}/configmaps/settings");
        apply_as(&arena, "innkeeper/fan/another", &path("tenant"), &theirs).await;

        // When the module runs.
        arena.install(&crossing("fan", "1", &json!(objects))).await;
        arena.pass(30).await;

        // Then the other namespaces have their object, and the tenant's is the tenant's.
        for name in ["one", "two"] {
            assert_eq!(arena.get(&path(name)).await.unwrap()["data"], json!({"a": "b"}), "{name}");
        }
        assert_eq!(arena.get(&path("tenant")).await.unwrap()["data"], json!({"whose": "theirs"}));
    });
}
