//! Guests that ask for more than a host should give, seen from outside.

use innkeeper_hostile_tests::{Arena, Attack, block_on, guest, manifest};
use serde_json::json;

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
            ["zero", "tiny", "huge", "large"].iter().map(|name| arena.reconciles(name)).collect();
        arena.pass(60).await;
        for (name, before) in ["zero", "tiny", "huge", "large"].iter().zip(before) {
            let runs = arena.reconciles(name) - before;
            assert!(runs <= 61, "{name}: {runs} runs in a minute");
        }
        assert_eq!(arena.lab().running().operator().stalled(), None);
    });
}
