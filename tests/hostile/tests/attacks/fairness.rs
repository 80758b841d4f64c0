//! Guests and tenants that take more than their share.

use innkeeper_hostile_tests::{Arena, Attack, GROUP, block_on, condition, guest, manifest};
use serde_json::{Value, json};

fn primary(namespace: &str, name: &str) -> Value {
    json!({"apiVersion": format!("{GROUP}/v1"), "kind": "Hostile",
        "metadata": {"name": name, "namespace": namespace}})
}

fn namespace(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
}

/// How many primaries of a namespace have been reported on.
async fn reported(arena: &Arena, namespace: &str) -> usize {
    let list = arena.get(&format!("/apis/{GROUP}/v1/namespaces/{namespace}/hostiles")).await;
    let list = list.unwrap();
    let items = list["items"].as_array().unwrap();
    items.iter().filter(|one| condition(one, "Synced").is_some()).count()
}

#[test]
fn a_primary_is_reconciled_within_a_second_beside_a_flood_of_another_namespace() {
    block_on(async {
        let arena = Arena::start(&[namespace("quiet")]).await;
        // A burst of 100 writes, and five a second beyond it: as 3,000 primaries of three writes
        // each are for 200 a second, in a tenth of the time.
        let spec =
            json!({"namespaces": ["attack-tenants", "quiet"], "limits": {"writesPerSecond": 5}});
        let attack = Attack::new("tenants", &guest(&manifest(&[]), &json!({})));
        arena.install(&attack.spec(spec).has_all_rights()).await;
        arena.primary_says("tenants", "Synced", "True", "Applied").await;
        arena.pass(30).await;

        for number in 0..300 {
            arena.apply(&primary("attack-tenants", &format!("flood-{number:03}"))).await;
        }
        arena.pass(5).await;
        arena.apply(&primary("quiet", "first")).await;
        arena.pass(1).await;

        assert_eq!(reported(&arena, "quiet").await, 1);
        let of_flood = reported(&arena, "attack-tenants").await;
        assert!(of_flood < 200, "the flood ended too early to delay anything: {of_flood}");
        arena.pass(60).await;
        assert_eq!(reported(&arena, "attack-tenants").await, 301, "the flood is only delayed");
    });
}
