//! Names and texts of guests that reach people and files.

use innkeeper_hostile_tests::{Arena, Attack, block_on, condition, guest, manifest};
use innkeeper_tiny_guests::{LOG, READS, SCRATCH, Tiny, read_error};
use serde_json::{Value, json};

/// Ends a line, moves a cursor, fills a clipboard, turns text around, and is not visible.
const TERMINAL: &str = "x\n\r\u{1b}[2J\u{1b}]52;c;eA==\u{7}\u{9b}2J\u{202e}\u{200b}\u{2028}y";

/// Names that no object of Kubernetes has, or that would be other paths.
const NAMES: [&str; 14] = [
    "a b",
    "a\nb",
    "a\0b",
    "a\u{1b}[2Jb",
    "a\u{202e}b",
    "a\u{200b}b",
    "a\u{2028}b",
    "..",
    "a/b",
    "a%2e",
    "a?b",
    "a#b",
    "Upper",
    "a_b",
];

fn config_map(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}})
}

/// Whether a terminal would show it as it is.
fn is_visible(text: &str) -> bool {
    text.chars().all(|c| !c.is_control() && !"\u{202e}\u{200b}\u{2028}".contains(c))
}

/// What the host sent about an attack so far that holds this text.
fn requests_with(arena: &Arena, text: &str) -> Vec<String> {
    let log = arena.log();
    log.into_iter().filter(|line| line.contains(text) && !line.contains("innkeeper.dev")).collect()
}

#[test]
fn an_object_with_a_hostile_name_is_refused_before_any_request() {
    block_on(async {
        let arena = Arena::start(&[]).await;
        for (index, name) in NAMES.iter().enumerate() {
            let attack = format!("name-{index}");
            let desired = json!({"objects": [{"object": config_map(name)}]});
            arena.install(&Attack::new(&attack, &guest(&manifest(&[]), &desired))).await;
        }
        for (index, name) in NAMES.iter().enumerate() {
            let attack = format!("name-{index}");
            let message = arena.primary_says(&attack, "Synced", "False", "MalformedObject").await;
            assert!(
                message.contains("metadata.name is not a name that Kubernetes allows"),
                "{name:?}: {message}"
            );
            assert!(is_visible(&message), "{name:?}: {message:?}");
            let made = requests_with(&arena, &format!("/attack-{attack}/configmaps/"));
            assert_eq!(made, Vec::<String>::new(), "{name:?}");
        }
    });
}

#[test]
fn hostile_labels_annotations_finalizers_and_references_are_refused() {
    block_on(async {
        let arena = Arena::start(&[]).await;
        let with = |member: &str, value: Value| {
            let mut object = config_map("a");
            object["metadata"][member] = value;
            json!({"objects": [{"object": object}]})
        };
        let keep = |namespace: &str, name: &str| json!({"keep": [{"apiVersion": "v1", "kind": "ConfigMap", "namespace": namespace, "name": name}]});
        let mut list = config_map("a");
        list["items"] = json!([{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "b"}}]);
        let cases = [
            ("label-key", with("labels", json!({TERMINAL: "x"})), "metadata.labels"),
            ("label-value", with("labels", json!({"x": TERMINAL})), "metadata.labels.x"),
            ("annotation", with("annotations", json!({TERMINAL: "x"})), "metadata.annotations"),
            ("finalizer", with("finalizers", json!([TERMINAL])), "metadata.finalizers"),
            ("namespace", with("namespace", TERMINAL.into()), "metadata.namespace"),
            ("keep-name", keep("", TERMINAL), "(keep[0]): name"),
            ("keep-namespace", keep(TERMINAL, "a"), "(keep[0]): namespace"),
            ("list", json!({"objects": [{"object": list}]}), "items is a member of lists"),
        ];
        for (name, desired, _) in &cases {
            arena.install(&Attack::new(name, &guest(&manifest(&[]), desired))).await;
        }
        for (name, _, problem) in &cases {
            let message = arena.primary_says(name, "Synced", "False", "MalformedObject").await;
            assert!(message.contains(problem) && is_visible(&message), "{name}: {message:?}");
            let path = format!("/api/v1/namespaces/attack-{name}/configmaps/a");
            assert_eq!(arena.get(&path).await, None, "{name}");
        }
    });
}

