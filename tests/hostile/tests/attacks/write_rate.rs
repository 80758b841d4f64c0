//! Tenants whose primaries want more writes than the module's rate lets them make.

use innkeeper_hostile_tests::{Arena, Attack, GROUP, block_on, condition, manifest};
use innkeeper_tiny_guests::{OUTCOME_AT, SCRATCH, Tiny};
use serde_json::{Value, json};

/// The module's writes in a second, in the long run.
const RATE: usize = 5;
/// The objects of every other primary.
const SMALL_OBJECTS: usize = 3;
/// Where the text lies that the guest answers for other primaries.
const SMALL_AT: usize = 120 << 10;

/// ConfigMaps `big-NN-000` and so on of a primary with the name `big-NN`; of the first `refused`
/// the API server takes none.
fn big_desired(objects: usize, refused: usize) -> String {
    let objects = (0..objects).map(|number| {
        let key = if number < refused { "!" } else { "a" };
        json!({"object": {"apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": format!("big-00-{number:03}")}, "data": {key: ""}}})
    });
    json!({"objects": objects.collect::<Vec<_>>()}).to_string()
}

/// A guest that gives so many objects for a primary with a name like `big-00`, and three for any
/// other.
fn giver(objects: usize, refused: usize) -> Tiny {
    let big = big_desired(objects, refused);
    let small = (0..SMALL_OBJECTS).map(|number| {
        json!({"object": {"apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": format!("small-{number}")}}})
    });
    let small = json!({"objects": small.collect::<Vec<_>>()}).to_string();
    assert!(OUTCOME_AT + big.len() < SMALL_AT && SMALL_AT + small.len() < 128 << 10);
    let mut names = big.match_indices("big-00-").map(|(at, _)| OUTCOME_AT + at + 4);
    let (first, second) = (names.next().unwrap(), names.next().unwrap());
    let answer = format!(
        r"(func $answer (param $at i32) (param $end i32) (result i32) (local $to i32)
            (block $found
                (loop $next
                    (br_if $found (i32.eq (i32.load (local.get $at)) (i32.const 0x2d676962)))
                    (local.set $at (i32.add (local.get $at) (i32.const 1)))
                    (br_if $next (i32.lt_u (local.get $at) (local.get $end))))
                (i32.store (i32.const {}) (i32.const {SMALL_AT}))
                (i32.store (i32.const {}) (i32.const {}))
                (return (i32.const {SCRATCH})))
            (local.set $to (i32.const {first}))
            (loop $copy
                (i32.store16 (local.get $to)
                    (i32.load16_u (i32.add (local.get $at) (i32.const 4))))
                (local.set $to (i32.add (local.get $to) (i32.const {})))
                (br_if $copy (i32.lt_u (local.get $to) (i32.const {}))))
            (i32.store (i32.const {}) (i32.const {OUTCOME_AT}))
            (i32.store (i32.const {}) (i32.const {}))
            (i32.const {SCRATCH}))",
        SCRATCH + 4,
        SCRATCH + 8,
        small.len(),
        second - first,
        OUTCOME_AT + big.len() - 4,
        SCRATCH + 4,
        SCRATCH + 8,
        big.len(),
    );
    Tiny::default()
        .manifest(&manifest(&[]).to_string())
        .outcome(0, &big)
        .data(SMALL_AT, &small)
        .with(&answer)
        .answers(
            "(call $answer (local.get $observed) \
             (i32.add (local.get $observed) (local.get $length)))",
        )
}

fn primary(namespace: &str, name: &str) -> Value {
    json!({"apiVersion": format!("{GROUP}/v1"), "kind": "Hostile",
        "metadata": {"name": name, "namespace": namespace}})
}

/// An arena with the module `writes`, which reconciles `attack-writes` and these namespaces, five
/// writes a second.
async fn arena(namespaces: &[String], giver: &Tiny) -> Arena {
    let objects = namespaces
        .iter()
        .map(|name| json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}));
    let arena = Arena::start(&objects.collect::<Vec<_>>()).await;
    let all: Vec<&str> =
        ["attack-writes"].into_iter().chain(namespaces.iter().map(String::as_str)).collect();
    let spec = json!({"namespaces": all, "limits": {"writesPerSecond": RATE}});
    arena.install(&Attack::new("writes", giver).spec(spec).has_all_rights()).await;
    arena.primary_says("writes", "Synced", "True", "Applied").await;
    arena.pass(30).await;
    arena
}

/// How many ConfigMaps of a namespace have a name that begins like this.
async fn made(arena: &Arena, namespace: &str, prefix: &str) -> usize {
    let list = arena.get(&format!("/api/v1/namespaces/{namespace}/configmaps")).await.unwrap();
    let names = list["items"].as_array().unwrap().iter();
    names.filter(|one| one["metadata"]["name"].as_str().unwrap().starts_with(prefix)).count()
}

/// The status and the reason of the condition `Synced` of a primary.
async fn synced(arena: &Arena, namespace: &str, name: &str) -> Option<(String, String)> {
    let path = format!("/apis/{GROUP}/v1/namespaces/{namespace}/hostiles/{name}");
    let object = arena.get(&path).await.unwrap();
    let found = condition(&object, "Synced")?;
    let text = |member: &str| found[member].as_str().unwrap().to_owned();
    Some((text("status"), text("reason")))
}

fn applied() -> (String, String) {
    ("True".to_owned(), "Applied".to_owned())
}

