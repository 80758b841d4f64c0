//! Secrets and identities.

use innkeeper_hostile_tests::{Arena, block_on, guest};
use serde_json::json;

use crate::leak::{ENCODED, HOLE, granted, leak, quotes, reads_secrets, secret, synced};
use crate::log::{keep_log, logged};

/// Primary, Module and Events of an attack, as text.
async fn texts(arena: &Arena, name: &str) -> String {
    let events = format!("/apis/events.k8s.io/v1/namespaces/attack-{name}/events");
    let primary = arena.primary(name).await;
    let module = arena.module(name).await;
    let events = arena.get(&events).await.unwrap_or_default();
    format!("{}\n{}\n{events}", primary["status"], module["status"])
}

#[test]
fn preview_of_a_candidate_sees_digests_of_granted_secrets() {
    block_on(async {
        keep_log();
        let arena = Arena::start(&[]).await;
        let honest = guest(&reads_secrets(&[]), &json!({}));
        let attack = granted("curious", &honest);
        for object in attack.objects() {
            arena.apply(&object).await;
            if object["kind"] == "Namespace" {
                arena.apply(&secret("api", &attack.home())).await;
            }
        }
        arena.primary_says("curious", "Synced", "True", "Applied").await;
        // The same Module with a candidate that tells what it reads: nobody has approved it.
        let failure = json!({"reason": "Leak", "message": HOLE});
        let next = granted("curious", &leak("curious", 2, &failure));
        let source = next.objects().into_iter().find(|one| one["kind"] == "ConfigMap").unwrap();
        arena.apply(&source).await;
        arena.module_says("curious", "Held", "True", "WouldFail").await;
        let texts = texts(&arena, "curious").await;
        assert!(texts.contains("Leak: "), "the candidate's failure is reported: {texts}");
        assert!(!quotes(&texts), "{texts}");
        let lines = logged();
        assert!(lines.iter().any(|line| line.contains("guest=true")), "the guest logs");
        assert!(!lines.iter().any(|line| quotes(line)), "{lines:#?}");
    });
}

#[test]
fn texts_of_a_guest_never_quote_what_was_granted() {
    let message = format!("it is {HOLE} and so on");
    let condition =
        json!([{"type": "Leak", "status": "True", "reason": "Leak", "message": message}]);
    let event = json!([{"type": "Warning", "reason": "Leak", "message": message}]);
    let bad_name =
        json!({"object": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": HOLE}}});
    let bad_kind = json!({"object": {"apiVersion": "v1", "kind": HOLE, "metadata": {"name": "x"}}});
    let bad_label = json!({"object": {"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "x", "labels": {"a": format!("{HOLE}/")}}}});
    for (name, case, outcome, reason) in [
        (
            "fails",
            2,
            json!({"reason": "Leak", "message": message, "conditions": condition, "events": event}),
            "Leak",
        ),
        ("reasons", 2, json!({"reason": HOLE, "message": "m"}), "Redacted"),
        ("says", 0, json!({"conditions": condition, "events": event}), "Applied"),
        ("kinds", 0, json!({"objects": [bad_kind]}), "UndeclaredKind"),
        ("names", 0, json!({"objects": [bad_name]}), "MalformedObject"),
        ("labels", 0, json!({"objects": [bad_label]}), "MalformedObject"),
        ("members", 0, json!({"objects": [], HOLE: 1}), "OutputUnreadable"),
    ] {
        block_on(async {
            keep_log();
            let arena = Arena::start(&[]).await;
            let attack = granted(name, &leak(name, case, &outcome));
            for object in attack.objects() {
                arena.apply(&object).await;
                if object["kind"] == "Namespace" {
                    arena.apply(&secret("api", &attack.home())).await;
                }
            }
            let status = if reason == "Applied" { "True" } else { "False" };
            let found = synced(&arena, name, status).await;
            let texts = texts(&arena, name).await;
            assert!(!quotes(&texts), "{name}: {texts}");
            let lines = logged();
            assert!(lines.iter().any(|line| line.contains("guest=true")), "{name}: the guest logs");
            let bad: Vec<_> = lines.iter().filter(|line| quotes(line)).collect();
            assert!(bad.is_empty(), "{name}: {bad:#?}");
            assert!(texts.contains("[redacted]") || texts.contains("Redacted"), "{name}: {texts}");
            assert_eq!(found, reason, "{name}: {texts}");
        });
    }
}

#[test]
fn secret_that_holds_a_token_is_never_granted() {
    block_on(async {
        let arena = Arena::start(&[]).await;
        let attack = granted("token", &leak("token", 0, &json!({"status": {"value": HOLE}})));
        let mut token = secret("api", &attack.home());
        token["type"] = json!("bootstrap.kubernetes.io/token");
        for object in attack.objects() {
            arena.apply(&object).await;
            if object["kind"] == "Namespace" {
                arena.apply(&token).await;
            }
        }
        let message = arena.primary_says("token", "Synced", "False", "SecretNotGrantable").await;
        assert!(message.contains("remove it from the Module's spec.secretNames"), "{message}");
        assert!(!quotes(&texts(&arena, "token").await));
    });
}

#[test]
fn granted_secrets_beyond_the_limit_stop_the_run_and_smaller_ones_do_not() {
    block_on(async {
        let arena = Arena::start(&[]).await;
        let attack = granted("large", &guest(&reads_secrets(&[]), &json!({})));
        let mut large = secret("api", &attack.home());
        large["immutable"] = json!(true);
        large["stringData"] = json!({"a": "x".repeat(129 << 10)});
        for object in attack.objects() {
            arena.apply(&object).await;
            if object["kind"] == "Namespace" {
                arena.apply(&large).await;
            }
        }
        arena.primary_says("large", "Synced", "False", "SecretTooLarge").await;
    });
}

#[test]
fn objects_and_status_of_a_granted_guest_may_hold_the_value() {
    block_on(async {
        let arena = Arena::start(&[]).await;
        let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "copy"}, "data": {"a": HOLE}});
        let outcome = json!({"objects": [{"object": object}], "status": {"value": HOLE}});
        let attack = granted("allowed", &leak("allowed", 0, &outcome));
        for object in attack.objects() {
            arena.apply(&object).await;
            if object["kind"] == "Namespace" {
                arena.apply(&secret("api", &attack.home())).await;
            }
        }
        arena.primary_says("allowed", "Synced", "True", "Applied").await;
        let path = "/api/v1/namespaces/attack-allowed/configmaps/copy";
        assert_eq!(arena.get(path).await.unwrap()["data"]["a"], ENCODED);
        assert_eq!(arena.primary("allowed").await["status"]["value"], ENCODED);
    });
}
