//! A guest that reads a Secret and shows its value wherever a guest can write.

use innkeeper_hostile_tests::{Arena, Attack, condition, manifest};
use innkeeper_tiny_guests::{LOG, OUTCOME_AT, READS, SCRATCH, Tiny};
use serde_json::{Value, json};

/// The bytes that no text may quote, and their base64.
const VALUE: &str = "hunter2-hunter2-sea";

pub(crate) const ENCODED: &str = "aHVudGVyMi1odW50ZXIyLXNlYQ==";

/// Where a guest's text shows the value; as long as [`ENCODED`].
pub(crate) const HOLE: &str = "****************************";

/// Where the guest finds the answer of its read.
const ANSWER: usize = SCRATCH + 600;

pub(crate) fn secret(name: &str, namespace: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": namespace},
        "data": {"password": ENCODED}})
}

/// A manifest that reads Secrets and owns these kinds.
pub(crate) fn reads_secrets(owned: &[Value]) -> Value {
    let mut manifest = manifest(owned);
    manifest["reads"] =
        json!([{"apiVersion": "v1", "kind": "Secret", "plural": "secrets", "scope": "Namespaced"}]);
    manifest
}

/// A guest that reads Secret `api` in the namespace of `attack` and writes what stands there for
/// its password over each [`HOLE`] of its outcome, and into a log line.
pub(crate) fn leak(attack: &str, case: u8, outcome: &Value) -> Tiny {
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
pub(crate) fn granted(name: &str, guest: &Tiny) -> Attack {
    Attack::new(name, guest).spec(json!({"secretNames": ["api"]})).may(
        &["get", "list", "watch"],
        "",
        "secrets",
    )
}

/// Whether a text quotes the value in any form that is searched for.
pub(crate) fn quotes(text: &str) -> bool {
    [VALUE, ENCODED.trim_end_matches('='), "68756e746572322d68756e746572322d736561"]
        .iter()
        .any(|form| text.contains(form))
}

/// Waits until `Synced` has this status; gives its reason, which is empty if it never has.
pub(crate) async fn synced(arena: &Arena, name: &str, status: &str) -> String {
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
