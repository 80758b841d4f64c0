//! Who decides which primaries a module reconciles: the guest and the Module together, and no
//! tenant.

use innkeeper_hostile_tests::{Arena, Attack, GROUP, block_on, guest, manifest};
use serde_json::{Value, json};

use crate::objects::config_map;

/// A guest with a finalizer that selects by annotation and desires the ConfigMap `made`.
fn selecting(selector: &Value, finalizing: &Value) -> innkeeper_tiny_guests::Tiny {
    let mut manifest = manifest(&[]);
    manifest["finalizer"] = "".into();
    manifest["selector"] = selector.clone();
    guest(&manifest, finalizing)
}

fn hostile(home: &str, name: &str, metadata: &Value) -> Value {
    let mut object = json!({"apiVersion": format!("{GROUP}/v1"), "kind": "Hostile",
        "metadata": metadata});
    object["metadata"]["name"] = name.into();
    object["metadata"]["namespace"] = home.into();
    object
}

fn path(home: &str, name: &str) -> String {
    format!("/apis/{GROUP}/v1/namespaces/{home}/hostiles/{name}")
}

#[test]
fn tenant_cannot_widen_the_selection_of_guest_or_module() {
    block_on(async {
        // Given a guest that selects by annotation, and a Module that narrows it by label and by
        // namespace.
        let arena = Arena::start(&[]).await;
        let desired = json!({"objects": [{"object": config_map("made")}]});
        let guest = selecting(&json!({"matchAnnotations": {"policy": "on"}}), &desired);
        let spec = json!({"selector": {"matchLabels": {"team": "a"}}});
        arena.install(&Attack::new("wide", &guest).spec(spec).has_all_rights()).await;
        let elsewhere = json!({"apiVersion": "v1", "kind": "Namespace",
            "metadata": {"name": "elsewhere"}});
        arena.apply(&elsewhere).await;

        // When tenants give objects what looks like the missing half.
        let both = json!({"labels": {"team": "a"}, "annotations": {"policy": "on"}});
        let mut text = hostile("attack-wide", "text", &json!({"labels": {"team": "a"}}));
        text["spec"] = json!({"metadata": {"annotations": {"policy": "on"}},
            "text": "\"annotations\":{\"policy\":\"on\"}"});
        for object in [
            hostile("attack-wide", "label", &json!({"labels": {"team": "a"}})),
            hostile("attack-wide", "annotation", &json!({"annotations": {"policy": "on"}})),
            hostile(
                "attack-wide",
                "swapped",
                &json!({"labels": {"policy": "on"},
                "annotations": {"team": "a"}}),
            ),
            hostile("elsewhere", "foreign", &both),
            text,
        ] {
            arena.apply(&object).await;
        }
        arena.pass(60).await;

        // Then the host touches none of them.
        for (home, name) in [
            ("attack-wide", "label"),
            ("attack-wide", "annotation"),
            ("attack-wide", "swapped"),
            ("attack-wide", "text"),
            ("elsewhere", "foreign"),
        ] {
            let object = arena.get(&path(home, name)).await.unwrap();
            assert_eq!(object["metadata"]["finalizers"], Value::Null, "{name}");
            assert_eq!(object["status"], Value::Null, "{name}");
        }
        arena.apply(&hostile("attack-wide", "selected", &both)).await;
        arena.pass(60).await;
        let object = arena.get(&path("attack-wide", "selected")).await.unwrap();
        assert_eq!(object["metadata"]["finalizers"], json!(["innkeeper.dev/wide"]));
    });
}

#[test]
fn object_that_drops_its_annotation_neither_hangs_nor_leaves_objects_behind() {
    block_on(async {
        // Given two selected primaries whose guest never says that it is done with a deleted one.
        let arena = Arena::start(&[]).await;
        let desired = json!({"objects": [{"object": config_map("made")}]});
        let guest = selecting(&json!({"matchAnnotations": {"policy": "on"}}), &desired);
        arena.install(&Attack::new("evade", &guest).may(&["patch"], GROUP, "hostiles")).await;
        let on = json!({"annotations": {"policy": "on"}});
        let one = path("attack-evade", "one");
        arena.apply(&hostile("attack-evade", "one", &on)).await;
        arena.pass(60).await;
        let made = "/api/v1/namespaces/attack-evade/configmaps/made";
        assert!(arena.get(made).await.is_some());

        // When its user deletes it and drops the annotation to evade the clean-up.
        arena.lab().api().delete(&one).await.unwrap();
        arena.pass(30).await;
        assert!(arena.get(&one).await.is_some(), "the guest is not done");
        arena.merge(&one, &json!({"metadata": {"annotations": {"policy": null}}})).await;
        arena.pass(60).await;

        // Then nothing holds the primary, and its object goes with it.
        assert!(arena.get(&one).await.is_none());
        assert!(arena.get(made).await.is_none(), "Kubernetes deletes what the primary owned");
    });
}

#[test]
fn finalizing_decorator_touches_no_object_that_its_guest_does_not_select() {
    block_on(async {
        // Given a decorator of StatefulSets by annotation, in all namespaces and with all rights.
        let arena = Arena::start(&[]).await;
        let mut manifest = manifest(&[]);
        manifest["primary"] = json!({"apiVersion": "apps/v1", "kind": "StatefulSet",
            "plural": "statefulsets", "scope": "Namespaced"});
        manifest["finalizer"] = "".into();
        manifest["selector"] = json!({"matchAnnotations": {"service-per-pod": "yes"}});
        let attack = Attack::new("sets", &guest(&manifest, &json!({})));
        arena.install(&attack.spec(json!({"namespaces": []})).has_all_rights()).await;
        let set = |name: &str, annotations: &Value| {
            json!({"apiVersion": "apps/v1", "kind": "StatefulSet",
                "metadata": {"name": name, "namespace": "default", "annotations": annotations},
                "spec": {"replicas": 0, "serviceName": name,
                    "selector": {"matchLabels": {"app": name}},
                    "template": {"metadata": {"labels": {"app": name}},
                        "spec": {"containers": [{"name": "a", "image": "a:1"}]}}}})
        };
        arena.apply(&set("theirs", &json!({"other": "yes"}))).await;
        arena.apply(&set("ours", &json!({"service-per-pod": "yes"}))).await;
        arena.pass(60).await;

        // Then it has its finalizer on the selected one only.
        let finalizers = async |name: &str| {
            let path = format!("/apis/apps/v1/namespaces/default/statefulsets/{name}");
            arena.get(&path).await.unwrap()["metadata"]["finalizers"].clone()
        };
        assert_eq!(finalizers("ours").await, json!(["innkeeper.dev/sets"]));
        assert_eq!(finalizers("theirs").await, Value::Null);
    });
}

#[test]
fn guest_with_an_invalid_or_huge_selector_is_not_served() {
    block_on(async {
        let arena = Arena::start(&[]).await;
        let many: Vec<Value> =
            (0..10_000).map(|_| json!({"key": "spec.a", "operator": "Exists"})).collect();
        for (name, fields, problem) in [
            (
                "path",
                json!([{"key": "spec..a", "operator": "Exists"}]),
                "selector.matchFields[0].key: \"spec..a\" is not the path of a field",
            ),
            ("many", json!(many), "selector.matchFields: has 10000 entries: at most 64"),
        ] {
            let guest = selecting(&json!({ "matchFields": fields }), &json!({}));
            arena.install(&Attack::new(name, &guest)).await;
            let message = arena.module_says(name, "Loaded", "False", "InvalidManifest").await;
            assert!(message.contains(problem), "{message}");
        }
    });
}
