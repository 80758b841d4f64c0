//! Schemas that take time and memory.

use std::time::{Duration, Instant};

use innkeeper_hostile_tests::{Arena, Attack, block_on, guest, manifest};
use serde_json::{Value, json};

/// Wall-clock time for one attack, with a debug build on a busy machine. A schema that is evaluated
/// without bounds takes hours.
const WALL_CLOCK: Duration = Duration::from_mins(3);

const MODULES: &str = "/apis/innkeeper.dev/v1alpha1/modules";

/// A module whose guest describes this schema, with these parameters.
fn attack(name: &str, schema: &Value, parameters: &Value) -> Attack {
    let mut manifest = manifest(&[]);
    manifest["parametersSchema"] = schema.clone();
    let attack = Attack::new(name, &guest(&manifest, &json!({"objects": []})));
    attack.spec(json!({ "parameters": parameters }))
}

/// A module of a guest that makes one ConfigMap.
fn honest() -> Attack {
    let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "good"}});
    Attack::new("honest", &guest(&manifest(&[]), &json!({"objects": [{"object": object}]})))
}

/// Installs the attack, sees that the host refuses its schema, that a module installed after it is
/// served, and that its Module can be deleted. Gives the message of the refusal.
fn refused(schema: &Value, parameters: &Value) -> String {
    let began = Instant::now();
    let message = block_on(async {
        let arena = Arena::start(&[]).await;
        arena.install(&attack("evil", schema, parameters)).await;
        arena.install(&honest()).await;
        let message = arena.module_says("evil", "Loaded", "False", "InvalidParametersSchema").await;
        arena.primary_says("honest", "Synced", "True", "Applied").await;
        let path = format!("{MODULES}/evil");
        arena.lab().api().delete(&path).await.unwrap();
        arena.pass(60).await;
        assert_eq!(arena.get(&path).await, None);
        message
    });
    assert!(began.elapsed() < WALL_CLOCK, "it took {:?}", began.elapsed());
    message
}

fn expect(schema: &Value, parameters: &Value, expected: &str) {
    let message = refused(schema, parameters);
    assert!(message.contains(expected), "{message}");
}

/// 40 definitions of which each applies the next one twice.
fn doubling() -> Value {
    let mut schema = json!({"$ref": "#/$defs/d0", "$defs": {"d40": {"type": "object"}}});
    for level in 0..40 {
        let next = json!({"$ref": format!("#/$defs/d{}", level + 1)});
        schema["$defs"][format!("d{level}")] = json!({"allOf": [next, next]});
    }
    schema
}

#[test]
fn schema_of_an_honest_guest_is_served_and_its_parameters_are_checked() {
    block_on(async {
        let arena = Arena::start(&[]).await;
        let schema = json!({"type": "object", "required": ["size"],
            "properties": {"size": {"$ref": "#/$defs/size"}},
            "$defs": {"size": {"type": "string", "pattern": "^[a-z]{1,9}$"}}});
        arena.install(&attack("tidy", &schema, &json!({"size": "small"}))).await;
        arena.primary_says("tidy", "Synced", "True", "Applied").await;
        let path = format!("{MODULES}/tidy");
        arena.merge(&path, &json!({"spec": {"parameters": {"size": "LARGE"}}})).await;
        let message = arena.module_says("tidy", "Ready", "False", "InvalidParameters").await;
        assert!(message.starts_with("spec.parameters.size: "), "{message}");
        arena.merge(&path, &json!({"spec": {"parameters": {"size": "large"}}})).await;
        arena.module_says("tidy", "Ready", "True", "RevisionActive").await;
    });
}

#[test]
fn references_that_double_are_refused_and_hold_nothing_up() {
    expect(&doubling(), &json!({}), "more than 200000 steps");
}

#[test]
fn hundred_and_fifty_large_patterns_are_refused() {
    let patterns: Vec<_> =
        (0..150).map(|n| json!({"pattern": format!(r"\p{{L}}{{200}}{n}")})).collect();
    expect(&json!({ "allOf": patterns }), &json!({}), "when it is compiled");
    let patterns: Vec<_> = (0..150).map(|n| json!({"pattern": format!("a{n}")})).collect();
    expect(&json!({ "allOf": patterns }), &json!({}), "more than 64 patterns");
}

#[test]
fn three_mebibytes_of_nested_arrays_are_refused() {
    let wide = Value::Array(vec![json!([[[[[[]]]]]]); 150_000]);
    expect(&json!({ "enum": wide }), &json!({}), "more than");
}

#[test]
fn dynamic_references_are_refused() {
    let schema = json!({"$dynamicAnchor": "node", "allOf": [{"$dynamicRef": "#node"}]});
    expect(&schema, &json!({}), "is not supported");
}

#[test]
fn identity_that_leads_references_outside_is_refused() {
    let schema = json!({"properties": {"a": {"$id": "file:///etc/", "$ref": "#/passwd"}}});
    expect(&schema, &json!({"a": 1}), "$id");
    expect(
        &json!({"$id": "file:///etc/passwd", "$ref": "other"}),
        &json!({}),
        "nothing is fetched",
    );
}

#[test]
fn format_that_compiles_patterns_of_users_is_refused() {
    let schema = json!({"$schema": "http://json-schema.org/draft-07/schema#",
        "properties": {"a": {"format": "regex"}}});
    expect(&schema, &json!({"a": r"(\p{L}{200}){20}"}), "\"regex\" is not supported");
}

#[test]
fn ten_thousand_alternatives_against_large_parameters_are_refused() {
    let alternatives = |count: u32| -> Vec<_> {
        (0..count).map(|n| json!({ "required": [format!("m{n}")] })).collect()
    };
    let large = json!({"all": vec![json!({"m": "x".repeat(20)}); 20_000]});
    let schema = |count| json!({"properties": {"all": {"items": {"anyOf": alternatives(count)}}}});
    expect(&schema(10_000), &large, "more than");
    expect(&schema(1_000), &large, "more than 200000 steps");
}

#[test]
fn parameters_that_take_too_long_leave_the_old_ones_in_force() {
    let began = Instant::now();
    block_on(async {
        let schema = json!({"properties": {"all": {"uniqueItems": true}}});
        let arena = Arena::start(&[]).await;
        arena.install(&attack("slow", &schema, &json!({"all": [1]}))).await;
        arena.primary_says("slow", "Synced", "True", "Applied").await;
        let path = format!("{MODULES}/slow");
        let many: Vec<u32> = (0..50_000).collect();
        arena.merge(&path, &json!({"spec": {"parameters": {"all": many}}})).await;
        arena.module_says("slow", "Ready", "False", "InvalidParametersSchema").await;
        arena.module_says("slow", "Serving", "True", "RevisionActive").await;
        // The guest goes on, and others begin.
        arena.install(&honest()).await;
        arena.primary_says("honest", "Synced", "True", "Applied").await;
        arena.merge(&path, &json!({"spec": {"parameters": {"all": [1, 2]}}})).await;
        arena.module_says("slow", "Ready", "True", "RevisionActive").await;
    });
    assert!(began.elapsed() < WALL_CLOCK, "it took {:?}", began.elapsed());
}

#[test]
fn supervisor_that_rests_is_not_found_hanging() {
    block_on(async {
        let arena = Arena::start(&[]).await;
        arena.install(&honest()).await;
        for _ in 0..20 {
            arena.pass(59).await;
            assert_eq!(arena.lab().running().operator().stalled(), None);
        }
    });
}
