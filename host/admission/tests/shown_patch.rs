//! A policy changes an object as it sees it, and the patch of that change fits the real object.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use fastrand::Rng;
use innkeeper_admission::patch::patch;
use innkeeper_contract::{Operation, User};
use innkeeper_core::review::{ChangeContext, Gvk, Gvr, ReviewInput, check_change, document};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

/// Annotations that a policy does not see.
const HIDDEN: [&str; 2] =
    ["kubectl.kubernetes.io/last-applied-configuration", "kapp.k14s.io/original"];

/// A Secret with what a policy does not see, and with a list.
fn secret(rng: &mut Rng) -> Value {
    let mut annotations = Map::new();
    for name in HIDDEN.into_iter().chain(["team", "a/b~c"]) {
        if rng.bool() {
            annotations.insert(name.to_owned(), json!("x"));
        }
    }
    let items: Vec<Value> =
        (0..rng.usize(1..4)).map(|at| json!({"name": at.to_string()})).collect();
    let mut object = json!({"apiVersion": "v1", "kind": "Secret", "data": {"p": "aHVudGVyMg=="},
        "metadata": {"name": "a", "managedFields": [{"manager": "kubectl"}], "labels": {"a": "b"}},
        "items": items});
    if rng.bool() {
        object["metadata"]["annotations"] = Value::Object(annotations);
    }
    object
}

/// Changes an object in a way that only depends on what a policy sees.
fn change(object: &mut Value, rng: &mut Rng) {
    object["metadata"]["labels"]["a"] = json!(rng.u8(..).to_string());
    let items = object["items"].as_array_mut().unwrap();
    if rng.bool() {
        items.insert(rng.usize(..=items.len()), json!({"name": "new", "list": [[1], 2]}));
    } else {
        items.remove(rng.usize(..items.len()));
    }
    let removes_all = rng.bool();
    let annotations = object.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut);
    if let Some(annotations) = annotations {
        annotations.retain(|name, _| HIDDEN.contains(&name.as_str()) || !removes_all);
    }
}

/// As a type that leaves out an empty map writes it.
fn without_empty_annotations(mut object: Value) -> Value {
    let metadata = object["metadata"].as_object_mut().unwrap();
    if metadata.get("annotations").is_some_and(|one| *one == json!({})) {
        metadata.remove("annotations");
    }
    object
}

#[test]
fn patch_of_shown_fits_the_real_object() {
    let (mut rng, user) = (Rng::with_seed(7), User::default());
    for case in 0..500 {
        // Given an object, and how a policy sees it.
        let real = secret(&mut rng);
        let text = RawValue::from_string(real.to_string()).unwrap();
        let input = ReviewInput {
            operation: Operation::Update,
            kind: Gvk { group: "", version: "v1", kind: "Secret" },
            resource: Gvr { group: "", version: "v1", resource: "secrets" },
            subresource: "",
            request_kind: None,
            request_resource: None,
            name: "a",
            namespace: "n",
            user: &user,
            object: Some(&text),
            old_object: None,
            options: None,
            dry_run: false,
            background: false,
            parameters: "",
        };
        let shown = document(&input, &|_, _, _| "digest".to_owned(), 1 << 20).unwrap().object;
        let shown: Value = serde_json::from_str(&shown.unwrap()).unwrap();
        assert!(!shown.to_string().contains("aHVudGVyMg"), "{shown}");

        // When the policy changes it.
        let (mut changed, mut expected, mut same) = (shown.clone(), real.clone(), rng.clone());
        change(&mut changed, &mut rng);
        change(&mut expected, &mut same);
        let changed = without_empty_annotations(changed);
        let changed = check_change(&shown, changed, &ChangeContext::of(&input, false)).unwrap();

        // Then its patch makes the same change in the real object.
        let made = patch(&shown, &changed).unwrap();
        let mut patched = real.clone();
        json_patch::patch(&mut patched, made.operations()).unwrap();
        assert_eq!(patched, expected, "case {case}: {}", made.text());
    }
}
