//! Consent of an account to act for a module.

use innkeeper_hostile_tests::{Arena, Attack, GROUP, block_on, condition, guest, manifest};
use innkeeper_tiny_guests::Tiny;
use serde_json::{Value, json};

const ACCOUNT: &str = "/api/v1/namespaces/innkeeper-modules/serviceaccounts";
const ANNOTATION: &str = "innkeeper.dev/allowed-modules";

/// Requests that the host sent as an account so far.
fn sent_as(arena: &Arena, account: &str) -> usize {
    let user = format!("system:serviceaccount:innkeeper-modules:{account}");
    arena.log().iter().filter(|line| line.contains(&user)).count()
}

/// A guest that makes ConfigMap `good`.
fn maker() -> Tiny {
    let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "good"}, "data": {"a": "b"}});
    guest(&manifest(&[]), &json!({"objects": [{"object": object}]}))
}

/// The account of an attack, with this annotation.
fn account(name: &str, allowed: Option<&str>) -> Value {
    let mut account = json!({"apiVersion": "v1", "kind": "ServiceAccount",
        "metadata": {"name": name, "namespace": "innkeeper-modules", "annotations": {}}});
    if let Some(allowed) = allowed {
        account["metadata"]["annotations"][ANNOTATION] = json!(allowed);
    }
    account
}

#[test]
fn module_whose_account_does_not_allow_it_does_nothing_until_it_does() {
    for (name, allowed) in [
        ("silent", None),
        ("other", Some("somebody, else")),
        ("upper", Some("UPPER")),
        ("prefix", Some("prefi,prefix2, *x")),
        ("empty", Some("")),
        ("long", Some(&*"x,".repeat(50_000))),
    ] {
        block_on(async {
            let arena = Arena::start(&[]).await;
            let attack = Attack::new(name, &maker());
            for mut object in attack.objects() {
                if object["kind"] == "ServiceAccount" {
                    object = account(name, allowed);
                }
                arena.apply(&object).await;
            }
            let message = arena.module_says(name, "Authorized", "False", "AccountNotAllowed").await;
            // A command that names this module alone would withdraw the consent to all others.
            let verb = if name == "long" { "edit" } else { "annotate" };
            assert!(message.contains(&format!("{verb} serviceaccount {name}")), "{message}");
            arena.module_says(name, "Ready", "False", "AccountNotAllowed").await;
            arena.pass(600).await;
            assert_eq!(sent_as(&arena, name), 0, "{name}: nothing was sent as the account");
            let module = arena.module(name).await;
            assert_ne!(condition(&module, "Loaded").unwrap()["status"], "True", "{module}");
            // What the message says to do gives consent.
            let of_command = message.rsplit_once(&format!("{ANNOTATION}="));
            let value = match of_command {
                Some((_, value)) => value.trim_end_matches('`').to_owned(),
                None => format!("{},{name}", allowed.unwrap()),
            };
            arena
                .merge(
                    &format!("{ACCOUNT}/{name}"),
                    &json!({"metadata": {"annotations": {ANNOTATION: value}}}),
                )
                .await;
            arena.primary_says(name, "Synced", "True", "Applied").await;
            arena.module_says(name, "Authorized", "True", "Granted").await;
            assert!(sent_as(&arena, name) > 0);
        });
    }
}

#[test]
fn module_that_names_an_account_of_another_module_or_none_does_nothing() {
    for (name, named) in [("thief", "victim"), ("ghost", "nobody"), ("lazy", "default")] {
        block_on(async {
            let arena =
                Arena::start(&[account("victim", Some("victim")), account("default", None)]).await;
            let attack = Attack::new(name, &maker()).spec(json!({"serviceAccountName": named}));
            arena.install(&attack).await;
            let message = arena.module_says(name, "Authorized", "False", "AccountNotAllowed").await;
            assert!(message.contains(&format!("innkeeper-modules/{named}")), "{message}");
            arena.pass(60).await;
            assert_eq!(sent_as(&arena, named), 0);
        });
    }
}

