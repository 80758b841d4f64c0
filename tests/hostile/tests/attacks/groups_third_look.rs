//! Update groups whose values or kinds change in the middle of an update.

use innkeeper_hostile_tests::{Arena, Attack, block_on, condition, guest, manifest};
use innkeeper_lab::Content;
use innkeeper_tiny_guests::Tiny;
use serde_json::{Value, json};

use crate::kinds::requests;
use crate::leak::{ENCODED, quotes};
use crate::log::{keep_log, logged};
use crate::revision_history::{CHILDREN, PRIMARY, REVISIONS, child_definition, colors};
use crate::value_sources::{arena, copy, granted, owns_secrets, pull, secret_path};

/// The path of the source of the copies.
const SOURCE: &str = "/api/v1/namespaces/central/secrets/pull";

/// Other values, in base64.
const OTHERS: [&str; 3] = ["b3RoZXI=", "YW5vdGhlcg==", "dGhpcmQ="];

/// The values of the copies `a` to `c`; empty where one does not exist.
async fn copies(arena: &Arena) -> Vec<String> {
    let mut values = Vec::new();
    for name in ["a", "b", "c"] {
        let copy = arena.get(&secret_path("copies", name)).await.unwrap_or_default();
        values.push(copy["data"]["password"].as_str().unwrap_or_default().to_owned());
    }
    values
}

/// The condition `Synced` of a primary, as reason and message.
async fn synced(arena: &Arena, name: &str) -> String {
    let primary = arena.primary(name).await;
    let synced = condition(&primary, "Synced").unwrap();
    format!("{}: {}", synced["reason"].as_str().unwrap(), synced["message"].as_str().unwrap())
}

#[test]
fn copies_of_a_rolling_group_keep_the_limit_whatever_happens_to_their_source() {
    block_on(async {
        // Given three copies in a group, of which one may change in 30 seconds.
        keep_log();
        let arena = arena().await;
        let objects: Vec<Value> = ["a", "b", "c"]
            .iter()
            .map(|name| {
                let mut copy = copy(name, &pull());
                copy["updateGroup"] = "all".into();
                copy
            })
            .collect();
        let desired = json!({"objects": objects, "updateGroups": [
            {"name": "all", "method": "RollingInPlace", "minReadySeconds": 30}]});
        let attack = granted("copies", &guest(&owns_secrets(), &desired), &[pull()]);
        arena.install(&attack).await;
        arena.primary_says("copies", "Synced", "True", "Applied").await;
        arena.pass(60).await;
        assert_eq!(copies(&arena).await, [ENCODED; 3]);

        // When the source changes again and again, then one copy changes in each 30 seconds.
        let before = requests(&arena, "copies", "PATCH").len();
        for round in 0..30 {
            let value = OTHERS[round % 3];
            arena.merge(SOURCE, &json!({"data": {"password": value}})).await;
            arena.pass(4).await;
        }
        let written = requests(&arena, "copies", "PATCH")[before..]
            .iter()
            .filter(|line| line.contains("/secrets/"))
            .count();
        assert!((1..=36).contains(&written), "{written} writes of copies in 120 s");

        // When it is gone in the middle, then the copies stay as they are.
        arena.merge(SOURCE, &json!({"data": {"password": ENCODED}})).await;
        arena.pass(5).await;
        arena.lab().api().delete(SOURCE).await.unwrap();
        let stay = copies(&arena).await;
        arena.pass(120).await;
        assert_eq!(copies(&arena).await, stay);
        let message = arena.primary_says("copies", "Synced", "False", "ValueSourceMissing").await;
        assert!(!quotes(&message), "{message}");

        // When it returns without its key, with another key, and whole, then the update ends.
        for data in [json!({}), json!({"other": OTHERS[0]}), json!({"password": ENCODED})] {
            let source = json!({"apiVersion": "v1", "kind": "Secret",
                "metadata": {"name": "pull", "namespace": "central"}, "data": data});
            arena.lab().api().delete(SOURCE).await.unwrap();
            arena.apply(&source).await;
            arena.pass(40).await;
        }
        arena.pass(200).await;
        arena.primary_says("copies", "Synced", "True", "Applied").await;
        assert_eq!(copies(&arena).await, [ENCODED; 3]);

        // Then no text has a value.
        let module = arena.module("copies").await;
        let primary = arena.primary("copies").await;
        for text in [module["status"].to_string(), primary["status"].to_string()] {
            assert!(!quotes(&text), "{text}");
        }
        let lines = logged();
        assert!(!lines.iter().any(|line| quotes(line)), "{lines:#?}");
    });
}

