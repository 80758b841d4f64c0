//! Value sources: values that the host copies into desired objects, unseen by the guest.

use innkeeper_hostile_tests::{
    Arena, Attack, GROUP, MODULES, RBAC, block_on, condition, guest, manifest,
};
use innkeeper_tiny_guests::Tiny;
use serde_json::{Value, json};

use crate::leak::{ENCODED, HOLE, leak, quotes};
use crate::log::{keep_log, logged};

/// The path of the source of most attacks.
const SOURCE: &str = "/api/v1/namespaces/central/secrets/pull";

fn namespace(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
}

pub(crate) fn secret(namespace: &str, name: &str, data: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": namespace},
        "data": data})
}

/// The Secret `central/pull` with the value that no text may quote.
pub(crate) fn source() -> Value {
    secret("central", "pull", &json!({ "password": ENCODED }))
}

/// A cluster with the source.
pub(crate) async fn arena() -> Arena {
    Arena::start(&[namespace("central"), source()]).await
}

pub(crate) fn owns_secrets() -> Value {
    manifest(&[
        json!({"apiVersion": "v1", "kind": "Secret", "plural": "secrets", "scope": "Namespaced"}),
    ])
}

/// The value source `central/pull`, of all its keys.
pub(crate) fn pull() -> Value {
    json!({"kind": "Secret", "namespace": "central", "name": "pull"})
}

/// A desired Secret with the values of a source.
pub(crate) fn copy(name: &str, source: &Value) -> Value {
    json!({"object": {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}},
        "valuesFrom": [source]})
}

/// An attack with all rights whose Module grants these sources, to every namespace.
pub(crate) fn granted(name: &str, guest: &Tiny, sources: &[Value]) -> Attack {
    let sources: Vec<Value> = sources
        .iter()
        .map(|source| {
            let mut source = source.clone();
            if source.get("toNamespaces").is_none() {
                source["toNamespaces"] = json!(["*"]);
            }
            source
        })
        .collect();
    let spec = json!({"namespaces": [], "selector": {"matchFields": [
        {"key": "metadata.name", "operator": "In", "values": [name]}]}, "valueSources": sources});
    Attack::new(name, guest).spec(spec).has_all_rights()
}

/// An attack whose guest always desires these objects.
pub(crate) fn desires(name: &str, objects: &[Value], sources: &[Value]) -> Attack {
    granted(name, &guest(&owns_secrets(), &json!({ "objects": objects })), sources)
}

pub(crate) fn secret_path(attack: &str, name: &str) -> String {
    format!("/api/v1/namespaces/attack-{attack}/secrets/{name}")
}

/// How many requests for an object a module has sent.
pub(crate) fn requests(arena: &Arena, module: &str, verb: &str, path: &str) -> usize {
    crate::kinds::requests(arena, module, path).iter().filter(|line| line.contains(verb)).count()
}

/// Everything about an attack that somebody may read, but its Secrets.
pub(crate) async fn texts(arena: &Arena, name: &str) -> String {
    let events = format!("/apis/events.k8s.io/v1/namespaces/attack-{name}/events");
    let events = arena.get(&events).await.unwrap_or_default();
    let (primary, module) = (arena.primary(name).await, arena.module(name).await);
    let metrics = arena.lab().running().operator().metrics();
    format!("{primary}\n{module}\n{events}\n{metrics}")
}

/// What the host has logged that quotes the value.
pub(crate) fn quoting() -> Vec<String> {
    let mut lines = logged();
    assert!(lines.len() > 5, "the host logs");
    lines.retain(|line| quotes(line));
    lines
}