#[test]
fn withdrawn_consent_stops_a_serving_module_at_once_and_consent_starts_it_again() {
    block_on(async {
        let arena = Arena::start(&[]).await;
        arena.install(&Attack::new("withdrawn", &maker())).await;
        arena.install(&Attack::new("neighbour", &maker())).await;
        arena.primary_says("withdrawn", "Synced", "True", "Applied").await;
        let path = format!("{ACCOUNT}/withdrawn");
        let set = |value: Value| json!({"metadata": {"annotations": {ANNOTATION: value}}});
        arena.merge(&path, &set(Value::Null)).await;
        arena.module_says("withdrawn", "Authorized", "False", "AccountNotAllowed").await;
        arena.module_says("withdrawn", "Serving", "False", "AccountNotAllowed").await;
        // What somebody breaks is not repaired, and nothing is read.
        arena.pass(5).await;
        let before = sent_as(&arena, "withdrawn");
        let child = "/api/v1/namespaces/attack-withdrawn/configmaps/good";
        arena.merge(child, &json!({"data": {"a": "broken"}})).await;
        arena.pass(300).await;
        assert_eq!(sent_as(&arena, "withdrawn"), before, "nothing is sent as the account");
        assert_eq!(arena.get(child).await.unwrap()["data"]["a"], "broken");
        arena.primary_says("neighbour", "Synced", "True", "Applied").await;
        arena.merge(&path, &set(json!("a, withdrawn"))).await;
        arena.module_says("withdrawn", "Serving", "True", "RevisionActive").await;
        arena.pass(5).await;
        assert_eq!(arena.get(child).await.unwrap()["data"]["a"], "b", "it is repaired");
    });
}

#[test]
fn account_that_was_made_again_by_somebody_has_to_allow_the_module_again() {
    block_on(async {
        let arena = Arena::start(&[]).await;
        arena.install(&Attack::new("remade", &maker())).await;
        arena.primary_says("remade", "Synced", "True", "Applied").await;
        let path = format!("{ACCOUNT}/remade");
        arena.lab().api().delete(&path).await.unwrap();
        let message = arena.module_says("remade", "Authorized", "False", "AccountNotAllowed").await;
        assert!(message.contains("does not exist"), "{message}");
        arena.apply(&account("remade", None)).await;
        arena.pass(5).await;
        let before = sent_as(&arena, "remade");
        arena.pass(120).await;
        assert_eq!(sent_as(&arena, "remade"), before);
        arena.module_says("remade", "Serving", "False", "AccountNotAllowed").await;
        arena.apply(&account("remade", Some("*"))).await;
        arena.module_says("remade", "Serving", "True", "RevisionActive").await;
    });
}

#[test]
fn module_that_changes_to_an_account_that_does_not_allow_it_keeps_the_old_one() {
    block_on(async {
        let arena = Arena::start(&[account("victim", Some("victim"))]).await;
        arena.install(&Attack::new("changes", &maker())).await;
        arena.primary_says("changes", "Synced", "True", "Applied").await;
        let module = "/apis/innkeeper.dev/v1alpha1/modules/changes";
        arena.merge(module, &json!({"spec": {"serviceAccountName": "victim"}})).await;
        arena.module_says("changes", "Ready", "False", "AccountNotAllowed").await;
        let child = "/api/v1/namespaces/attack-changes/configmaps/good";
        arena.merge(child, &json!({"data": {"a": "broken"}})).await;
        arena.pass(10).await;
        assert_eq!(arena.get(child).await.unwrap()["data"]["a"], "b", "it serves as before");
        assert_eq!(sent_as(&arena, "victim"), 0);
        // The active revision loses its own account too: nothing is left to act as.
        arena
            .merge(
                &format!("{ACCOUNT}/changes"),
                &json!({"metadata": {"annotations": {ANNOTATION: "x"}}}),
            )
            .await;
        arena.module_says("changes", "Serving", "False", "AccountNotAllowed").await;
        // With the old name the new spec is as the first one was, and is used again.
        arena.merge(module, &json!({"spec": {"serviceAccountName": "changes"}})).await;
        arena
            .merge(
                &format!("{ACCOUNT}/changes"),
                &json!({"metadata": {"annotations": {ANNOTATION: "changes"}}}),
            )
            .await;
        arena.module_says("changes", "Ready", "True", "RevisionActive").await;
        assert_eq!(sent_as(&arena, "victim"), 0);
    });
}