/// All writes of the module since the host started.
fn writes(arena: &Arena) -> usize {
    let metrics = arena.lab().running().operator().metrics();
    let of_module =
        metrics.lines().filter(|line| line.starts_with("innkeeper_writes_total{module=\"writes\""));
    of_module.map(|line| line.rsplit_once(' ').unwrap().1.parse::<usize>().unwrap()).sum()
}

#[test]
fn a_primary_of_nine_hundred_writes_delays_no_other_namespace_and_is_completed() {
    block_on(async {
        let objects = 900;
        let arena = arena(&["quiet".to_owned()], &giver(objects, 0)).await;
        let before = writes(&arena);
        arena.apply(&primary("attack-writes", "big-00")).await;
        arena.pass(5).await;
        arena.apply(&primary("quiet", "first")).await;
        arena.pass(1).await;
        assert_eq!(synced(&arena, "quiet", "first").await, Some(applied()));
        let of_big = made(&arena, "attack-writes", "big-").await;
        assert!((100..150).contains(&of_big), "{of_big}");
        let condition = synced(&arena, "attack-writes", "big-00").await;
        assert_eq!(condition, Some(("False".to_owned(), "WriteRateLimited".to_owned())));

        // A change in the other namespace is answered as soon.
        let path = "/api/v1/namespaces/quiet/configmaps/small-1";
        arena.lab().api().delete(path).await.unwrap();
        arena.pass(1).await;
        assert!(arena.get(path).await.is_some(), "the deleted object is made again");

        // A burst of 20 s for the namespace, what the other one wrote, and five a second.
        for seconds in 8..=215 {
            arena.pass(1).await;
            let written = writes(&arena) - before;
            assert!(written <= RATE * (seconds + 20) + 20, "{written} writes in {seconds} s");
        }
        assert_eq!(made(&arena, "attack-writes", "big-").await, objects);
        assert_eq!(synced(&arena, "attack-writes", "big-00").await, Some(applied()));
        // 900 objects, and a status each 10 s.
        let written = writes(&arena) - before;
        assert!(written <= objects + 40, "{written}");
    });
}

#[test]
fn ten_large_primaries_share_the_rate_and_delay_no_other_namespace() {
    block_on(async {
        let arena = arena(&["quiet".to_owned()], &giver(300, 0)).await;
        let before = writes(&arena);
        for number in 0..10 {
            arena.apply(&primary("attack-writes", &format!("big-{number:02}"))).await;
        }
        for seconds in 1..=60 {
            if seconds == 10 {
                arena.apply(&primary("quiet", "first")).await;
            }
            arena.pass(1).await;
            if seconds == 10 {
                assert_eq!(synced(&arena, "quiet", "first").await, Some(applied()));
            }
            let written = writes(&arena) - before;
            assert!(written <= RATE * (seconds + 20) + 20, "{written} writes in {seconds} s");
        }
        for number in 0..10 {
            let of_one = made(&arena, "attack-writes", &format!("big-{number:02}")).await;
            assert!(of_one >= 15, "big-{number:02} has {of_one} objects");
        }
        assert!(writes(&arena) - before >= RATE * (60 + 20) - 10, "the rate is used");
    });
}

#[test]
fn first_run_begins_within_a_second_while_ten_namespaces_use_up_the_rate() {
    block_on(async {
        let mut namespaces: Vec<String> = (0..10).map(|number| format!("busy-{number}")).collect();
        namespaces.push("quiet".to_owned());
        let arena = arena(&namespaces, &giver(300, 0)).await;
        let before = writes(&arena);
        for namespace in &namespaces[..10] {
            arena.apply(&primary(namespace, "big-00")).await;
        }
        arena.pass(30).await;
        arena.apply(&primary("quiet", "first")).await;
        arena.pass(1).await;
        assert!(synced(&arena, "quiet", "first").await.is_some());
        assert!(made(&arena, "quiet", "small-").await > 0);
        arena.pass(10).await;
        assert_eq!(synced(&arena, "quiet", "first").await, Some(applied()));
        // A burst of 30 s for the module, one turn and the statuses beyond it, and five a second.
        for seconds in 42..=90 {
            arena.pass(1).await;
            let written = writes(&arena) - before;
            assert!(written <= RATE * (seconds + 30) + 20, "{written} writes in {seconds} s");
        }
        for namespace in &namespaces[..10] {
            let of_one = made(&arena, namespace, "big-").await;
            assert!(of_one >= 20, "{namespace} has {of_one} objects");
        }
    });
}

#[test]
fn refused_objects_of_a_large_primary_are_sent_once_in_a_round_and_keep_no_other_waiting() {
    block_on(async {
        let (objects, refused) = (300, 150);
        let arena = arena(&[], &giver(objects, refused)).await;
        arena.apply(&primary("attack-writes", "big-00")).await;
        arena.pass(8).await;
        let sent = |number: usize| {
            let path = format!("configmaps/big-00-{number:03}");
            arena.log().iter().filter(|line| line.contains(&path) && line.contains("PATCH")).count()
        };
        assert_eq!([sent(0), sent(75), sent(refused - 1)], [1, 1, 1]);
        arena.pass(22).await;
        assert_eq!(made(&arena, "attack-writes", "big-").await, objects - refused);
        let condition = synced(&arena, "attack-writes", "big-00").await.unwrap();
        assert_eq!((&*condition.0, &*condition.1), ("False", "Invalid"));
    });
}