#[test]
fn source_key_or_target_beyond_the_grant_is_refused_and_the_source_is_never_read() {
    let with = |member: &str, value: Value| {
        let mut copy = copy("copy", &pull());
        copy[member] = value;
        copy
    };
    let mut key = pull();
    key["keys"] = json!({"other": "x"});
    let of_map = json!({"object": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "copy"}},
        "valuesFrom": [pull()]});
    let annotated = {
        let mut copy = copy("copy", &pull());
        copy["object"]["metadata"]["annotations"] = json!({"innkeeper.dev/copied-keys": "[]"});
        copy
    };
    // With these two, the API server's answer to a guess would confirm it.
    let mut immutable = copy("copy", &pull());
    immutable["object"]["immutable"] = json!(true);
    let guess = secret("attack-guess", "copy", &json!({ "password": ENCODED }));
    let guess = json!({"object": guess, "policy": ["merge"]});
    let mut narrow = pull();
    narrow["keys"] = json!(["password"]);
    let mut elsewhere = pull();
    elsewhere["toNamespaces"] = json!(["other"]);
    let mut map_grant = pull();
    map_grant["kind"] = json!("ConfigMap");
    block_on(async {
        let arena = arena().await;
        // Another Module has the grant that these lack.
        arena.install(&desires("honest", &[copy("copy", &pull())], &[pull()])).await;
        arena.primary_says("honest", "Synced", "True", "Applied").await;
        for (name, object, sources, reason) in [
            ("none", copy("copy", &pull()), vec![], "ValueSourceNotGranted"),
            ("kind", copy("copy", &pull()), vec![map_grant], "ValueSourceNotGranted"),
            ("key", copy("copy", &key), vec![narrow.clone()], "ValueSourceNotGranted"),
            ("all", copy("copy", &pull()), vec![narrow], "ValueSourceNotGranted"),
            ("target", copy("copy", &pull()), vec![elsewhere], "ValueSourceNotGranted"),
            ("map", of_map, vec![pull()], "MalformedObject"),
            ("merge", with("policy", json!(["merge"])), vec![pull()], "MalformedObject"),
            ("orphan", with("policy", json!(["orphan"])), vec![pull()], "MalformedObject"),
            ("immutable", immutable, vec![pull()], "MalformedObject"),
            ("guess", guess, vec![pull()], "MalformedObject"),
            ("mark", annotated, vec![pull()], "MalformedObject"),
        ] {
            arena.install(&desires(name, &[object], &sources)).await;
            let message = arena.primary_says(name, "Synced", "False", reason).await;
            assert!(message.len() < 1_000 && !quotes(&message), "{name}: {message}");
            assert_eq!(requests(&arena, name, "GET", SOURCE), 0, "{name}");
            assert_eq!(arena.get(&secret_path(name, "copy")).await, None, "{name}");
        }
        assert_eq!(requests(&arena, "honest", "GET", SOURCE), 1, "the log shows such a request");
    });
}

#[test]
fn no_byte_of_a_source_reaches_the_guest_or_anything_that_people_read() {
    let seen = json!({"value": HOLE});
    let says = json!([{"type": "Warning", "reason": "Leak", "message": format!("it is {HOLE}")}]);
    // One guest reads the source, the other one the copy.
    for (name, made, from, shown) in [
        (
            "source",
            "copy",
            json!({"kind": "Secret", "namespace": "attack-source", "name": "api"}),
            "value source",
        ),
        ("copy", "api", pull(), "copied"),
    ] {
        block_on(async {
            keep_log();
            let arena = arena().await;
            let outcome = json!({"objects": [copy(made, &from)], "status": seen, "events": says});
            // The first run of the second guest finds no copy to read.
            let reader = leak(name, 0, &outcome).manifest(&owns_secrets().to_string());
            let first = granted(
                name,
                &guest(&owns_secrets(), &json!({"objects": [copy(made, &from)]})),
                std::slice::from_ref(&from),
            );
            let attack = granted(name, &reader, std::slice::from_ref(&from));
            for object in first.objects() {
                arena.apply(&object).await;
                if object["kind"] == "Namespace" && name == "source" {
                    arena
                        .apply(&secret("attack-source", "api", &json!({ "password": ENCODED })))
                        .await;
                }
            }
            arena.primary_says(name, "Synced", "True", "Applied").await;
            assert_eq!(
                arena.get(&secret_path(name, made)).await.unwrap()["data"]["password"],
                ENCODED
            );
            // The candidate is previewed, and becomes active.
            let component = attack.objects().into_iter().find(|one| one["kind"] == "ConfigMap");
            arena.apply(&component.unwrap()).await;
            for _ in 0..60 {
                arena.pass(2).await;
                if arena.primary(name).await["status"]["value"] != Value::Null {
                    break;
                }
            }
            let found = arena.primary(name).await["status"]["value"].clone();
            let found = found.as_str().unwrap_or_default();
            assert_eq!(found.trim_end_matches('*'), shown, "{name}");
            let texts = texts(&arena, name).await;
            assert!(!quotes(&texts), "{name}: {texts}");
            assert_eq!(quoting(), [""; 0], "{name}");
            // The annotations of the copy hold no hash of the value without a key.
            let annotations =
                arena.get(&secret_path(name, made)).await.unwrap()["metadata"]["annotations"]
                    .clone();
            assert!(!quotes(&annotations.to_string()), "{name}: {annotations}");
        });
    }
}

