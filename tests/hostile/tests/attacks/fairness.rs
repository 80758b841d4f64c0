//! Guests and tenants that take more than their share.

use innkeeper_hostile_tests::{Arena, Attack, GROUP, block_on, condition, guest, manifest};
use innkeeper_lab::Content;
use innkeeper_tiny_guests::{READS, SCRATCH, Tiny};
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
fn primary_is_reconciled_within_a_second_during_a_flood_of_another_namespace() {
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

/// Where a guest's own texts lie in its memory.
const TEXTS: usize = 64 << 10;

/// A reader of ConfigMaps that does this in each run; `$read` reads by the text at `TEXTS` + 11,
/// which is a selector, within the namespace (empty for all) that lies behind it.
fn reader(selector: &str, namespace: &str, code: &str) -> Tiny {
    let read = format!(
        "(func $read (global.set $next (i32.const {HEAP})) (call $list
            (i32.const {TEXTS}) (i32.const 2) (i32.const {}) (i32.const 9)
            (i32.const {}) (i32.const {}) (i32.const {}) (i32.const {}) (i32.const {SCRATCH})))",
        TEXTS + 2,
        TEXTS + 11 + selector.len(),
        namespace.len(),
        TEXTS + 11,
        selector.len(),
    );
    guest(&manifest(&[]), &json!({}))
        .importing(READS)
        .data(TEXTS, &format!("v1ConfigMap{selector}{namespace}"))
        .with(&read)
        .on_reconcile(code)
}

/// Where the answers of reads lie.
const HEAP: usize = 128 << 10;

fn large_config_map(namespace: &str, name: &str, metadata: &Value) -> Value {
    let mut object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata,
        "data": {"large": "x".repeat(900 << 10)}});
    object["metadata"]["namespace"] = namespace.into();
    object["metadata"]["name"] = name.into();
    object
}

#[test]
fn a_list_larger_than_the_memory_of_the_guest_is_refused_before_it_is_joined() {
    block_on(async {
        let arena = Arena::start(&[]).await;
        let attack = Attack::new("lists", &reader("", "attack-lists", "(call $read)"));
        arena.install(&attack.spec(json!({"limits": {"memory": "4Mi"}}))).await;
        arena.primary_says("lists", "Synced", "True", "Applied").await;
        for number in 0..5 {
            let name = format!("large-{number}");
            arena.apply(&large_config_map("attack-lists", &name, &json!({}))).await;
        }
        let message = arena.primary_says("lists", "Synced", "False", "ReadTooLarge").await;
        assert!(message.contains("its memory of 4194304 bytes"), "{message}");
        assert!(message.contains("spec.limits.memory"), "{message}");
    });
}

#[test]
fn a_primary_that_owns_more_than_the_memory_of_the_guest_is_refused_and_recovers() {
    block_on(async {
        let arena = Arena::start(&[]).await;
        let attack = Attack::new("owns", &guest(&manifest(&[]), &json!({})));
        arena.install(&attack.spec(json!({"limits": {"memory": "4Mi"}}))).await;
        arena.primary_says("owns", "Synced", "True", "Applied").await;
        let uid = arena.primary("owns").await["metadata"]["uid"].clone();
        let owner = json!({"apiVersion": format!("{GROUP}/v1"), "kind": "Hostile",
            "name": "owns", "uid": uid, "controller": true});
        for number in 0..5 {
            let metadata = json!({"ownerReferences": [owner]});
            let object = large_config_map("attack-owns", &format!("owned-{number}"), &metadata);
            arena.apply(&object).await;
        }
        let message = arena.primary_says("owns", "Synced", "False", "ObservedTooLarge").await;
        assert!(message.contains("more than 4194304 bytes"), "{message}");
        for number in 0..5 {
            let path = format!("/api/v1/namespaces/attack-owns/configmaps/owned-{number}");
            arena.lab().api().send("DELETE", &path, Content::Json, &json!({})).await.unwrap();
        }
        arena.primary_says("owns", "Synced", "True", "Applied").await;
    });
}