#[test]
fn modules_of_one_account_are_allowed_each_for_itself() {
    block_on(async {
        let arena = Arena::start(&[account("shared", Some("left,right"))]).await;
        for name in ["left", "right"] {
            let attack = Attack::new(name, &maker()).spec(json!({"serviceAccountName": "shared"}));
            arena.install(&attack).await;
            let binding = format!(
                "/apis/rbac.authorization.k8s.io/v1/namespaces/attack-{name}/rolebindings/guest-{name}"
            );
            let subject = json!([{"kind": "ServiceAccount", "name": "shared", "namespace": "innkeeper-modules"}]);
            arena.merge(&binding, &json!({"subjects": subject})).await;
        }
        for name in ["left", "right"] {
            arena.primary_says(name, "Synced", "True", "Applied").await;
        }
        let only_right = json!({"metadata": {"annotations": {ANNOTATION: "right"}}});
        arena.merge(&format!("{ACCOUNT}/shared"), &only_right).await;
        arena.module_says("left", "Serving", "False", "AccountNotAllowed").await;
        let child = |name: &str| format!("/api/v1/namespaces/attack-{name}/configmaps/good");
        for name in ["left", "right"] {
            arena.merge(&child(name), &json!({"data": {"a": "broken"}})).await;
        }
        // Longer than a watch: the caches that both read are filled by the sessions of the other
        // one.
        arena.pass(120).await;
        assert_eq!(arena.get(&child("left")).await.unwrap()["data"]["a"], "broken");
        assert_eq!(arena.get(&child("right")).await.unwrap()["data"]["a"], "b");
        arena.merge(&child("right"), &json!({"data": {"a": "broken again"}})).await;
        arena.pass(10).await;
        assert_eq!(arena.get(&child("right")).await.unwrap()["data"]["a"], "b");
    });
}

#[test]
fn deleted_module_whose_account_does_not_allow_it_waits_and_goes_when_it_does() {
    block_on(async {
        let arena = Arena::start(&[]).await;
        let mut described = manifest(&[]);
        described["finalizer"] = json!("hostile.example.dev/cleanup");
        let guest = guest(&described, &json!({"finalized": true}));
        let attack = Attack::new("parting", &guest).may(&["patch"], GROUP, "hostiles");
        arena.install(&attack).await;
        arena.primary_says("parting", "Synced", "True", "Applied").await;
        let set = |value: Value| json!({"metadata": {"annotations": {ANNOTATION: value}}});
        arena.merge(&format!("{ACCOUNT}/parting"), &set(Value::Null)).await;
        arena.module_says("parting", "Serving", "False", "AccountNotAllowed").await;
        arena.pass(5).await;
        let before = sent_as(&arena, "parting");
        let module = "/apis/innkeeper.dev/v1alpha1/modules/parting";
        arena.lab().api().delete(module).await.unwrap();
        arena.pass(120).await;
        assert!(arena.get(module).await.is_some(), "its finalizer is still on its primaries");
        assert_eq!(sent_as(&arena, "parting"), before);
        arena.module_says("parting", "Authorized", "False", "AccountNotAllowed").await;
        arena.merge(&format!("{ACCOUNT}/parting"), &set(json!("parting"))).await;
        arena.pass(90).await;
        assert!(arena.get(module).await.is_none(), "{:#}", arena.module("parting").await["status"]);
        let primary = arena.primary("parting").await;
        assert!(primary["metadata"].get("finalizers").is_none(), "{primary}");
    });
}