/// A guest that owns the kinds of the parameter `copies`, and desires four Children in a group.
fn of_parameter(color: &str) -> Tiny {
    let mut manifest = manifest(&[]);
    manifest["parametersSchema"] = json!({"type": "object", "properties": {"copies": {}}});
    manifest["kindParameters"] = json!([{"parameter": "copies", "role": "Owned"}]);
    let objects: Vec<Value> = ["a", "b", "c", "d"]
        .iter()
        .map(|name| {
            json!({"updateGroup": "all", "object": {"apiVersion": "x.example.com/v1",
                "kind": "Child", "metadata": {"name": name}, "spec": {"color": color, "echo": "@@@"}}})
        })
        .collect();
    let desired = json!({"objects": objects, "revisionHistory": {"fieldPaths": ["spec.echo"]},
        "updateGroups": [{"name": "all", "method": "RollingRecreate",
            "statusChecks": [{"type": "Ready"}]}]});
    guest(&manifest, &desired).echoing()
}

#[test]
fn kinds_that_the_parameters_drop_in_the_middle_of_an_update_lose_no_object_and_no_history() {
    block_on(async {
        // Given an update of Children, whose kind a parameter names, which waits for the first.
        let arena = Arena::start(&[child_definition()]).await;
        let named = |kinds: &[(&str, &str)]| -> Value {
            kinds
                .iter()
                .map(|(version, kind)| json!({"apiVersion": version, "kind": kind}))
                .collect()
        };
        let all = [("x.example.com/v1", "Child"), ("apps/v1", "ControllerRevision")];
        let spec = json!({"parameters": {"copies": named(&all)},
            "rollout": {"strategy": "Immediate", "rollbackWindow": "0s"}});
        let attack = Attack::new("history", &of_parameter("red")).has_all_rights().spec(spec);
        arena.install(&attack).await;
        arena.merge(PRIMARY, &json!({"spec": {"echo": "aaa", "zz": 1}})).await;
        arena.primary_says("history", "Synced", "True", "Applied").await;
        let ready = json!({"status": {"conditions": [{"type": "Ready", "status": "True"}]}});
        for name in ["a", "b", "c", "d"] {
            let path = format!("{CHILDREN}/{name}/status");
            arena.lab().api().send("PATCH", &path, Content::MergePatch, &ready).await.unwrap();
        }
        arena.pass(10).await;
        arena.merge(PRIMARY, &json!({"spec": {"echo": "bbb"}})).await;
        arena.pass(20).await;
        let uids = async || -> Vec<Value> {
            let children = arena.lab().api().list(CHILDREN).await.unwrap();
            children.iter().map(|one| one["metadata"]["uid"].clone()).collect()
        };
        let before = (uids().await, arena.lab().api().list(REVISIONS).await.unwrap().len());
        assert_eq!(before.1, 2);

        // When the parameters drop kinds that the guest still desires, and name others.
        let module = "/apis/innkeeper.dev/v1alpha1/modules/history";
        for kinds in [&all[1..], &all[..1], &[], &[("v1", "Secret")], &[("v1", "Namespace")]] {
            arena.merge(module, &json!({"spec": {"parameters": {"copies": named(kinds)}}})).await;
            arena.pass(60).await;

            // Then nothing is deleted, and the condition says why nothing goes on.
            let revisions = arena.lab().api().list(REVISIONS).await.unwrap().len();
            let says = synced(&arena, "history").await;
            assert_eq!((uids().await, revisions), before, "{kinds:?} {says}");
            assert!(!says.starts_with("Applied") && !says.starts_with("Updating"), "{says}");
        }

        // When they return, then the update goes on.
        arena.merge(module, &json!({"spec": {"parameters": {"copies": named(&all)}}})).await;
        arena.pass(30).await;
        for name in ["a", "b", "c", "d"] {
            let path = format!("{CHILDREN}/{name}/status");
            arena.lab().api().send("PATCH", &path, Content::MergePatch, &ready).await.unwrap();
            arena.pass(30).await;
        }
        arena.primary_says("history", "Synced", "True", "Applied").await;
        let children = arena.lab().api().list(CHILDREN).await.unwrap();
        assert!(children.iter().all(|one| one["spec"]["echo"] == "bbb"), "{children:#?}");
        assert_eq!(colors(&arena).await, ["red"; 4]);
    });
}
