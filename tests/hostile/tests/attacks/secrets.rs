//! Secrets and identities.

use std::cell::RefCell;
use std::io::Write;
use std::sync::Once;

use innkeeper_hostile_tests::{Arena, Attack, GROUP, block_on, condition, guest, manifest};
use innkeeper_tiny_guests::{LOG, OUTCOME_AT, READS, SCRATCH, Tiny};
use serde_json::{Value, json};

/// The bytes that no text may quote, and their base64.
const VALUE: &str = "hunter2-hunter2-sea";
const ENCODED: &str = "aHVudGVyMi1odW50ZXIyLXNlYQ==";

/// Where a guest's text shows the value; as long as [`ENCODED`].
const HOLE: &str = "****************************";

/// Where the guest finds the answer of its read.
const ANSWER: usize = SCRATCH + 600;

fn secret(name: &str, namespace: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": namespace},
        "data": {"password": ENCODED}})
}

/// A manifest that reads Secrets and owns these kinds.
fn reads_secrets(owned: &[Value]) -> Value {
    let mut manifest = manifest(owned);
    manifest["reads"] =
        json!([{"apiVersion": "v1", "kind": "Secret", "plural": "secrets", "scope": "Namespaced"}]);
    manifest
}

/// A guest that reads Secret `api` in the namespace of `attack` and writes what stands there for
/// its password over each [`HOLE`] of its outcome, and into a log line.
fn leak(attack: &str, case: u8, outcome: &Value) -> Tiny {
    let namespace = format!("attack-{attack}");
    let text = outcome.to_string();
    let names = format!("v1Secret{namespace}api");
    let at = |before: usize| SCRATCH + before;
    let read = format!(
        "(call $get (i32.const {}) (i32.const 2) (i32.const {}) (i32.const 6)
            (i32.const {}) (i32.const {}) (i32.const {}) (i32.const 3) (i32.const {ANSWER}))
         (call $find (i32.load (i32.const {})) (i32.load (i32.const {})))",
        at(0),
        at(2),
        at(8),
        namespace.len(),
        at(8 + namespace.len()),
        ANSWER + 4,
        ANSWER + 8,
    );
    let fill = |(hole, _)| format!("(call $fill (i32.const {}))", OUTCOME_AT + hole);
    let holes = text.match_indices(HOLE).map(fill).collect::<Vec<_>>().join(" ");
    // `"password":"` is followed by what stands for the value, up to a quotation mark.
    let find = "(global $found (mut i32) (i32.const 0))
        (func $find (param $at i32) (param $length i32)
            (local $end i32)
            (local.set $end (i32.sub (i32.add (local.get $at) (local.get $length)) (i32.const 12)))
            (loop $next
                (if (i32.gt_u (local.get $at) (local.get $end)) (then unreachable))
                (if (i32.and
                        (i64.eq (i64.load (local.get $at)) (i64.const 0x726f777373617022))
                        (i32.eq (i32.load (i32.add (local.get $at) (i32.const 8))) (i32.const 0x223a2264)))
                    (then (global.set $found (i32.add (local.get $at) (i32.const 12))) (return)))
                (local.set $at (i32.add (local.get $at) (i32.const 1)))
                (br $next)))
        (func $fill (param $to i32)
            (local $i i32)
            (loop $next
                (if (i32.eq (i32.load8_u (i32.add (global.get $found) (local.get $i))) (i32.const 34)) (then (return)))
                (i32.store8 (i32.add (local.get $to) (local.get $i))
                    (i32.load8_u (i32.add (global.get $found) (local.get $i))))
                (local.set $i (i32.add (local.get $i) (i32.const 1)))
                (br_if $next (i32.lt_u (local.get $i) (i32.const 28)))))";
    let log = "(call $log (i32.const 1) (global.get $found) (i32.const 28))";
    Tiny::default()
        .manifest(&reads_secrets(&[]).to_string())
        .outcome(case, &text)
        .importing(Box::leak(format!("{READS}{LOG}").into_boxed_str()))
        .data(SCRATCH, &names)
        .with(find)
        .on_reconcile(&format!("{read} {holes} {log}"))
}

/// An attack whose Module grants Secret `api`.
fn granted(name: &str, guest: &Tiny) -> Attack {
    Attack::new(name, guest).spec(json!({"secretNames": ["api"]})).may(
        &["get", "list", "watch"],
        "",
        "secrets",
    )
}

thread_local! {
    /// What the host of this thread's test has written into its log.
    static LOGGED: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Writes into the log of its thread.
struct Log;

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        LOGGED.with_borrow_mut(|logged| logged.extend_from_slice(bytes));
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Begins to keep what the hosts of all tests log. One subscriber for all threads: whether a line
/// is wanted is remembered for the process.
fn keep_log() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let subscriber = tracing_subscriber::fmt()
            .with_max_level(tracing::Level::DEBUG)
            .with_ansi(false)
            .with_writer(|| Log)
            .finish();
        tracing::subscriber::set_global_default(subscriber).unwrap();
    });
    LOGGED.take();
}

/// The lines that the host itself or a guest logged, not what a library shows of its requests.
fn logged() -> Vec<String> {
    let text = String::from_utf8(LOGGED.take()).unwrap();
    text.lines().filter(|line| line.contains("innkeeper_")).map(str::to_owned).collect()
}

/// Whether a text quotes the value in any form that is searched for.
fn quotes(text: &str) -> bool {
    [VALUE, ENCODED.trim_end_matches('='), "68756e746572322d68756e746572322d736561"]
        .iter()
        .any(|form| text.contains(form))
}

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

/// Waits until `Synced` has this status; gives its reason, which is empty if it never has.
async fn synced(arena: &Arena, name: &str, status: &str) -> String {
    for _ in 0..120 {
        arena.pass(1).await;
        let primary = arena.primary(name).await;
        if let Some(found) = condition(&primary, "Synced")
            && found["status"] == status
        {
            return found["reason"].as_str().unwrap().to_owned();
        }
    }
    String::new()
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