/// Has a webhook refuse these operations on Secrets, with a message that quotes the values.
pub(crate) async fn quote_in_refusals(arena: &Arena, operations: &[&str]) {
    let url = "https://hooks.example.dev/quotes";
    arena.lab().simulator().webhook(url, |review| {
        let request = &review["request"];
        let data = (&request["object"]["data"], &request["oldObject"]["data"]);
        let message = format!("refused: {data:?} and hunter2-hunter2-sea");
        Some(json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
            "response": {"uid": request["uid"], "allowed": false, "status": {"message": message}}}))
    });
    arena
        .apply(&json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
            "metadata": {"name": "quotes"},
            "webhooks": [{"name": "quotes.example.dev", "clientConfig": {"url": url}, "sideEffects": "None",
                "admissionReviewVersions": ["v1"], "failurePolicy": "Fail",
                "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": operations,
                    "resources": ["secrets"], "scope": "Namespaced"}]}]}))
        .await;
}

#[test]
fn webhook_that_quotes_the_copy_is_not_quoted() {
    block_on(async {
        keep_log();
        let arena = arena().await;
        quote_in_refusals(&arena, &["CREATE", "UPDATE"]).await;
        arena.install(&desires("quoted", &[copy("copy", &pull())], &[pull()])).await;
        for _ in 0..60 {
            arena.pass(2).await;
            if condition(&arena.primary("quoted").await, "Synced").is_some() {
                break;
            }
        }
        let texts = texts(&arena, "quoted").await;
        assert!(texts.contains("the API server's message is hidden"), "{texts}");
        assert!(!quotes(&texts), "{texts}");
        assert_eq!(quoting(), [""; 0]);
    });
}

#[test]
fn source_that_becomes_a_token_or_too_large_or_vanishes_is_not_copied() {
    block_on(async {
        let arena = arena().await;
        arena.install(&desires("moving", &[copy("copy", &pull())], &[pull()])).await;
        arena.primary_says("moving", "Synced", "True", "Applied").await;
        let path = secret_path("moving", "copy");
        let before = arena.get(&path).await.unwrap();

        let many: serde_json::Map<_, _> =
            (0..10_000).map(|number| (format!("k{number}"), json!("eA=="))).collect();
        let mut token = secret("central", "pull", &json!({"token": "eA=="}));
        token["type"] = json!("bootstrap.kubernetes.io/token");
        for (object, reason) in [
            (token, "SecretNotGrantable"),
            (secret("central", "pull", &Value::Object(many)), "ValuesTooLarge"),
        ] {
            arena.lab().api().delete(SOURCE).await.unwrap();
            arena.primary_says("moving", "Synced", "False", "ValueSourceMissing").await;
            arena.apply(&object).await;
            arena.primary_says("moving", "Synced", "False", reason).await;
            let copy = arena.get(&path).await.unwrap();
            assert_eq!((&copy["data"], &copy["type"]), (&before["data"], &before["type"]));
        }

        // Two sources that each fit, and together do not.
        let large = "AAAA".repeat(190 << 10);
        for name in ["a", "b"] {
            arena.apply(&secret("central", name, &json!({ name: large }))).await;
        }
        let sources =
            ["a", "b"].map(|name| json!({"kind": "Secret", "namespace": "central", "name": name}));
        let object = json!({"object": {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "copy"}},
            "valuesFrom": sources});
        arena.install(&desires("large", &[object], &sources)).await;
        let message = arena.primary_says("large", "Synced", "False", "ValuesTooLarge").await;
        assert!(message.contains("at most 256 keys and 1024 KiB"), "{message}");
        assert_eq!(arena.get(&secret_path("large", "copy")).await, None);
    });
}

