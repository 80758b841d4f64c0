//! Hostile policies against the running operator: whatever a policy does, its request fails or is
//! denied with a bounded, visible text, its neighbour reviews, and the operator goes on.

use std::time::Duration;

use innkeeper_hostile_tests::block_on;
use innkeeper_hostile_tests::policy_arena::{Answer, PolicyArena};
use innkeeper_tiny_guests::{ALLOWED, LOG, POLICY_MANIFEST, READS, SCRATCH, Tiny, get, list};
use serde_json::{Value, json};

/// Ends a line, moves a cursor, fills a clipboard, turns text around, and is not visible.
const TERMINAL: &str = "x\n\r\u{1b}[2J\u{1b}]52;c;eA==\u{7}\u{9b}2J\u{202e}\u{200b}\u{2028}y";

/// The longest message that the API server gets from the host, in bytes, with what both add.
const MESSAGE_BYTES: usize = 5_000;

fn policy() -> Tiny {
    Tiny::policy(ALLOWED)
}

fn mutating() -> Tiny {
    policy().manifest(&POLICY_MANIFEST.replace("Validate", "Mutate"))
}

/// A verdict that allows with an object.
fn changed(object: &Value) -> String {
    json!({"allowed": true, "object": object}).to_string()
}

/// A ConfigMap with a label.
fn config_map(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "b"},
        "metadata": {"name": name, "labels": {"app": name}}})
}

/// Whether a terminal would show it as it is. A message may have several lines.
fn is_visible(text: &str) -> bool {
    let hides = |c: char| c.is_control() || "\u{202e}\u{200b}\u{2028}".contains(c);
    !text.chars().any(|c| c != '\n' && hides(c))
}

/// Starts an arena with a hostile policy, whose review may take 50 ms, under `Fail`.
async fn arena(guest: &Tiny) -> PolicyArena {
    let spec = json!({"policy": {"failurePolicy": "Fail"}, "limits": {"timeout": "50ms"}});
    PolicyArena::start(&guest.component(), &spec).await
}

/// The answer to a request that a hostile policy reviews. Its neighbour reviews as before and
/// after, no time of the host is lost, and the host ends on request.
async fn attacked(guest: &Tiny) -> Answer {
    let arena = arena(guest).await;
    let answer = arena.create(&config_map("attacked"));
    arena.neighbour_reviews();
    arena.lab().pass(Duration::from_mins(1)).await;
    arena.neighbour_reviews();
    arena.end().await;
    answer
}

