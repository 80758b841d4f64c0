//! Guests that ask for more than a host should give, seen from outside.

use innkeeper_hostile_tests::{Arena, Attack, block_on, guest, manifest};
use serde_json::json;

/// How many reconciles of a module have ended well.
fn reconciles(arena: &Arena, module: &str) -> usize {
    let line = format!(
        "controller_runtime_reconcile_total{{controller=\"{module}\",module=\"{module}\",result=\"success\"}} "
    );
    let metrics = arena.lab().running().operator().metrics();
    metrics.lines().find_map(|text| text.strip_prefix(&line)?.parse().ok()).unwrap_or(0)
}

#[test]
fn guest_that_asks_to_be_run_again_at_once_or_never_does_not_spin() {
    block_on(async {
        let arena = Arena::start(&[]).await;
        for (name, after) in [
            ("zero", json!(0)),
            ("tiny", json!(1)),
            ("huge", json!(u64::MAX)),
            ("large", json!(1_u64 << 40)),
        ] {
            let desired = json!({"objects": [], "requeueAfterSeconds": after});
            arena.install(&Attack::new(name, &guest(&manifest(&[]), &desired))).await;
        }
        arena.pass(60).await;
        let before: Vec<usize> =
            ["zero", "tiny", "huge", "large"].iter().map(|name| reconciles(&arena, name)).collect();
        arena.pass(60).await;
        for (name, before) in ["zero", "tiny", "huge", "large"].iter().zip(before) {
            let runs = reconciles(&arena, name) - before;
            assert!(runs <= 61, "{name}: {runs} runs in a minute");
        }
        assert_eq!(arena.lab().running().operator().stalled(), None);
    });
}
