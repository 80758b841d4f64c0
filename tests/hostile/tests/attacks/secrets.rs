//! Secrets and identities.

use std::io::Write;
use std::sync::{Arc, Mutex};

use innkeeper_hostile_tests::{Arena, Attack, block_on, condition, guest, manifest};
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

/// A guest that reads Secret `api` in the namespace of `attack` and writes what stands there for its
/// password over each [`HOLE`] of its outcome, and into a log line.
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
    let holes: String = text
        .match_indices(HOLE)
        .map(|(hole, _)| format!("(call $fill (i32.const {}))", OUTCOME_AT + hole))
        .collect();
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
    Attack::new(name, guest).spec(json!({"readSecrets": ["api"]})).may(
        &["get", "list", "watch"],
        "",
        "secrets",
    )
}

/// All that the host writes into its log while this lives.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Log {
    fn record(&self) -> tracing::subscriber::DefaultGuard {
        let log = self.clone();
        let subscriber = tracing_subscriber::fmt()
            .with_max_level(tracing::Level::DEBUG)
            .with_ansi(false)
            .with_writer(move || log.clone())
            .finish();
        tracing::subscriber::set_default(subscriber)
    }

    /// The lines that the host itself or a guest wrote, not what a library shows of its requests.
    fn lines(&self) -> Vec<String> {
        let text = String::from_utf8(self.0.lock().unwrap().clone()).unwrap();
        text.lines().filter(|line| line.contains("innkeeper_")).map(str::to_owned).collect()
    }
}

/// Whether a text quotes the value in any form that is searched for.
fn quotes(text: &str) -> bool {
    [VALUE, ENCODED.trim_end_matches('='), "68756e746572322d68756e746572322d736561"]
        .iter()
        .any(|form| text.contains(form))
}

/// Primary, Module and Events of an attack, as text.
async fn said(arena: &Arena, name: &str) -> String {
    let events = format!("/apis/events.k8s.io/v1/namespaces/attack-{name}/events");
    let primary = arena.primary(name).await;
    let module = arena.module(name).await;
    let events = arena.get(&events).await.unwrap_or_default();
    format!("{}\n{}\n{events}", primary["status"], module["status"])
}

#[test]
fn preview_of_a_candidate_sees_digests_of_granted_secrets() {
    block_on(async {
        let log = Log::default();
        let _recording = log.record();
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
        let said = said(&arena, "curious").await;
        assert!(said.contains("Leak: "), "the candidate's failure is told: {said}");
        assert!(!quotes(&said), "{said}");
        let lines = log.lines();
        assert!(lines.iter().any(|line| line.contains("guest=true")), "the guest logs");
        assert!(!lines.iter().any(|line| quotes(line)), "{lines:#?}");
    });
}

#[test]
fn texts_of_a_guest_never_quote_what_was_granted() {
    let message = format!("it is {HOLE} and so on");
    let said_so = json!([{"type": "Leak", "status": "True", "reason": "Leak", "message": message}]);
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
            json!({"reason": "Leak", "message": message, "conditions": said_so, "events": event}),
            "Leak",
        ),
        ("reasons", 2, json!({"reason": HOLE, "message": "m"}), "Redacted"),
        ("says", 0, json!({"conditions": said_so, "events": event}), "Applied"),
        ("kinds", 0, json!({"objects": [bad_kind]}), "UndeclaredKind"),
        ("names", 0, json!({"objects": [bad_name]}), "Invalid"),
        ("labels", 0, json!({"objects": [bad_label]}), "Invalid"),
        ("members", 0, json!({"objects": [], HOLE: 1}), "OutputUnreadable"),
    ] {
        block_on(async {
            let log = Log::default();
            let _recording = log.record();
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
            let said = said(&arena, name).await;
            assert!(!quotes(&said), "{name}: {said}");
            let lines = log.lines();
            assert!(lines.iter().any(|line| line.contains("guest=true")), "{name}: the guest logs");
            let bad: Vec<_> = lines.iter().filter(|line| quotes(line)).collect();
            assert!(bad.is_empty(), "{name}: {bad:#?}");
            assert!(said.contains("[redacted]") || said.contains("Redacted"), "{name}: {said}");
            assert_eq!(found, reason, "{name}: {said}");
        });
    }
}

/// Waits until `Synced` has this status; gives its reason.
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
    let primary = arena.primary(name).await;
    panic!("{name} never had Synced={status}: {:#}", primary["status"]);
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
        assert!(message.contains("remove it from the Module's spec.readSecrets"), "{message}");
        assert!(!quotes(&said(&arena, "token").await));
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
