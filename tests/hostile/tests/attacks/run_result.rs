//! Guests that claim a better result of their runs than they had.

use innkeeper_hostile_tests::{Arena, Attack, block_on, condition, guest, manifest};
use serde_json::{Value, json};

/// A result that no run had.
fn forged() -> Value {
    json!({"ok": 99, "changed": 99, "skipped": 99, "failures": 0,
        "completion": "2999-01-01T00:00:00Z"})
}

/// A condition of a guest.
fn claim(type_: &str) -> Value {
    json!({"type": type_, "status": "True", "reason": "Forged", "message": "All is well."})
}

/// What the conditions of a primary say of its runs, whatever the case of their type.
fn claims(primary: &Value) -> Vec<&Value> {
    let conditions = primary["status"]["conditions"].as_array().unwrap();
    let is_running = |one: &&Value| {
        one["type"].as_str().is_some_and(|type_| type_.eq_ignore_ascii_case("Running"))
    };
    conditions.iter().filter(is_running).collect()
}

#[test]
fn guest_cannot_forge_the_result_of_its_runs() {
    block_on(async {
        let arena = Arena::start(&[]).await;
        // An object that the host refuses, and every way to say that the run succeeded.
        let status = json!({
            "conditions": [{"type": "Running", "status": "True", "reason": "Forged",
                "message": "All is well.", "ansibleResult": forged()}],
            "ansibleResult": forged(),
            "Running": {"ansibleResult": forged()},
        });
        let desired = json!({
            "objects": [{"object": {"apiVersion": "v1", "kind": "ConfigMap",
                "metadata": {"name": "taken"}}}],
            "status": status,
            "conditions": [claim("running"), claim("Running"), claim("RUNNING")],
        });
        for (name, renewal) in [("quiet", "OnChange"), ("loud", "EachPeriod")] {
            let taken = json!({"apiVersion": "v1", "kind": "ConfigMap",
                "metadata": {"name": "taken", "namespace": format!("attack-{name}")}});
            let attack = Attack::new(name, &guest(&manifest(&[]), &desired))
                .spec(json!({"runResult": renewal, "resyncPeriod": "1s"}));
            let objects = attack.objects();
            arena.apply(&objects[0]).await;
            arena.apply(&taken).await;
            arena.install(&attack).await;
            arena.primary_says(name, "Running", "False", "Failed").await;
            arena.pass(120).await;

            let primary = arena.primary(name).await;
            let [running] = claims(&primary)[..] else { panic!("{primary:#}") };
            assert_eq!(running["type"], "Running");
            assert_eq!(running["message"], "Awaiting next reconciliation");
            let result = &running["ansibleResult"];
            assert_eq!([&result["ok"], &result["changed"], &result["failures"]], [0, 0, 1]);
            assert_ne!(result["completion"], forged()["completion"]);
        }
    });
}

#[test]
fn condition_of_a_guest_with_a_result_is_refused() {
    block_on(async {
        let arena = Arena::start(&[]).await;
        let mut condition_with_result = claim("Running");
        condition_with_result["ansibleResult"] = forged();
        let desired = json!({"conditions": [condition_with_result]});
        let attack = Attack::new("member", &guest(&manifest(&[]), &desired))
            .spec(json!({"runResult": "OnChange"}));
        arena.install(&attack).await;
        arena.primary_says("member", "Running", "False", "Failed").await;
        let primary = arena.primary("member").await;
        let message = &condition(&primary, "Synced").unwrap()["message"];
        assert!(message.as_str().unwrap().contains("ansibleResult"), "{message}");
    });
}

#[test]
fn result_that_a_client_forges_is_replaced_when_its_counts_are_wrong() {
    block_on(async {
        let arena = Arena::start(&[]).await;
        let attack = Attack::new("client", &guest(&manifest(&[]), &json!({"objects": []})))
            .spec(json!({"runResult": "OnChange"}));
        arena.install(&attack).await;
        arena.primary_says("client", "Running", "True", "Successful").await;
        let mut primary = arena.primary("client").await;
        let conditions = primary["status"]["conditions"].as_array_mut().unwrap();
        let running = conditions.iter_mut().find(|one| one["type"] == "Running").unwrap();
        running["ansibleResult"] = forged();
        let path = "/apis/hostile.example.dev/v1/namespaces/attack-client/hostiles/client/status";
        arena.merge(path, &json!({"status": {"conditions": conditions}})).await;
        arena.pass(10).await;
        let primary = arena.primary("client").await;
        let result = &condition(&primary, "Running").unwrap()["ansibleResult"];
        assert_eq!([&result["ok"], &result["skipped"]], [0, 0]);
        assert_ne!(result["completion"], forged()["completion"]);
    });
}
