//! The arena itself: a guest that keeps the contract is served.

use innkeeper_hostile_tests::{Arena, Attack, block_on, guest, manifest};
use serde_json::json;

#[test]
fn a_guest_that_keeps_the_contract_is_applied() {
    block_on(async {
        let arena = Arena::start(&[]).await;
        let object = json!({"apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": "good"}, "data": {"a": "b"}});
        let desired = json!({"objects": [{"object": object}]});
        arena.install(&Attack::new("honest", &guest(&manifest(&[]), &desired))).await;
        arena.primary_says("honest", "Synced", "True", "Applied").await;
        let path = "/api/v1/namespaces/attack-honest/configmaps/good";
        assert_eq!(arena.get(path).await.unwrap()["data"]["a"], "b");
    });
}
