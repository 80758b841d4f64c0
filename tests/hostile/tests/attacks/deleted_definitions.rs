//! Definitions that somebody deletes while the module that brings them is active.

use innkeeper_hostile_tests::{
    Arena, Attack, MODULES, RBAC, SOON, block_on, condition, guest, manifest,
};
use serde_json::{Value, json};

use crate::things::{CRD, DEFINED, arena, attack, push, size_and_color, thing, things};

const MODULE: &str = "/apis/innkeeper.dev/v1alpha1/modules/things";

/// Deletes the definition.
async fn delete(arena: &Arena) {
    arena.lab().api().delete(CRD).await.unwrap();
    assert_eq!(arena.get(CRD).await, None);
}

/// Waits until the definition exists; gives the name of the module that installed it.
async fn until_installed_again(arena: &Arena) -> Value {
    let waited = arena
        .lab()
        .until("the definition exists", SOON, async |api| Ok(api.get(CRD).await?.is_some()))
        .await;
    waited.unwrap();
    arena.get(CRD).await.unwrap()["metadata"]["labels"]["innkeeper.dev/module"].clone()
}

/// The definition stays deleted for an hour.
async fn stays_deleted(arena: &Arena) {
    arena.pass(3_600).await;
    assert_eq!(arena.get(CRD).await, None);
}

/// The messages of the Events about the Module with this reason.
async fn events(arena: &Arena, reason: &str) -> Vec<String> {
    let events = arena.lab().api().list("/apis/events.k8s.io/v1/events").await.unwrap();
    let with_reason = events.iter().filter(|event| event["reason"] == reason);
    with_reason.map(|event| event["note"].as_str().unwrap_or_default().to_owned()).collect()
}

#[test]
fn deleted_definition_is_installed_again_and_its_new_primaries_are_reconciled() {
    block_on(async {
        let arena = Arena::start(&[]).await;
        let mut manifest = manifest(&[]);
        manifest["primary"] =
            json!({"apiVersion": format!("{DEFINED}/v1"), "kind": "Thing", "plural": "things"});
        manifest["crds"] = json!([things(&size_and_color())]);
        let made = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "made"}});
        let guest = guest(&manifest, &json!({"objects": [{"object": made}]}));
        let attack = Attack::new("things", &guest)
            .spec(json!({"allowedCRDGroups": [DEFINED]}))
            .has_all_rights();
        arena.install(&attack).await;
        arena.module_says("things", "Ready", "True", "RevisionActive").await;
        let made = "/api/v1/namespaces/attack-things/configmaps/made";
        let is_made = |is_there: bool| {
            arena.lab().until("the ConfigMap comes or goes", SOON, async move |api| {
                Ok(api.get(made).await?.is_some() == is_there)
            })
        };
        arena.apply(&thing("a", &json!({"size": 1}))).await;
        is_made(true).await.unwrap();

        delete(&arena).await;
        assert_eq!(until_installed_again(&arena).await, "things");
        arena.module_says("things", "Ready", "True", "RevisionActive").await;
        is_made(false).await.unwrap();
        arena.apply(&thing("b", &json!({"size": 1}))).await;
        is_made(true).await.unwrap();
        assert_eq!(
            [events(&arena, "CRDDeleted").await, events(&arena, "CRDReinstalled").await].concat(),
            [
                "The CustomResourceDefinition things.defined.example.dev was deleted, with all its objects: the host installs it again; to keep it deleted, set spec.paused or delete the Module.",
                "The CustomResourceDefinition things.defined.example.dev was deleted, and the host has installed it again.",
            ]
        );
    });
}

#[test]
fn definition_that_a_controller_keeps_deleting_is_installed_less_and_less_often() {
    block_on(async {
        let arena = arena().await;
        let mut installed = Vec::new();
        for second in 0..7_200 {
            if arena.get(CRD).await.is_some() {
                installed.push(second);
                delete(&arena).await;
            }
            arena.pass(1).await;
        }
        let last_hour = installed.iter().filter(|second| **second >= 3_600).count();
        assert!((8..=16).contains(&last_hour), "{installed:?}");
        assert!(installed.len() <= 40, "{installed:?}");
        // A definition that was left alone for a while is soon there again.
        arena.pass(1_800).await;
        delete(&arena).await;
        arena.pass(10).await;
        assert!(arena.get(CRD).await.is_some());
    });
}

#[test]
fn definition_stays_deleted_while_its_module_is_paused_and_after_it_is_deleted() {
    block_on(async {
        let arena = arena().await;
        arena.merge(MODULE, &json!({"spec": {"paused": true}})).await;
        arena.module_says("things", "Ready", "False", "Paused").await;
        delete(&arena).await;
        let message = arena.module_says("things", "Ready", "False", "CRDDeleted").await;
        assert!(message.contains("the Module is paused"), "{message}");
        stays_deleted(&arena).await;
        arena.merge(MODULE, &json!({"spec": {"paused": false}})).await;
        until_installed_again(&arena).await;
        arena.module_says("things", "Ready", "True", "RevisionActive").await;

        arena.lab().api().delete(MODULE).await.unwrap();
        arena.pass(30).await;
        delete(&arena).await;
        stays_deleted(&arena).await;
    });
}

