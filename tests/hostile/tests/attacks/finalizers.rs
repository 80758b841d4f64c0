//! Finalizers of others.

use innkeeper_hostile_tests::{Arena, Attack, GROUP, block_on, guest, manifest};
use serde_json::{Value, json};

use crate::objects::{apply_as, attack, config_map, desires};

#[test]
fn finalizer_on_an_object_needs_the_grant_of_the_module() {
    block_on(async {
        let arena = Arena::start(&[]).await;
        let mut object = config_map("made");
        object["metadata"]["finalizers"] = json!(["example.com/slow"]);
        let guest = desires("1", &json!([{"object": object}]));
        let granted = Attack::new("granted", &guest).spec(json!({"allowFinalizers": true}));
        arena.install(&granted.may(&["get", "list", "watch"], "", "persistentvolumeclaims")).await;
        arena.primary_says("granted", "Synced", "True", "Applied").await;
        let made = arena.get("/api/v1/namespaces/attack-granted/configmaps/made").await.unwrap();
        assert_eq!(made["metadata"]["finalizers"], json!(["example.com/slow"]));
    });
}

#[test]
fn guest_that_names_a_finalizer_of_another_module_is_not_served() {
    block_on(async {
        let arena = Arena::start(&[]).await;
        for (name, finalizer) in [
            ("other-module", "innkeeper.dev/victim"),
            ("of-kubernetes", "kubernetes.io/pvc-protection"),
            ("of-nobody", "example.com/cleanup"),
        ] {
            let mut manifest = manifest(&[]);
            manifest["finalizer"] = finalizer.into();
            arena.install(&Attack::new(name, &guest(&manifest, &json!({})))).await;
            let message = arena.module_says(name, "Loaded", "False", "FinalizerNotGranted").await;
            assert!(message.contains(finalizer), "{message}");
            assert_eq!(arena.primary(name).await["metadata"]["finalizers"], Value::Null);
        }
        let mut manifest = manifest(&[]);
        manifest["finalizer"] = format!("cleanup.{GROUP}/done").into();
        arena.install(&attack("own-domain", &guest(&manifest, &json!({})))).await;
        arena.primary_says("own-domain", "Synced", "True", "Applied").await;
        let finalizers = arena.primary("own-domain").await["metadata"]["finalizers"].clone();
        assert_eq!(finalizers, json!([format!("cleanup.{GROUP}/done")]));
    });
}

#[test]
fn finalizer_that_another_module_wrote_too_stays_when_a_module_is_done() {
    block_on(async {
        let arena = Arena::start(&[]).await;
        let mut manifest = manifest(&[]);
        let name = format!("cleanup.{GROUP}/done");
        manifest["finalizer"] = name.as_str().into();
        let done = guest(&manifest, &json!({"finalized": true}));
        arena.install(&attack("first", &done)).await;
        arena.primary_says("first", "Synced", "True", "Applied").await;
        let path = format!("/apis/{GROUP}/v1/namespaces/attack-first/hostiles/first");
        let claimed = json!({"apiVersion": format!("{GROUP}/v1"), "kind": "Hostile",
            "metadata": {"name": "first", "finalizers": [name]}});
        apply_as(&arena, "innkeeper/victim/finalizer", &path, &claimed).await;
        arena.lab().api().delete(&path).await.unwrap();
        arena.pass(60).await;
        let held = arena.get(&path).await.expect("the other module has not had its say");
        assert_eq!(held["metadata"]["finalizers"], json!([name]));
        let managers = held["metadata"]["managedFields"].to_string();
        assert!(!managers.contains("innkeeper/first/finalizer"), "given up: {managers}");

        let released = json!({"apiVersion": format!("{GROUP}/v1"), "kind": "Hostile",
            "metadata": {"name": "first", "finalizers": []}});
        apply_as(&arena, "innkeeper/victim/finalizer", &path, &released).await;
        arena.pass(10).await;
        assert!(arena.get(&path).await.is_none(), "nobody holds it any more");
    });
}