#[test]
fn review_without_a_verdict_fails_its_request_only() {
    let deep = format!("{}1{}", r#"{"a":"#.repeat(10_000), "}".repeat(10_000));
    let grow = "(loop $l (drop (memory.grow (i32.const 16)))
        (br_if $l (i32.ge_s (memory.size) (i32.const 0))))";
    let forged = format!(
        "(i32.store offset=4 (i32.const {SCRATCH}) (i32.const 8))
         (i32.store offset=8 (i32.const {SCRATCH}) (i32.const 2147483647))
         (return (i32.const {SCRATCH}))"
    );
    let huge = Tiny::policy(&json!({"allowed": false, "message": "x".repeat(5 << 20)}).to_string());
    let cases = [
        ("endless loop", policy().review_wat("(loop $l (br $l))"), "longer than 50ms"),
        ("endless memory", policy().review_wat(grow), "longer than 50ms"),
        (
            "endless stack",
            policy().with("(func $deep (call $deep))").review_wat("(call $deep)"),
            "stack",
        ),
        ("trap", policy().review_wat("unreachable"), "the guest trapped"),
        ("forged length", policy().review_wat(&forged), "trapped"),
        ("huge verdict", huge, "bytes"),
        (
            "deep verdict",
            mutating().decision(0, &format!(r#"{{"allowed":true,"object":{deep}}}"#)),
            "recursion",
        ),
        ("no JSON", policy().decision(0, "\u{1b}[2J"), "verdict"),
        ("another document", policy().decision(0, "{}"), "allowed"),
        ("number out of range", policy().decision(0, r#"{"allowed":false,"code":1e999}"#), "code"),
    ];
    block_on(async {
        for (name, guest, why) in cases {
            let answer = attacked(&guest).await;
            assert_eq!(answer.code, 500, "{name}: {answer:?}");
            assert!(answer.message.contains(why), "{name}: {:?}", answer.message);
            assert!(answer.message.len() < MESSAGE_BYTES, "{name}: {}", answer.message.len());
            assert!(is_visible(&answer.message), "{name}: {:?}", answer.message);
            assert!(!answer.is_stored, "{name}");
        }
    });
}

#[test]
fn review_that_reads_without_end_fails_its_request_only() {
    let reader = |read: &str| {
        policy()
            .importing(READS)
            .data(SCRATCH, "v1ConfigMapnscm")
            .review_wat(&format!("(loop $l {read} (br $l))"))
    };
    block_on(async {
        for (name, read) in [("get", get()), ("list", list())] {
            let answer = attacked(&reader(&read)).await;
            assert_eq!(answer.code, 500, "{name}: {answer:?}");
            assert!(!answer.is_stored && is_visible(&answer.message), "{name}: {answer:?}");
        }
    });
}

#[test]
fn hostile_texts_of_a_denial_are_cut_and_visible() {
    let long = "x".repeat(1 << 20);
    let many = |text: &str| vec![text.to_owned(); 10_000];
    let annotations: serde_json::Map<String, Value> =
        (0..10_000).map(|index| (format!("{TERMINAL}{index}"), long[..99].into())).collect();
    let verdicts = [
        json!({"allowed": false, "message": long}),
        json!({"allowed": false, "message": TERMINAL.repeat(1_000), "reason": TERMINAL}),
        json!({"allowed": false, "message": TERMINAL, "reason": long, "code": 200}),
        json!({"allowed": false, "message": "", "code": -1, "causes": (0..10_000)
            .map(|_| json!({"field": TERMINAL, "message": TERMINAL, "reason": TERMINAL}))
            .collect::<Vec<_>>()}),
        json!({"allowed": false, "message": "no", "warnings": many(TERMINAL)}),
        json!({"allowed": false, "message": "no", "warnings": many(&long[..300])}),
        json!({"allowed": false, "message": "no", "auditAnnotations": annotations}),
    ];
    block_on(async {
        for (index, verdict) in verdicts.iter().enumerate() {
            let answer = attacked(&Tiny::policy(&verdict.to_string())).await;
            assert_eq!(answer.code, 403, "{index}: {answer:?}");
            assert!(answer.message.contains("denied the request: "), "{index}: {answer:?}");
            assert!(answer.message.len() < MESSAGE_BYTES, "{index}: {}", answer.message.len());
            assert!(is_visible(&answer.message), "{index}: {answer:?}");
            let is_line = |text: &String| is_visible(text) && !text.contains('\n');
            assert!(answer.warnings.iter().all(is_line), "{index}: {answer:?}");
            assert!(answer.warnings.len() <= 16, "{index}: {}", answer.warnings.len());
            assert!(answer.warnings.iter().all(|text| text.len() <= 300), "{index}");
            assert!(!answer.is_stored, "{index}");
        }
    });
}

#[test]
fn warning_with_terminal_escapes_is_visible_on_an_allowed_request() {
    block_on(async {
        let verdict = json!({"allowed": true, "warnings": [TERMINAL, "", "\u{0}", "plain"]});
        let answer = attacked(&Tiny::policy(&verdict.to_string())).await;
        assert_eq!(answer.code, 201, "{answer:?}");
        assert!(answer.warnings.iter().all(|text| is_visible(text)), "{answer:?}");
        assert!(answer.warnings.iter().any(|text| text.contains(r"\\u{1b}[2J")), "{answer:?}");
        assert!(answer.warnings.iter().any(|text| text.contains("plain")), "{answer:?}");
    });
}

#[test]
fn patch_bomb_fails_its_request_only() {
    block_on(async {
        for count in [1_001, 100_000] {
            let answer = attacked(&Tiny::labels_bomb(count)).await;
            assert_eq!(answer.code, 500, "{answer:?}");
            let why = "the policy changes more than 1000 fields";
            assert!(answer.message.contains(why), "{answer:?}");
            assert!(!answer.is_stored);
        }
        // As many as are allowed make no bomb.
        let answer = attacked(&Tiny::labels_bomb(900)).await;
        assert_eq!(answer.code, 201, "{answer:?}");
        let labels = answer.stored["metadata"]["labels"].as_object().unwrap().clone();
        assert_eq!(labels.len(), 901);
    });
}

#[test]
fn forged_object_of_a_verdict_fails_its_request_only() {
    let with = |pointer: &str, value: Value| {
        let mut object = config_map("attacked");
        object["metadata"]["namespace"] = "ns".into();
        let (parent, member) = pointer.rsplit_once('/').unwrap();
        object.pointer_mut(parent).unwrap()[member] = value;
        changed(&object)
    };
    let cases = [
        ("name", with("/metadata/name", "other".into())),
        ("terminal name", with("/metadata/name", TERMINAL.into())),
        ("path as name", with("/metadata/name", "../secrets/a".into())),
        ("namespace", with("/metadata/namespace", "kube-system".into())),
        ("kind", with("/kind", "Secret".into())),
        ("version", with("/apiVersion", "v2".into())),
        (
            "owner",
            with(
                "/metadata/ownerReferences",
                json!([{"apiVersion": "v1",
            "kind": "Node", "name": "a", "uid": "1"}]),
            ),
        ),
        ("finalizer", with("/metadata/finalizers", json!(["example.com/never"]))),
        ("label of the host", with("/metadata/labels", json!({"innkeeper.dev/policy": "a"}))),
        (
            "consent of a user",
            with("/metadata/annotations", json!({"innkeeper.dev/allow-deletion": "true"})),
        ),
        ("no object", r#"{"allowed":true,"object":[1]}"#.to_owned()),
        ("deep object", with("/data", (0..100).fold(json!("x"), |deep, _| json!({"a": deep})))),
        ("large object", with("/data", json!({"a": "x".repeat(3 << 20)}))),
    ];
    block_on(async {
        for (name, verdict) in cases {
            let answer = attacked(&mutating().decision(0, &verdict)).await;
            assert_eq!(answer.code, 500, "{name}: {answer:?}");
            assert!(answer.message.contains("policy hostile failed: "), "{name}: {answer:?}");
            assert!(is_visible(&answer.message), "{name}: {:?}", answer.message);
            assert!(answer.message.len() < MESSAGE_BYTES, "{name}");
            assert!(!answer.is_stored, "{name}");
        }
    });
}

#[test]
fn log_without_end_is_cut_and_the_review_counts() {
    let text = "\u{1b}[2J".repeat(20);
    let code = format!(
        "(loop $l
            (call $log (i32.const 3) (i32.const {SCRATCH}) (i32.const {}))
            (local.set $i (i32.add (local.get $i) (i32.const 1)))
            (br_if $l (i32.lt_u (local.get $i) (i32.const 1000))))",
        text.len()
    );
    block_on(async {
        let guest = Tiny::policy(r#"{"allowed":false,"message":"no"}"#)
            .importing(LOG)
            .data(SCRATCH, &text)
            .review_wat(&code);
        let answer = attacked(&guest).await;
        assert_eq!(answer.code, 403, "{answer:?}");
    });
}

#[test]
fn admission_review_of_more_than_two_mebibytes_is_reviewed_or_refused_by_name() {
    let large = |letter: &str| {
        let mut object = config_map("large");
        object["data"]["a"] = letter.repeat(1_040_000).into();
        object
    };
    let reader =
        || policy().verdict_for(&["zzzz", "yyyy"], r#"{"allowed":false,"message":"both"}"#);
    block_on(async {
        // An update has the object twice, and the policy gets both.
        let spec = json!({"policy": {"failurePolicy": "Fail"}});
        let arena = PolicyArena::start(&reader().component(), &spec).await;
        assert_eq!(arena.create(&large("y")).code, 201);
        let answer = arena.update(&large("z"));
        assert_eq!(answer.code, 403, "{answer:?}");
        assert!(answer.message.ends_with("denied the request: both"), "{answer:?}");
        arena.neighbour_reviews();
        arena.end().await;

        // A guest with less memory than that gets nothing.
        let spec = json!({"policy": {"failurePolicy": "Fail"}, "limits": {"memory": "1900Ki"}});
        let arena = PolicyArena::start(&reader().component(), &spec).await;
        assert_eq!(arena.create(&large("y")).code, 201);
        let answer = arena.update(&large("z"));
        assert_eq!(answer.code, 500, "{answer:?}");
        assert!(answer.message.contains("raise spec.limits.memory"), "{answer:?}");
        arena.neighbour_reviews();
        arena.end().await;
    });
}

#[test]
fn hostile_mutating_policy_under_ignore_changes_nothing() {
    block_on(async {
        for guest in [Tiny::labels_bomb(100_000), mutating().review_wat("unreachable")] {
            let arena = PolicyArena::start(&guest.component(), &json!({"policy": {}})).await;
            let answer = arena.create(&config_map("attacked"));
            assert_eq!(answer.code, 201, "{answer:?}");
            assert_eq!(answer.stored["metadata"]["labels"], json!({"app": "attacked"}));
            arena.end().await;
        }
    });
}