#[test]
fn definition_is_not_installed_again_for_a_module_that_lost_its_grant() {
    block_on(async {
        let arena = arena().await;
        arena.merge(MODULE, &json!({"spec": {"allowedCRDGroups": []}})).await;
        arena.pass(30).await;
        delete(&arena).await;
        arena.module_says("things", "Ready", "False", "CRDGroupNotAllowed").await;
        stays_deleted(&arena).await;
        arena.merge(MODULE, &json!({"spec": {"allowedCRDGroups": [DEFINED]}})).await;
        until_installed_again(&arena).await;
    });
}

#[test]
fn definition_is_not_installed_again_without_the_rights_of_the_account() {
    block_on(async {
        let arena = arena().await;
        let binding = format!("/apis/{RBAC}/v1/clusterrolebindings/everything-things");
        arena.lab().api().delete(&binding).await.unwrap();
        delete(&arena).await;
        arena.module_says("things", "Ready", "False", "CRDForbidden").await;
        stays_deleted(&arena).await;

        let account = format!("/api/v1/namespaces/{MODULES}/serviceaccounts/things");
        let nobody = json!({"metadata": {"annotations": {"innkeeper.dev/allowed-modules": null}}});
        arena.merge(&account, &nobody).await;
        arena.apply(&attack("things", &[]).objects()[4]).await;
        stays_deleted(&arena).await;
        let things =
            json!({"metadata": {"annotations": {"innkeeper.dev/allowed-modules": "things"}}});
        arena.merge(&account, &things).await;
        until_installed_again(&arena).await;
    });
}

#[test]
fn definition_of_a_candidate_that_is_not_active_is_not_installed_again() {
    block_on(async {
        let arena = arena().await;
        arena.merge(MODULE, &json!({"spec": {"rollout": {"strategy": "Manual"}}})).await;
        let mut other = things(&size_and_color());
        other["metadata"]["name"] = json!(format!("others.{DEFINED}"));
        other["spec"]["names"] = json!({"kind": "Other", "plural": "others"});
        arena.apply(&other).await;
        push(&arena, &attack("things", &[things(&size_and_color()), other])).await;
        arena.module_says("things", "Held", "True", "NeedsApproval").await;
        let path = CRD.replace("things.", "others.");
        arena.lab().api().delete(&path).await.unwrap();
        delete(&arena).await;
        until_installed_again(&arena).await;
        arena.pass(3_600).await;
        assert_eq!(arena.get(&path).await, None);
        let module = arena.module("things").await;
        assert_eq!(condition(&module, "Held").unwrap()["status"], "True");
    });
}

#[test]
fn definition_of_somebody_else_that_is_deleted_is_installed_by_the_module_that_brings_it() {
    block_on(async {
        let arena = Arena::start(&[things(&size_and_color())]).await;
        arena.install(&attack("things", &[things(&size_and_color())])).await;
        arena.module_says("things", "Ready", "True", "RevisionActive").await;
        let labels = arena.get(CRD).await.unwrap()["metadata"]["labels"].clone();
        assert_eq!(labels, Value::Null, "the host uses it as it is");
        delete(&arena).await;
        assert_eq!(until_installed_again(&arena).await, "things");
    });
}

#[test]
fn definition_that_two_modules_bring_is_installed_again_by_the_one_that_owned_it() {
    block_on(async {
        let arena = arena().await;
        for name in ["another", "zebra"] {
            arena.install(&attack(name, &[things(&size_and_color())])).await;
            arena.module_says(name, "Ready", "True", "RevisionActive").await;
        }
        for _ in 0..4 {
            delete(&arena).await;
            let by = until_installed_again(&arena).await;
            assert_eq!(by, "things");
            arena.module_says("things", "Ready", "True", "RevisionActive").await;
        }
    });
}

#[test]
fn definition_whose_owner_may_not_install_it_is_installed_by_another_module_that_needs_it() {
    block_on(async {
        let arena = arena().await;
        arena.install(&attack("another", &[things(&size_and_color())])).await;
        arena.module_says("another", "Ready", "True", "RevisionActive").await;
        arena.merge(MODULE, &json!({"spec": {"paused": true}})).await;
        arena.module_says("things", "Ready", "False", "Paused").await;
        delete(&arena).await;
        assert_eq!(until_installed_again(&arena).await, "another");
        arena.module_says("another", "Ready", "True", "RevisionActive").await;
        arena.module_says("things", "Ready", "False", "Paused").await;

        // The owner is paused while it waits.
        let other = "/apis/innkeeper.dev/v1alpha1/modules/another";
        arena.merge(MODULE, &json!({"spec": {"paused": false}})).await;
        arena.module_says("things", "Ready", "True", "RevisionActive").await;
        let binding = format!("/apis/{RBAC}/v1/clusterrolebindings/everything-another");
        arena.lab().api().delete(&binding).await.unwrap();
        delete(&arena).await;
        arena.module_says("another", "Ready", "False", "CRDForbidden").await;
        stays_deleted(&arena).await;
        arena.merge(other, &json!({"spec": {"paused": true}})).await;
        assert_eq!(until_installed_again(&arena).await, "things");
    });
}

#[test]
fn definition_that_was_deleted_while_no_host_ran_is_installed_again() {
    block_on(async {
        let arena = arena().await;
        // The source is broken by now: the host starts with the snapshot.
        let source = format!("/api/v1/namespaces/{MODULES}/configmaps/things");
        arena.lab().api().delete(&source).await.unwrap();
        arena.pass(30).await;
        let api = arena.lab().api().clone();
        let simulator = arena.end().await;
        api.delete(CRD).await.unwrap();
        let arena = Arena::on(simulator).await;
        assert_eq!(until_installed_again(&arena).await, "things");
    });
}
