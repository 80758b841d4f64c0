//! The upgrade of podroute from a version whose definition has a default: the real operator with
//! the real guest on the simulated API server, in virtual time.

#![allow(clippy::unwrap_used, reason = "a test may fail by it")]

use std::fs;
use std::path::Path;

use innkeeper_hostile_tests::{Arena, Attack, block_on};
use innkeeper_lab::Content;
use innkeeper_tiny_guests::earlier_podroute;
use serde_json::{Value, json};

const CRD: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/podroutes.quay.io";
const DEFAULT: &str =
    "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/replicas/default";
const MODULE: &str = "/apis/innkeeper.dev/v1alpha1/modules/podroute";

/// The component that `cargo xtask guests` has built.
fn component() -> Vec<u8> {
    let path =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../guests/target/components/podroute.wasm");
    assert!(path.exists(), "{} does not exist: run `cargo xtask guests` first", path.display());
    fs::read(path).unwrap()
}

/// The JSON patch that the guest's README gives to users.
fn patch_of_the_readme() -> Value {
    let readme = include_str!("../../../guests/podroute/README.md");
    let (_, patch) = readme.split_once("--type json -p \\\n  '").unwrap();
    serde_json::from_str(patch.split('\'').next().unwrap()).unwrap()
}

fn podroute(namespace: &str) -> Value {
    json!({"apiVersion": "quay.io/v1alpha1", "kind": "Podroute",
        "metadata": {"name": "web", "namespace": namespace},
        "spec": {"image": "quay.io/austincunningham/always200:latest"}})
}

fn path(namespace: &str) -> String {
    format!("/apis/quay.io/v1alpha1/namespaces/{namespace}/podroutes/web")
}

fn module(component: Vec<u8>, spec: Value) -> Attack {
    Attack::of_component("podroute", component).has_all_rights().spec(spec)
}

#[test]
fn upgrade_from_a_definition_with_default_replicas_follows_the_readme() {
    block_on(async {
        let today = component();
        let spec = json!({"allowedCRDGroups": ["quay.io"], "namespaces": ["before", "after"]});
        let arena = Arena::start(&[]).await;
        for name in ["before", "after"] {
            let namespace =
                json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
            arena.apply(&namespace).await;
        }
        arena.install(&module(earlier_podroute(&today), spec.clone())).await;
        arena.module_says("podroute", "Ready", "True", "RevisionActive").await;
        assert_eq!(arena.get(CRD).await.unwrap().pointer(DEFAULT), Some(&json!(1)));
        arena.apply(&podroute("before")).await;
        arena.pass(60).await;
        let digest = arena.module("podroute").await["status"]["digest"].clone();

        // The earlier version stays active until a user removes the default.
        let mut parameters = spec;
        parameters["parameters"] = json!({"replicasWhenLeftOut": 1});
        arena.install(&module(today, parameters)).await;
        let message = arena.module_says("podroute", "Blocked", "True", "CRDIncompatible").await;
        assert!(message.contains("spec.replicas"), "{message}");
        arena.module_says("podroute", "Serving", "True", "RevisionActive").await;
        assert_eq!(arena.module("podroute").await["status"]["digest"], digest);

        let mut definition = arena.get(CRD).await.unwrap();
        assert_eq!(patch_of_the_readme(), json!([{"op": "remove", "path": DEFAULT}]));
        let (parent, member) = DEFAULT.rsplit_once('/').unwrap();
        definition.pointer_mut(parent).unwrap().as_object_mut().unwrap().remove(member);
        arena.lab().api().send("PUT", CRD, Content::Json, &definition).await.unwrap();
        arena.module_says("podroute", "Ready", "True", "RevisionActive").await;
        assert_ne!(arena.module("podroute").await["status"]["digest"], digest);

        // A stored default stays; without it the parameter applies.
        arena.apply(&podroute("after")).await;
        arena.pass(60).await;
        for (namespace, stored) in [("before", json!(1)), ("after", Value::Null)] {
            assert_eq!(arena.get(&path(namespace)).await.unwrap()["spec"]["replicas"], stored);
            let deployment = format!("/apis/apps/v1/namespaces/{namespace}/deployments/pod-route");
            assert_eq!(arena.get(&deployment).await.unwrap()["spec"]["replicas"], 1, "{namespace}");
        }
        assert!(arena.get(MODULE).await.is_some());
    });
}