#[test]
fn candidate_is_neither_previewed_nor_served_without_consent() {
    block_on(async {
        let arena = Arena::start(&[]).await;
        arena.install(&Attack::new("swapped", &maker())).await;
        arena.primary_says("swapped", "Synced", "True", "Applied").await;
        let digest = arena.module("swapped").await["status"]["digest"].clone();
        arena
            .merge(
                &format!("{ACCOUNT}/swapped"),
                &json!({"metadata": {"annotations": {ANNOTATION: "x"}}}),
            )
            .await;
        arena.module_says("swapped", "Serving", "False", "AccountNotAllowed").await;
        arena.pass(5).await;
        let before = sent_as(&arena, "swapped");
        // A candidate that wants nothing: it would delete what is there.
        let next = Attack::new("swapped", &guest(&manifest(&[]), &json!({})));
        let source = next.objects().into_iter().find(|one| one["kind"] == "ConfigMap").unwrap();
        arena.apply(&source).await;
        arena.pass(400).await;
        assert_eq!(sent_as(&arena, "swapped"), before);
        assert_eq!(arena.module("swapped").await["status"]["digest"], digest);
        arena.module_says("swapped", "Authorized", "False", "AccountNotAllowed").await;
    });
}

#[test]
fn consent_withdrawn_during_a_preview_ends_it_and_the_candidate_serves_after_consent_returns() {
    block_on(async {
        let arena = Arena::start(&[]).await;
        arena.install(&Attack::new("midway", &maker()).has_all_rights()).await;
        arena.primary_says("midway", "Synced", "True", "Applied").await;
        let digest = arena.module("midway").await["status"]["digest"].clone();
        let services = json!({"apiVersion": "v1", "kind": "Service", "plural": "services", "scope": "Namespaced"});
        let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "good"}, "data": {"a": "c"}});
        let next = guest(&manifest(&[services]), &json!({"objects": [{"object": object}]}));
        let next = Attack::new("midway", &next).objects();
        let before = sent_as(&arena, "midway");
        arena.apply(next.iter().find(|one| one["kind"] == "ConfigMap").unwrap()).await;
        // The preview begins by reading the kind that only the candidate declares.
        for _ in 0..60_000 {
            if sent_as(&arena, "midway") > before {
                break;
            }
            arena.lab().pass(std::time::Duration::from_millis(1)).await;
        }
        assert!(sent_as(&arena, "midway") > before, "the preview began");
        assert_eq!(arena.module("midway").await["status"]["digest"], digest, "and has not ended");

        let path = format!("{ACCOUNT}/midway");
        let set = |value: Value| json!({"metadata": {"annotations": {ANNOTATION: value}}});
        arena.merge(&path, &set(Value::Null)).await;
        arena.module_says("midway", "Authorized", "False", "AccountNotAllowed").await;
        let withdrawn = sent_as(&arena, "midway");
        arena.pass(300).await;
        assert_eq!(sent_as(&arena, "midway"), withdrawn, "nothing is sent as the account");
        assert_eq!(arena.module("midway").await["status"]["digest"], digest);
        let child = "/api/v1/namespaces/attack-midway/configmaps/good";
        assert_eq!(arena.get(child).await.unwrap()["data"]["a"], "b");

        arena.merge(&path, &set(json!("midway"))).await;
        arena.module_says("midway", "Authorized", "True", "Granted").await;
        arena.module_says("midway", "Serving", "True", "RevisionActive").await;
        arena.pass(60).await;
        assert_eq!(arena.get(child).await.unwrap()["data"]["a"], "c", "the candidate serves");
    });
}
