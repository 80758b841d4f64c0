//! Events, and texts that are too long for Kubernetes.

use innkeeper_hostile_tests::{Arena, Attack, GROUP, block_on, condition, guest, manifest};
use innkeeper_tiny_guests::TIME;
use serde_json::{Value, json};

use crate::objects::{attack, config_map, desires};

#[test]
fn annotation_beyond_kubernetes_limit_is_reported_and_harms_no_other_module() {
    block_on(async {
        let arena = Arena::start(&[]).await;
        let mut object = config_map("huge");
        object["metadata"]["annotations"] = json!({"example.com/text": "x".repeat(300 << 10)});
        arena.install(&attack("huge", &desires("1", &json!([{"object": object}])))).await;
        arena.install(&attack("small", &desires("1", &json!([{"object": config_map("a")}])))).await;
        arena.primary_says("small", "Synced", "True", "Applied").await;
        arena.pass(30).await;
        let primary = arena.primary("huge").await;
        let synced = condition(&primary, "Synced").unwrap();
        assert_eq!(synced["status"], "False", "{synced}");
        assert!(synced["message"].as_str().unwrap().len() <= 5_000, "{synced}");
    });
}

#[test]
fn events_of_a_guest_are_cut_and_their_reasons_are_words() {
    block_on(async {
        let arena = Arena::start(&[]).await;
        let says = |events: Value| guest(&manifest(&[]), &json!({ "events": events }));
        let event = |reason: &str, message: &str| json!({"reason": reason, "message": message});
        let long = "m".repeat(7_000);
        arena.install(&Attack::new("long", &says(json!(vec![event("Long", &long); 32])))).await;
        arena.primary_says("long", "Synced", "True", "Applied").await;
        let path = "/apis/events.k8s.io/v1/namespaces/attack-long/events";
        let events = arena.lab().api().list(path).await.unwrap();
        let notes: Vec<_> = events.iter().filter(|one| one["reason"] == "Long").collect();
        assert_eq!(notes.len(), 1, "the same is written once");
        assert_eq!(notes[0]["note"].as_str().unwrap().len(), 1_024);

        for (name, events) in [
            ("flood", json!(vec![event("Flood", &"m".repeat(100_000)); 32])),
            ("control", json!([event("\u{1b}[2J", "x")])),
            ("newline", json!([event("A\nB", "x")])),
            ("wide", json!([event(&"W".repeat(129), "x")])),
        ] {
            arena.install(&Attack::new(name, &says(events))).await;
            let message = arena.primary_says(name, "Synced", "False", "MalformedStatus").await;
            assert!(!message.contains(|c: char| c.is_control()), "{message:?}");
            let path = format!("/apis/events.k8s.io/v1/namespaces/attack-{name}/events");
            for one in arena.lab().api().list(&path).await.unwrap() {
                assert_eq!(one["reason"], "MalformedStatus", "{one}");
            }
        }
    });
}

#[test]
fn memory_of_events_returns_with_the_primaries_and_with_the_module() {
    block_on(async {
        let arena = Arena::start(&[]).await;
        // Another reason each second, about each primary.
        let events = json!({"events": [{"reason": format!("At{TIME}"), "message": "m".repeat(1_000)}],
            "requeueAfterSeconds": 1});
        let flood = guest(&manifest(&[]), &events).timed();
        arena.install(&Attack::new("flood", &flood)).await;
        let hostiles = format!("/apis/{GROUP}/v1/namespaces/attack-flood/hostiles");
        let remembered = || arena.lab().running().operator().remembered_events();
        let primary = |name: String| {
            json!({"apiVersion": format!("{GROUP}/v1"), "kind": "Hostile",
            "metadata": {"name": name, "namespace": "attack-flood"}})
        };
        // The Module's own Events are remembered for the host.
        arena.primary_says("flood", "Synced", "True", "Applied").await;
        for round in 0..5 {
            for index in 0..4 {
                arena.apply(&primary(format!("p{index}-{round}"))).await;
            }
            arena.pass(10).await;
            assert!(remembered() >= 5, "each primary has Events: {}", remembered());
            for index in 0..4 {
                arena.lab().api().delete(&format!("{hostiles}/p{index}-{round}")).await.unwrap();
            }
            arena.pass(5).await;
            assert!(remembered() <= 2, "round {round}: {} are remembered", remembered());
        }
        let before = remembered();
        arena.lab().api().delete("/apis/innkeeper.dev/v1alpha1/modules/flood").await.unwrap();
        arena.pass(5).await;
        assert_eq!(remembered(), before - 1, "the module's last primary is still there");
    });
}
