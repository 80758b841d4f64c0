//! One kind in two served versions, as HorizontalPodAutoscaler has `autoscaling/v1` and
//! `autoscaling/v2`.

use innkeeper_hostile_tests::{Arena, Attack, block_on, guest, manifest};
use innkeeper_tiny_guests::Tiny;
use serde_json::{Value, json};

const GROUP: &str = "scaling.example.dev";

/// The definition of Scaler in the versions `v1` and `v2`, both served.
fn scalers() -> Value {
    let any = json!({"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}});
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("scalers.{GROUP}")},
        "spec": {"group": GROUP, "scope": "Namespaced",
            "names": {"kind": "Scaler", "plural": "scalers"},
            "versions": [
                {"name": "v1", "served": true, "storage": false, "schema": any},
                {"name": "v2", "served": true, "storage": true, "schema": any}]}})
}

fn kind(version: &str) -> Value {
    json!({"apiVersion": format!("{GROUP}/{version}"), "kind": "Scaler", "plural": "scalers", "scope": "Namespaced"})
}

/// A guest that owns Scalers in these versions, and gives `one` in each of those.
fn scaler(owned: &[&str], given: &[&str]) -> Tiny {
    let owned: Vec<Value> = owned.iter().map(|version| kind(version)).collect();
    let objects: Vec<Value> = given
        .iter()
        .map(|version| {
            json!({"object": {"apiVersion": format!("{GROUP}/{version}"), "kind": "Scaler",
                "metadata": {"name": "one"}, "spec": {"replicas": 3}}})
        })
        .collect();
    guest(&manifest(&owned), &json!({ "objects": objects }))
}

async fn uid(arena: &Arena, name: &str) -> Value {
    let path = format!("/apis/{GROUP}/v2/namespaces/attack-{name}/scalers/one");
    arena.get(&path).await.map_or(Value::Null, |one| one["metadata"]["uid"].clone())
}

/// Requests of the module that changed the Scaler so far.
fn writes(arena: &Arena, name: &str) -> usize {
    let user = format!("system:serviceaccount:innkeeper-modules:{name}");
    let log = arena.log();
    log.iter()
        .filter(|line| {
            line.contains(&user)
                && line.contains("scalers/one")
                && (line.contains("PATCH") || line.contains("DELETE"))
        })
        .count()
}

#[test]
fn object_survives_a_guest_that_moves_to_another_version_of_its_kind() {
    block_on(async {
        let arena = Arena::start(&[scalers()]).await;
        arena.install(&Attack::new("moves", &scaler(&["v1"], &["v1"])).has_all_rights()).await;
        arena.primary_says("moves", "Synced", "True", "Applied").await;
        let before = uid(&arena, "moves").await;
        assert!(before.is_string());
        let next = Attack::new("moves", &scaler(&["v2"], &["v2"])).objects();
        let digest = arena.module("moves").await["status"]["digest"].clone();
        arena.apply(next.iter().find(|one| one["kind"] == "ConfigMap").unwrap()).await;
        arena.pass(120).await;
        let module = arena.module("moves").await;
        assert_ne!(module["status"]["digest"], digest, "{:#}", module["status"]);
        assert_eq!(
            uid(&arena, "moves").await,
            before,
            "the object was neither deleted nor made again"
        );
        let written = writes(&arena, "moves");
        arena.pass(600).await;
        assert_eq!(writes(&arena, "moves"), written, "nothing is written any more");
        arena.primary_says("moves", "Synced", "True", "Applied").await;
    });
}

#[test]
fn object_of_a_kind_owned_in_two_versions_is_made_once_and_kept() {
    for (name, given) in [("older", &["v1"]), ("newer", &["v2"])] {
        block_on(async {
            let arena = Arena::start(&[scalers()]).await;
            arena.install(&Attack::new(name, &scaler(&["v1", "v2"], given)).has_all_rights()).await;
            arena.pass(30).await;
            let before = uid(&arena, name).await;
            arena.pass(30).await;
            let primary = arena.primary(name).await;
            assert!(before.is_string(), "{name}: {:#}", primary["status"]);
            assert_eq!(uid(&arena, name).await, before, "{name}");
            let written = writes(&arena, name);
            arena.pass(600).await;
            assert_eq!(writes(&arena, name), written, "{name}: nothing is written any more");
        });
    }
}
