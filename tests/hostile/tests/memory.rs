//! What the host keeps of a hostile module after the module, its primaries and its namespace are
//! gone, counted at the allocator. One test: its figures are those of the whole process.

#![allow(clippy::unwrap_used, reason = "a test may fail by it")]
#![allow(clippy::print_stdout, reason = "the figures, shown when the test fails")]

use innkeeper_hostile_tests::{Arena, Attack, GROUP, block_on, guest, manifest};
use innkeeper_tiny_guests::{LOG, READS, SCRATCH, TIME, Tiny, get};
use peak_alloc::PeakAlloc;
use serde_json::{Value, json};

#[global_allocator]
static HEAP: PeakAlloc = PeakAlloc;

/// How much more the host may hold afterwards, in percent.
const PERCENT_MAX: usize = 10;
/// Primaries of each hostile module.
const PRIMARIES: usize = 5;

/// Guests that leave as much as they can with the host.
fn shapes() -> Vec<(&'static str, Tiny)> {
    let large = "x".repeat(900 << 10);
    let says = |document: &Value| guest(&manifest(&[]), document);
    let events: Vec<Value> = (0..30)
        .map(|index| json!({"reason": "Flood", "message": format!("{index} {}", "x".repeat(20 << 10))}))
        .collect();
    let objects: Vec<Value> = (0..100)
        .map(|index| {
            json!({"object": {"apiVersion": "v1", "kind": "ConfigMap",
                "metadata": {"name": format!("many-{index}")}, "data": {"a": "x".repeat(512)}}})
        })
        .collect();
    let conditions: Vec<Value> = (0..60)
        .map(|index| json!({"type": format!("Type{index}"), "status": "False", "reason": "Because", "message": "x".repeat(3 << 10)}))
        .collect();
    let reads = format!(
        "(loop $l {} (br_if $l (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) \
         (i32.const 5000))))",
        get()
    );
    let lines = format!(
        "(loop $l (call $log (i32.const 1) (i32.const {SCRATCH}) (i32.const 11)) \
         (br_if $l (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (i32.const 5000))))"
    );
    vec![
        ("events-of-any-length", says(&json!({"events": [{"reason": "Flood", "message": large}]}))),
        ("many-events", says(&json!({ "events": events }))),
        (
            "events-by-the-clock",
            says(&json!({"events": [{"reason": "Again", "message": TIME}], "requeueAfterSeconds": 1}))
                .timed(),
        ),
        ("large-failure", says(&json!({})).outcome(2, &failure(&large))),
        ("many-objects", says(&json!({ "objects": objects }))),
        ("many-conditions", says(&json!({ "conditions": conditions }))),
        (
            "many-reads",
            says(&json!({})).importing(READS).data(SCRATCH, "v1ConfigMapnscm").on_reconcile(&reads),
        ),
        (
            "many-log-lines",
            says(&json!({})).importing(LOG).data(SCRATCH, "flood flood").on_reconcile(&lines),
        ),
    ]
}

fn failure(message: &str) -> String {
    json!({"reason": "Broken", "message": message}).to_string()
}

/// Bytes that the operator holds, once a hostile module has been there and is gone.
fn held(name: &str, hostile: Option<&Tiny>) -> usize {
    let (before, simulator) = block_on(async {
        let arena = Arena::start(&[]).await;
        let honest = guest(&manifest(&[]), &json!({}));
        arena.install(&Attack::new("honest", &honest)).await;
        arena.primary_says("honest", "Synced", "True", "Applied").await;
        if let Some(guest) = hostile {
            let attack = Attack::new(name, guest);
            arena.install(&attack).await;
            for index in 1..PRIMARIES {
                let primary = json!({"apiVersion": format!("{GROUP}/v1"), "kind": "Hostile",
                    "metadata": {"name": format!("more-{index}"), "namespace": attack.home()}});
                arena.apply(&primary).await;
            }
            arena.pass(60).await;
            arena.uninstall(&attack).await;
        }
        arena.pass(600).await;
        (HEAP.current_usage(), arena.end().await)
    });
    // The runtime is gone too, and with it all that its tasks held.
    let after = HEAP.current_usage();
    assert!(!simulator.log().is_empty(), "the simulated cluster is still there");
    before - after
}

#[test]
fn memory_returns_when_a_hostile_module_is_deleted() {
    // The first run pays for what is made once.
    held("honest", None);
    let alone = held("honest", None);
    println!("{alone} bytes without a hostile module");
    let most = alone + alone * PERCENT_MAX / 100;
    let mut above = Vec::new();
    for (name, guest) in shapes() {
        let now = held(name, Some(&guest));
        println!("{now} bytes after {name}");
        if now > most {
            above.push(format!("{name}: {now} bytes, at most {most}"));
        }
    }
    assert!(above.is_empty(), "the host keeps memory of modules that are gone: {above:#?}");
}