#[test]
fn a_role_may_have_a_name_with_colons_and_no_other_kind_may() {
    block_on(async {
        let arena = Arena::start(&[]).await;
        let role = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role",
            "plural": "roles", "scope": "Namespaced"});
        let owned = manifest(&[role]);
        let object = |api_version: &str, kind: &str| {
            let object = json!({"apiVersion": api_version, "kind": kind,
                "metadata": {"name": "system:x"}});
            json!({"objects": [{"object": object}]})
        };
        let rbac = "rbac.authorization.k8s.io";
        let roles = guest(&owned, &object("rbac.authorization.k8s.io/v1", "Role"));
        let verbs = ["get", "list", "watch", "create", "patch", "delete"];
        arena.install(&Attack::new("colon-role", &roles).may(&verbs, rbac, "roles")).await;
        let others = guest(&owned, &object("v1", "ConfigMap"));
        arena.install(&Attack::new("colon-other", &others).may(&verbs, rbac, "roles")).await;
        arena.primary_says("colon-role", "Synced", "True", "Applied").await;
        arena.primary_says("colon-other", "Synced", "False", "MalformedObject").await;
    });
}

#[test]
fn a_read_of_a_hostile_name_is_not_found_and_asks_nobody() {
    block_on(async {
        let arena = Arena::start(&[]).await;
        for (index, name) in NAMES.iter().enumerate() {
            let attack = format!("read-{index}");
            let home = format!("attack-{attack}");
            let kind = SCRATCH + 2;
            // `get` of the name, and of a name in a namespace of that name.
            let read = |namespace: (usize, usize), name: (usize, usize)| {
                format!(
                    "(call $get (i32.const {SCRATCH}) (i32.const 2) (i32.const {kind}) (i32.const 9) \
                     (i32.const {}) (i32.const {}) (i32.const {}) (i32.const {}) (i32.const 1056)) \
                     (if (i32.eqz (i32.load8_u (i32.const 1056))) (then unreachable)) \
                     (if (i32.ne {} (i32.const 0)) (then unreachable))",
                    namespace.0,
                    namespace.1,
                    name.0,
                    name.1,
                    read_error()
                )
            };
            let home_at = (SCRATCH + 11, home.len());
            let name_at = (SCRATCH + 11 + home.len(), name.len());
            let reader = guest(&manifest(&[]), &json!({}))
                .importing(READS)
                .data(SCRATCH, &format!("v1ConfigMap{home}{name}"))
                .on_reconcile(&format!("{} {}", read(home_at, name_at), read(name_at, home_at)));
            arena.install(&Attack::new(&attack, &reader)).await;
        }
        for (index, name) in NAMES.iter().enumerate() {
            let attack = format!("read-{index}");
            arena.primary_says(&attack, "Synced", "True", "Applied").await;
            let asked = requests_with(&arena, &format!("/attack-{attack}/configmaps/"));
            assert_eq!(asked, Vec::<String>::new(), "{name:?}");
        }
    });
}

#[test]
fn a_manifest_with_hostile_texts_is_refused_in_visible_words() {
    block_on(async {
        let arena = Arena::start(&[]).await;
        let mut cases = Vec::new();
        for (name, pointer, value) in [
            ("m-name", "/name", "x\n---\nkind: ClusterRoleBinding"),
            ("m-terminal", "/name", TERMINAL),
            ("m-version", "/version", "1.0.0\nkind: X"),
            ("m-word", "/version", "on"),
            ("m-group", "/primary/apiVersion", "*/v1"),
            ("m-kind", "/owned/0/kind/kind", TERMINAL),
            ("m-plural", "/owned/0/kind/plural", "*"),
            ("m-list", "/owned/0/kind/kind", "List"),
        ] {
            let mut manifest = manifest(&[]);
            *manifest.pointer_mut(pointer).unwrap() = value.into();
            cases.push((name, guest(&manifest, &json!({}))));
        }
        for (name, guest) in &cases {
            arena.install(&Attack::new(name, guest)).await;
        }
        for (name, _) in &cases {
            let message = arena.module_says(name, "Loaded", "False", "InvalidManifest").await;
            assert!(is_visible(&message), "{name}: {message:?}");
            assert_eq!(arena.module(name).await["status"].get("guest"), None, "{name}");
        }
    });
}

#[test]
fn reasons_and_types_that_are_no_words_are_refused() {
    block_on(async {
        let arena = Arena::start(&[]).await;
        let condition_of = |type_: &str, reason: &str| json!({"conditions": [{"type": type_, "status": "True", "reason": reason}]});
        let event = |reason: &str| json!({"events": [{"reason": reason, "message": "m"}]});
        let cases = [
            ("reason", condition_of("Ready", TERMINAL), "conditions[0].reason"),
            ("type", condition_of(TERMINAL, "Ok"), "conditions[0].type"),
            ("prefix", condition_of("a..b/Ready", "Ok"), "conditions[0].type"),
            ("event", event(TERMINAL), "events[0].reason"),
            ("event-long", event(&"x".repeat(129)), "events[0].reason"),
        ];
        for (name, desired, _) in &cases {
            arena.install(&Attack::new(name, &guest(&manifest(&[]), desired))).await;
        }
        for (name, _, problem) in &cases {
            let message = arena.primary_says(name, "Synced", "False", "MalformedStatus").await;
            assert!(message.contains(problem) && is_visible(&message), "{name}: {message:?}");
        }
    });
}