#[test]
fn modules_that_copy_in_a_circle_settle() {
    block_on(async {
        let arena = arena().await;
        let of =
            |space: &str, name: &str| json!({"kind": "Secret", "namespace": space, "name": name});
        let (x, y) = (of("attack-left", "x"), of("attack-right", "y"));
        arena.install(&desires("left", &[copy("x", &y)], &[y])).await;
        arena.install(&desires("right", &[copy("y", &x)], &[x])).await;
        for name in ["left", "right"] {
            arena.primary_says(name, "Synced", "False", "ValueSourceMissing").await;
        }
        // A tenant starts the circle, and lets the module have its Secret.
        arena.apply(&secret("attack-left", "x", &json!({ "password": ENCODED }))).await;
        arena.primary_says("right", "Synced", "True", "Applied").await;
        let adopt = json!({"metadata": {"annotations": {"innkeeper.dev/adopt": "true"}}});
        arena
            .merge("/apis/hostile.example.dev/v1/namespaces/attack-left/hostiles/left", &adopt)
            .await;
        arena.primary_says("left", "Synced", "True", "Applied").await;
        arena.pass(30).await;
        let writes = |arena: &Arena| {
            requests(arena, "left", "PATCH", "/secrets/")
                + requests(arena, "right", "PATCH", "/secrets/")
        };
        let settled = writes(&arena);
        assert!(settled > 0 && settled < 10, "{settled} writes until the circle settled");
        arena.pass(600).await;
        assert_eq!(writes(&arena), settled);
        let copy = arena.get(&secret_path("left", "x")).await.unwrap();
        assert_eq!(copy["data"], json!({ "password": ENCODED }));
    });
}

#[test]
fn source_that_changes_all_the_time_stays_within_the_write_rate_and_delays_nobody() {
    block_on(async {
        let arena = arena().await;
        let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "good"}});
        let copies: Vec<Value> =
            (0..5).map(|number| copy(&format!("copy-{number}"), &pull())).collect();
        let mut attack = desires("rotating", &copies, &[pull()]);
        let mut spec = attack.objects().pop().unwrap();
        spec = json!({"limits": {"writesPerSecond": 2}, "namespaces": [], "valueSources": [
            {"kind": "Secret", "namespace": "central", "name": "pull", "toNamespaces": ["*"]}],
            "selector": {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [spec["metadata"]["name"]]}]}});
        attack = attack.spec(spec);
        arena.install(&attack).await;
        arena.primary_says("rotating", "Synced", "True", "Applied").await;
        arena.pass(60).await;
        let before = requests(&arena, "rotating", "PATCH", "/secrets/");
        for number in 0..300_u32 {
            let value = json!({ "password": format!("{:08}", number) });
            arena.merge(SOURCE, &json!({ "data": value })).await;
            arena.lab().pass(std::time::Duration::from_millis(100)).await;
            if number == 150 {
                arena.install(&desires("quiet", &[json!({ "object": object })], &[])).await;
                arena.primary_says("quiet", "Synced", "True", "Applied").await;
            }
        }
        let writes = requests(&arena, "rotating", "PATCH", "/secrets/") - before;
        // A burst of 20 times the rate, and 2 a second in the half minute and what the rest took.
        assert!(writes < 150, "{writes} writes of copies");
        arena.pass(120).await;
        let copy = arena.get(&secret_path("rotating", "copy-4")).await.unwrap();
        assert_eq!(copy["data"]["password"], "00000299");
    });
}

