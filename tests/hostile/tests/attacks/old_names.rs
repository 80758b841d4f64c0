//! A Module with a field of an older release is refused with a message that names the new field.

use innkeeper_hostile_tests::{Arena, block_on};
use innkeeper_lab::ApiFailure;
use serde_json::{Value, json};

fn module(fields: &Value) -> Value {
    let mut spec = json!({"source": {"configMap": {"name": "m"}}, "serviceAccountName": "m"});
    for (name, value) in fields.as_object().unwrap() {
        spec[name] = value.clone();
    }
    json!({"apiVersion": "innkeeper.dev/v1alpha1", "kind": "Module", "metadata": {"name": "m"}, "spec": spec})
}

#[test]
fn module_with_an_old_field_is_refused_with_the_new_name() {
    block_on(async {
        let arena = Arena::start(&[]).await;
        for (fields, old, new) in [
            (json!({"crdGroups": ["a.example"]}), "spec.crdGroups", "spec.allowedCRDGroups"),
            (json!({"readSecrets": ["s"]}), "spec.readSecrets", "spec.secretNames"),
            (json!({"suspend": true}), "spec.suspend", "spec.paused"),
            (json!({"limits": {"objects": 1}}), "spec.limits.objects", "spec.limits.maxObjects"),
            (json!({"limits": {"reads": 1}}), "spec.limits.reads", "spec.limits.maxReads"),
            (
                json!({"rollout": {"probation": "1m"}}),
                "spec.rollout.probation",
                "spec.rollout.rollbackWindow",
            ),
        ] {
            let refused = arena.lab().api().apply(&module(&fields), "default").await;
            let Err(ApiFailure::Refused { code: 422, message }) = refused else {
                panic!("{fields}: {refused:?}");
            };
            let expected = format!("{old}: Forbidden: renamed: use {new}");
            assert!(message.contains(&expected), "{message}");
        }
    });
}

#[test]
fn module_with_the_new_fields_is_taken() {
    block_on(async {
        let arena = Arena::start(&[]).await;
        let fields = json!({"allowedCRDGroups": ["a.example"], "secretNames": ["s"], "paused": true,
            "limits": {"maxObjects": 1, "maxReads": 1}, "rollout": {"rollbackWindow": "1m"}});
        arena.apply(&module(&fields)).await;
        let taken = arena.module("m").await;
        for (name, value) in fields.as_object().unwrap() {
            assert_eq!(&taken["spec"][name], value, "{name}");
        }
    });
}