#[test]
fn a_failure_whose_reason_is_no_word_gets_one_of_the_host() {
    block_on(async {
        let arena = Arena::start(&[]).await;
        let failure = json!({"reason": TERMINAL, "message": "m", "permanent": true});
        let failing =
            Tiny::default().manifest(&manifest(&[]).to_string()).outcome(2, &failure.to_string());
        arena.install(&Attack::new("failing", &failing)).await;
        arena.primary_says("failing", "Synced", "False", "GuestFailed").await;
    });
}

#[test]
fn messages_of_conditions_and_events_are_visible_text_with_lines() {
    block_on(async {
        let arena = Arena::start(&[]).await;
        let message = "first\n\tsecond\u{1b}[2J\u{9b}1A\u{202e}";
        let desired = json!({
            "conditions": [
                {"type": "Ready", "status": "True", "reason": "Ok", "message": message},
                {"type": "Long", "status": "True", "reason": "Ok",
                    "message": "\u{1b}".repeat(30_000)},
                {"type": "Full", "status": "True", "reason": "Ok", "message": "m".repeat(32_768)}],
            "events": [{"type": "Warning", "reason": "Ok", "message": message}]});
        arena.install(&Attack::new("messages", &guest(&manifest(&[]), &desired))).await;
        arena.primary_says("messages", "Synced", "True", "Applied").await;
        let shown = "first\n\tsecond\\u{1b}[2J\\u{9b}1A\\u{202e}";
        assert_eq!(arena.primary_says("messages", "Ready", "True", "Ok").await, shown);
        let primary = arena.primary("messages").await;
        let length =
            |type_: &str| condition(&primary, type_).unwrap()["message"].as_str().unwrap().len();
        assert!(length("Long") <= 32_768, "{}", length("Long"));
        assert_eq!(length("Full"), 32_768);
        let events = "/apis/events.k8s.io/v1/namespaces/attack-messages/events";
        let events = arena.get(events).await.unwrap();
        let notes: Vec<_> =
            events["items"].as_array().unwrap().iter().map(|one| &one["note"]).collect();
        assert!(notes.iter().any(|note| **note == shown), "{notes:#?}");
    });
}

#[test]
fn an_approval_by_first_digits_lets_nothing_serve() {
    block_on(async {
        let arena = Arena::start(&[]).await;
        let desired = json!({"objects": [{"object": config_map("a")}]});
        let attack = Attack::new("approval", &guest(&manifest(&[]), &desired))
            .spec(json!({"rollout": {"strategy": "Manual"}}));
        arena.install(&attack).await;
        arena.module_says("approval", "Held", "True", "NeedsApproval").await;
        let module = arena.module("approval").await;
        let digest = module["status"]["candidate"]["digest"].as_str().unwrap().to_owned();
        let path = "/apis/innkeeper.dev/v1alpha1/modules/approval";
        let approve =
            |digest: &str| json!({"metadata": {"annotations": {"innkeeper.dev/approve": digest}}});
        for digits in [12, 63] {
            arena.merge(path, &approve(&digest[..digits])).await;
            arena.pass(30).await;
            let message = arena.module_says("approval", "Held", "True", "NeedsApproval").await;
            assert!(message.contains("has no effect: it needs all 64 hex digits"), "{message}");
            assert!(message.contains(&digest), "the message names the digest: {message}");
        }
        let made = format!("/api/v1/namespaces/{}/configmaps/a", attack.home());
        assert_eq!(arena.get(&made).await, None);
        arena.merge(path, &approve(&digest)).await;
        let message = arena.module_says("approval", "Held", "False", "NoApprovalNeeded").await;
        assert!(!message.contains("has no effect"), "{message}");
        arena.primary_says("approval", "Synced", "True", "Applied").await;
        assert!(arena.get(&made).await.is_some());
    });
}

#[test]
fn a_trap_quotes_the_last_log_line_in_visible_words() {
    block_on(async {
        let arena = Arena::start(&[]).await;
        let logging = guest(&manifest(&[]), &json!({})).importing(LOG).data(SCRATCH, TERMINAL);
        let logging = logging.on_reconcile(&format!(
            "(call $log (i32.const 3) (i32.const {SCRATCH}) (i32.const {})) unreachable",
            TERMINAL.len()
        ));
        arena.install(&Attack::new("logging", &logging)).await;
        // The last error line stands in the message about the trap.
        let message = arena.primary_says("logging", "Synced", "False", "GuestTrapped").await;
        assert!(is_visible(&message), "{message:?}");
        let module = arena.module("logging").await;
        let text = condition(&module, "Healthy").unwrap()["message"].as_str().unwrap().to_owned();
        assert!(is_visible(&text), "{text:?}");
    });
}