#[test]
fn copy_with_the_name_of_another_secret_neither_overwrites_nor_opens_it() {
    block_on(async {
        keep_log();
        let arena = arena().await;
        // The name of a Secret of a tenant.
        let attack = desires("taken", &[copy("theirs", &pull())], &[pull()]);
        for object in attack.objects() {
            arena.apply(&object).await;
            if object["kind"] == "Namespace" {
                arena.apply(&secret("attack-taken", "theirs", &json!({"own": "eA=="}))).await;
            }
        }
        arena.primary_says("taken", "Synced", "False", "Conflict").await;
        let theirs = arena.get(&secret_path("taken", "theirs")).await.unwrap();
        assert_eq!(theirs["data"], json!({"own": "eA=="}));

        // The name of a Secret whose values the Module grants.
        let outcome = json!({"objects": [copy("api", &pull())], "status": {"value": HOLE}});
        let reader = leak("named", 0, &outcome).manifest(&owns_secrets().to_string());
        let honest = guest(&owns_secrets(), &json!({"objects": [copy("api", &pull())]}));
        let grant = |guest: &Tiny| {
            let attack = granted("named", guest, &[pull()]);
            let module = attack.objects().into_iter().find(|one| one["kind"] == "Module").unwrap();
            let mut spec = module["spec"].clone();
            spec["secretNames"] = json!(["api"]);
            attack.spec(spec)
        };
        arena.install(&grant(&honest)).await;
        let message = arena.primary_says("named", "Synced", "False", "SecretNotGrantable").await;
        assert!(message.contains("it is a copy of a value source"), "{message}");
        let next = grant(&reader).objects();
        arena.apply(next.iter().find(|one| one["kind"] == "ConfigMap").unwrap()).await;
        arena.pass(60).await;
        let texts = texts(&arena, "named").await;
        assert!(!quotes(&texts), "{texts}");
        assert_eq!(quoting(), [""; 0]);
    });
}

#[test]
fn account_that_may_only_get_the_source_copies_nothing_and_the_missing_right_is_named() {
    block_on(async {
        let arena = arena().await;
        let all = ["get", "list", "watch", "create", "patch", "delete"];
        let mut spec =
            json!({"namespaces": ["attack-narrow", "central"], "valueSources": [pull()]});
        spec["valueSources"][0]["toNamespaces"] = json!(["attack-narrow"]);
        let guest = guest(&owns_secrets(), &json!({"objects": [copy("copy", &pull())]}));
        let attack = Attack::new("narrow", &guest).spec(spec).may(&all, "", "secrets");
        let meta = json!({"name": "narrow", "namespace": "central"});
        let all_of = |group: &str, resource: &str| json!({"apiGroups": [group], "resources": [resource], "verbs": all});
        let mut rules = vec![
            all_of(GROUP, "hostiles"),
            all_of("", "configmaps"),
            json!({"apiGroups": [""], "resources": ["secrets"], "resourceNames": ["pull"], "verbs": ["get"]}),
        ];
        let role_of = |rules: &[Value]| json!({"apiVersion": format!("{RBAC}/v1"), "kind": "Role", "metadata": meta, "rules": rules});
        arena.apply(&role_of(&rules)).await;
        arena
            .apply(
                &json!({"apiVersion": format!("{RBAC}/v1"), "kind": "RoleBinding", "metadata": meta,
                "roleRef": {"apiGroup": RBAC, "kind": "Role", "name": "narrow"},
                "subjects": [{"kind": "ServiceAccount", "name": "narrow", "namespace": MODULES}]}),
            )
            .await;
        arena.install(&attack).await;
        let message = arena.module_says("narrow", "Authorized", "False", "Forbidden").await;
        assert!(message.contains("may not list secrets in namespace central"), "{message}");
        let message =
            arena.primary_says("narrow", "Synced", "False", "ValueSourceUnreadable").await;
        assert!(message.contains("may not list secrets in namespace central"), "{message}");

        rules
            .push(json!({"apiGroups": [""], "resources": ["secrets"], "verbs": ["list", "watch"]}));
        arena.apply(&role_of(&rules)).await;
        arena.primary_says("narrow", "Synced", "True", "Applied").await;
        let copy = arena.get(&secret_path("narrow", "copy")).await.unwrap();
        assert_eq!(copy["data"]["password"], ENCODED);
    });
}

#[test]
fn source_in_a_namespace_of_innkeeper_is_no_valid_grant() {
    block_on(async {
        let arena = arena().await;
        for (name, space, key) in [
            ("host", "innkeeper-system", "innkeeper-digest-key"),
            ("modules", "innkeeper-modules", "anything"),
        ] {
            let source = json!({"kind": "Secret", "namespace": space, "name": key});
            arena.install(&desires(name, &[copy("copy", &source)], &[source])).await;
            let message = arena.module_says(name, "Ready", "False", "InvalidSpec").await;
            assert!(message.contains("spec.valueSources[0].namespace"), "{message}");
            assert_eq!(requests(&arena, name, "GET", key), 0, "{name}");
        }
    });
}