/// Counts from 0 to `count`, writes the count as five digits at an address, and reads each time.
fn count_and_read(count: usize, at: usize) -> String {
    format!(
        "(loop $next_read
            (call $digits (local.get $i) (i32.const {}))
            (call $read)
            (local.set $i (i32.add (local.get $i) (i32.const 1)))
            (br_if $next_read (i32.lt_u (local.get $i) (i32.const {count}))))",
        at + 4
    )
}

const DIGITS: &str = "(func $digits (param $left i32) (param $at i32)
    (local $digit i32)
    (loop $more
        (i32.store8 (local.get $at)
            (i32.add (i32.const 48) (i32.rem_u (local.get $left) (i32.const 10))))
        (local.set $at (i32.sub (local.get $at) (i32.const 1)))
        (local.set $left (i32.div_u (local.get $left) (i32.const 10)))
        (local.set $digit (i32.add (local.get $digit) (i32.const 1)))
        (br_if $more (i32.lt_u (local.get $digit) (i32.const 5)))))";

/// Bytes of the records of a module's reads, as the host tells them; `None` if it has none.
fn recorded_bytes(arena: &Arena, module: &str) -> Option<usize> {
    let line = format!("innkeeper_recorded_read_bytes{{module=\"{module}\"}} ");
    let metrics = arena.lab().running().operator().metrics();
    metrics.lines().find_map(|text| text.strip_prefix(&line)?.parse().ok())
}

/// What is recorded of one primary whose guest reads like this.
fn recorded_of(name: &str, reader: &Tiny) -> usize {
    block_on(async {
        let arena = Arena::start(&[]).await;
        arena.install(&Attack::new(name, &reader.clone().with(DIGITS))).await;
        arena.primary_says(name, "Synced", "True", "Applied").await;
        let bytes = recorded_bytes(&arena, name).unwrap();

        // A change that each of the reads may see still wakes the primary: nothing became less.
        let object = json!({"apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": "seen", "namespace": format!("attack-{name}"), "labels": {"a": "00007"}}});
        let before = arena.reconciles(name);
        arena.apply(&object).await;
        arena.pass(2).await;
        assert!(arena.reconciles(name) > before, "the change wakes its reader");

        let path = format!("/apis/innkeeper.dev/v1alpha1/modules/{name}");
        arena.lab().api().send("DELETE", &path, Content::Json, &json!({})).await.unwrap();
        arena.pass(5).await;
        assert_eq!(recorded_bytes(&arena, name), None, "nothing is left of the module");
        bytes
    })
}

/// All records of these tests: of one primary that reads two kinds at most.
const LITTLE: usize = 4 << 10;

#[test]
fn a_thousand_selectors_of_four_kibibytes_are_recorded_as_one_namespace() {
    let requirements: Vec<_> = (0..690).map(|number| format!("!x{number}")).collect();
    let selector = format!("a=00000,{}", requirements.join(","));
    let code = count_and_read(1_000, TEXTS + 11 + 2);
    let bytes = recorded_of("selectors", &reader(&selector, "attack-selectors", &code));
    assert!(bytes < LITTLE, "{bytes}");
}

#[test]
fn ten_thousand_short_selectors_are_recorded_as_one_namespace() {
    let code = count_and_read(10_000, TEXTS + 11 + 2);
    let bytes = recorded_of("short", &reader("a=00000", "attack-short", &code));
    assert!(bytes < LITTLE, "{bytes}");
}

#[test]
fn lists_of_ten_thousand_namespaces_are_recorded_as_the_whole_kind() {
    let selector = "a";
    // The digits are the end of the namespace's name.
    let namespace = "absurd-00000";
    let at = TEXTS + 11 + selector.len() + namespace.len() - 5;
    let code = count_and_read(10_000, at);
    let bytes = recorded_of("namespaces", &reader(selector, namespace, &code));
    assert!(bytes < LITTLE, "{bytes}");
}
