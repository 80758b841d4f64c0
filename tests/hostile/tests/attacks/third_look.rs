//! Tenants that name another namespace's primary, texts that grow or stay, documents that parsers
//! read differently, and fields that no policy asks about.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use innkeeper_hostile_tests::{
    Arena, Attack, GROUP, MODULES, RBAC, block_on, condition, guest, manifest,
};
use innkeeper_lab::Content;
use innkeeper_tiny_guests::{TIME, Tiny};
use serde_json::{Value, json};

/// The namespace of a tenant who attacks the primaries of others.
const TENANT: &str = "tenant";
/// How much virtual time the host has to repair an object of a good module.
const SOON: Duration = Duration::from_secs(10);

fn namespace(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
}

fn config_map(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"a": "b"}})
}

/// A good module at the same time as the attack.
async fn neighbour(arena: &Arena) {
    let good = guest(&manifest(&[]), &json!({"objects": [{"object": config_map("made")}]}));
    arena.install(&Attack::new("good", &good)).await;
    arena.primary_says("good", "Synced", "True", "Applied").await;
}

/// A good module at the same time as the attack still repairs what somebody deletes.
async fn neighbour_works(arena: &Arena) {
    let path = "/api/v1/namespaces/attack-good/configmaps/made";
    arena.lab().api().delete(path).await.unwrap();
    let made = arena.lab().until("the good module makes its object again", SOON, async |api| {
        Ok(api.get(path).await?.is_some())
    });
    made.await.unwrap();
}

/// An attack on all namespaces whose account may read everything, and write at home only.
async fn install_everywhere(arena: &Arena, name: &str, guest: &Tiny, spec: &Value) {
    let mut spec = spec.clone();
    spec["namespaces"] = json!([]);
    arena
        .apply(&json!({"apiVersion": format!("{RBAC}/v1"), "kind": "ClusterRole",
        "metadata": {"name": format!("reads-{name}")},
        "rules": [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["get", "list", "watch"]}]}))
        .await;
    arena
        .apply(&json!({"apiVersion": format!("{RBAC}/v1"), "kind": "ClusterRoleBinding",
        "metadata": {"name": format!("reads-{name}")},
        "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": format!("reads-{name}")},
        "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": MODULES}]}))
        .await;
    let writes = ["update", "patch"];
    arena.install(&Attack::new(name, guest).spec(spec).may(&writes, GROUP, "hostiles")).await;
}

/// The text `status.conditions[type].status` of an attack's primary.
async fn status_of(arena: &Arena, name: &str, type_: &str) -> String {
    let primary = arena.primary(name).await;
    condition(&primary, type_).map(|one| one["status"].to_string()).unwrap_or_default()
}

#[test]
fn objects_of_another_namespace_that_name_a_primary_as_their_owner_are_not_its_own() {
    block_on(async {
        let arena = Arena::start(&[namespace(TENANT)]).await;
        let good = guest(&manifest(&[]), &json!({"objects": [{"object": config_map("made")}]}));
        install_everywhere(&arena, "victim", &good, &json!({})).await;
        arena.primary_says("victim", "Synced", "True", "Applied").await;
        let uid = arena.primary("victim").await["metadata"]["uid"].clone();
        // The finalizer keeps the object although the garbage collector deletes it.
        let mut planted = config_map("planted");
        planted["metadata"]["namespace"] = TENANT.into();
        planted["metadata"]["finalizers"] = json!(["example.com/stay"]);
        planted["metadata"]["ownerReferences"] = json!([{"apiVersion": format!("{GROUP}/v1"),
            "kind": "Hostile", "name": "victim", "uid": uid, "controller": true}]);
        arena.apply(&planted).await;
        let path = format!("/api/v1/namespaces/{TENANT}/configmaps/planted");
        let _ = arena.lab().api().delete(&path).await;
        arena.pass(30).await;
        assert!(arena.get(&path).await.is_some(), "the finalizer keeps it");
        assert_eq!(status_of(&arena, "victim", "Ready").await, "\"True\"");
        assert_eq!(status_of(&arena, "victim", "Synced").await, "\"True\"");
    });
}

#[test]
fn changes_of_an_object_that_names_an_owner_elsewhere_do_not_run_it() {
    block_on(async {
        let arena = Arena::start(&[namespace(TENANT)]).await;
        let good = guest(&manifest(&[]), &json!({"objects": [{"object": config_map("made")}]}));
        install_everywhere(&arena, "victim", &good, &json!({})).await;
        arena.primary_says("victim", "Synced", "True", "Applied").await;
        let uid = arena.primary("victim").await["metadata"]["uid"].as_str().unwrap().to_owned();
        let before = arena.reconciles("victim");
        let path = format!("/api/v1/namespaces/{TENANT}/configmaps/planted");
        let query = format!("{path}?force=true&fieldManager=innkeeper%2Fvictim%2F{uid}");
        for round in 0..60 {
            let mut planted = config_map("planted");
            planted["data"] = json!({"round": round.to_string()});
            let api = arena.lab().api();
            api.send("PATCH", &query, Content::Apply, &planted).await.unwrap();
            arena.pass(1).await;
        }
        let runs = arena.reconciles("victim") - before;
        assert!(runs <= 2, "{runs} runs for 60 changes of a stranger");
    });
}

#[test]
fn entry_of_a_manager_in_another_namespace_neither_fails_nor_holds_a_primary() {
    block_on(async {
        let arena = Arena::start(&[namespace(TENANT)]).await;
        let mut manifest = manifest(&[]);
        manifest["finalizer"] = "".into();
        let says = json!({"objects": [{"object": config_map("made")}], "finalized": true});
        install_everywhere(&arena, "victim", &guest(&manifest, &says), &json!({})).await;
        arena.primary_says("victim", "Synced", "True", "Applied").await;
        let uid = arena.primary("victim").await["metadata"]["uid"].clone();
        let uid = uid.as_str().unwrap();
        for manager in [format!("innkeeper/victim/{uid}"), format!("innkeeper/victim/{uid}/merge")]
        {
            let name = if manager.ends_with("merge") { "merged" } else { "planted" };
            let path = format!("/api/v1/namespaces/{TENANT}/configmaps/{name}");
            let query = format!("{path}?fieldManager={}", manager.replace('/', "%2F"));
            let api = arena.lab().api();
            api.send("PATCH", &query, Content::Apply, &config_map(name)).await.unwrap();
        }
        arena.pass(60).await;
        assert_eq!(status_of(&arena, "victim", "Synced").await, "\"True\"");
        let path = format!("/apis/{GROUP}/v1/namespaces/attack-victim/hostiles/victim");
        arena.lab().api().delete(&path).await.unwrap();
        arena.pass(60).await;
        assert!(arena.get(&path).await.is_none(), "a stranger's object keeps the primary");
    });
}

#[test]
fn object_that_a_primary_of_another_namespace_made_is_not_adopted() {
    block_on(async {
        let arena = Arena::start(&[namespace("shared"), namespace(TENANT)]).await;
        let mut route = config_map("route");
        route["metadata"]["namespace"] = "shared".into();
        let mut manifest = manifest(&[]);
        manifest["finalizer"] = "".into();
        let makes = guest(&manifest, &json!({"objects": [{"object": route}], "finalized": true}));
        let spec = json!({"namespaces": [], "allowCrossNamespace": true});
        arena.install(&Attack::new("crossing", &makes).spec(spec).has_all_rights()).await;
        arena.primary_says("crossing", "Synced", "True", "Applied").await;
        let path = "/api/v1/namespaces/shared/configmaps/route";
        let before = arena.get(path).await.unwrap()["metadata"]["managedFields"].clone();
        arena
            .apply(&json!({"apiVersion": format!("{GROUP}/v1"), "kind": "Hostile",
            "metadata": {"name": "thief", "namespace": TENANT,
                "annotations": {"innkeeper.dev/adopt": "true"}}}))
            .await;
        arena.pass(60).await;
        let thief = format!("/apis/{GROUP}/v1/namespaces/{TENANT}/hostiles/thief");
        let thief = arena.get(&thief).await.unwrap();
        let now = arena.get(path).await.unwrap();
        let uid = thief["metadata"]["uid"].as_str().unwrap();
        assert!(!now["metadata"].to_string().contains(uid), "taken over: {now:#}, {before:#}");
        assert_eq!(condition(&thief, "Synced").unwrap()["reason"], "Conflict", "{thief:#}");
    });
}

#[test]
fn conditions_whose_types_change_in_each_run_do_not_fill_the_status() {
    block_on(async {
        let arena = Arena::start(&[]).await;
        neighbour(&arena).await;
        let says = json!({"requeueAfterSeconds": 1, "conditions": [
            {"type": format!("T{TIME}"), "status": "True", "reason": "Good", "message": "m"}]});
        arena.install(&Attack::new("types", &guest(&manifest(&[]), &says).timed())).await;
        arena.primary_says("types", "Synced", "True", "Applied").await;
        arena.pass(400).await;
        let primary = arena.primary("types").await;
        let count = primary["status"]["conditions"].as_array().unwrap().len();
        assert!((2..=160).contains(&count), "{count} conditions after 400 s");
        assert_eq!(status_of(&arena, "types", "Synced").await, "\"True\"");
        neighbour_works(&arena).await;
    });
}

#[test]
fn condition_that_differs_from_one_of_the_host_in_case_only_is_not_written() {
    block_on(async {
        let arena = Arena::start(&[]).await;
        let fine = |type_: &str| json!({"type": type_, "status": "True", "reason": "Fine", "message": "m"});
        let mut broken = config_map("made");
        broken["metadata"]["namespace"] = "elsewhere".into();
        let says = json!({"reason": "Broken", "message": "m",
            "conditions": [fine("SYNCED"), fine("synced"), fine("SyNcEd")]});
        let fails = Tiny::default().manifest(&manifest(&[]).to_string());
        let fails = fails.outcome(2, &says.to_string());
        arena.install(&Attack::new("case", &fails)).await;
        arena.primary_says("case", "Synced", "False", "Broken").await;
        let primary = arena.primary("case").await;
        // `kubectl wait --for=condition=Synced` takes the first that is equal without regard to
        // case.
        let conditions = primary["status"]["conditions"].as_array().unwrap();
        let first = conditions
            .iter()
            .find(|one| one["type"].as_str().unwrap().eq_ignore_ascii_case("Synced"));
        assert_eq!(first.unwrap()["status"], "False", "{primary:#}");
    });
}

#[test]
fn texts_that_grow_when_they_are_made_visible_count_as_they_are_written() {
    block_on(async {
        let arena = Arena::start(&[]).await;
        let message = "\u{7f}".repeat(5_000);
        let conditions: Vec<Value> = (0..48)
            .map(|index| json!({"type": format!("T{index}"), "status": "True", "reason": "Good", "message": message}))
            .collect();
        let attack =
            Attack::new("growing", &guest(&manifest(&[]), &json!({"conditions": conditions})));
        arena.install(&attack).await;
        arena.primary_says("growing", "Synced", "False", "MalformedStatus").await;
        let bytes = arena.primary("growing").await["status"].to_string().len();
        assert!(bytes < 512 << 10, "{bytes} bytes");
    });
}

#[test]
fn preview_that_fails_with_a_long_text_is_shown_in_a_status_that_can_be_written() {
    block_on(async {
        let arena = Arena::start(&[]).await;
        neighbour(&arena).await;
        let good = guest(&manifest(&[]), &json!({"objects": [{"object": config_map("made")}]}));
        arena.install(&Attack::new("long", &good)).await;
        arena.module_says("long", "Ready", "True", "RevisionActive").await;
        arena.primary_says("long", "Synced", "True", "Applied").await;
        let mut second = manifest(&[]);
        second["version"] = "2.0.0".into();
        let text = format!("\u{1b}[2J{}", "long ".repeat(60_000));
        let fails = Tiny::default().manifest(&second.to_string());
        let fails = fails.outcome(2, &json!({"reason": "Broken", "message": text}).to_string());
        let source = format!("/api/v1/namespaces/{MODULES}/configmaps/long");
        let data = json!({"binaryData": {"guest.wasm": BASE64.encode(fails.component())}});
        arena.merge(&source, &data).await;
        let message = arena.module_says("long", "Held", "True", "WouldFail").await;
        assert!(!message.contains('\u{1b}'), "{message:?}");
        let bytes = arena.module("long").await["status"].to_string().len();
        assert!(bytes < 256 << 10, "{bytes} bytes");
        neighbour_works(&arena).await;
    });
}

#[test]
fn decisions_of_a_user_are_refused_in_a_template_that_a_controller_copies() {
    block_on(async {
        let arena = Arena::start(&[]).await;
        let deployments = json!({"apiVersion": "apps/v1", "kind": "Deployment",
            "plural": "deployments", "scope": "Namespaced"});
        for (name, annotation) in [
            ("paused", "innkeeper.dev/paused"),
            ("resync", "innkeeper.dev/resync-period"),
            ("shouting", "INNKEEPER.dev/Paused"),
        ] {
            let object = json!({"apiVersion": "apps/v1", "kind": "Deployment",
                "metadata": {"name": "web"}, "spec": {"selector": {"matchLabels": {"app": "web"}},
                    "template": {"metadata": {"labels": {"app": "web"}, "annotations": {annotation: "true"}},
                        "spec": {"containers": [{"name": "web", "image": "web:1"}]}}}});
            let says = json!({"objects": [{"object": object}]});
            let attack =
                Attack::new(name, &guest(&manifest(std::slice::from_ref(&deployments)), &says));
            let verbs = ["get", "list", "watch", "create", "patch", "delete"];
            arena.install(&attack.may(&verbs, "apps", "deployments")).await;
            arena.primary_says(name, "Synced", "False", "MalformedObject").await;
        }
    });
}

#[test]
fn members_of_metadata_that_no_guest_gives_are_refused_by_name() {
    block_on(async {
        let arena = Arena::start(&[]).await;
        for (index, (member, value)) in [
            ("deletionGracePeriodSeconds", json!(0)),
            ("deletionTimestamp", json!("2020-01-01T00:00:00Z")),
            ("generateName", json!("a-")),
            ("clusterName", json!("other")),
            ("ownerreferences", json!([])),
            ("managedFields", json!([{}])),
        ]
        .into_iter()
        .enumerate()
        {
            let name = format!("member-{index}");
            let mut object = config_map("made");
            object["metadata"][member] = value;
            let says = json!({"objects": [{"object": object}]});
            arena.install(&Attack::new(&name, &guest(&manifest(&[]), &says))).await;
            let message = arena.primary_says(&name, "Synced", "False", "MalformedObject").await;
            assert!(message.contains(member), "{message}");
        }
    });
}

#[test]
fn tenant_who_changes_another_field_each_time_does_not_have_the_object_set_back_for_ever() {
    block_on(async {
        let arena = Arena::start(&[]).await;
        neighbour(&arena).await;
        let data: Vec<(String, Value)> =
            (0..200).map(|index| (format!("k{index}"), json!("mine"))).collect();
        let mut object = config_map("made");
        object["data"] = data.into_iter().collect::<serde_json::Map<_, _>>().into();
        let says = json!({"objects": [{"object": object}]});
        arena.install(&Attack::new("rotating", &guest(&manifest(&[]), &says))).await;
        arena.primary_says("rotating", "Synced", "True", "Applied").await;
        let path = "/api/v1/namespaces/attack-rotating/configmaps/made";
        let mut set_back = 0;
        for index in 0..200 {
            let mut change = config_map("made");
            change["data"] = json!({ format!("k{index}"): "theirs" });
            let query = format!("{path}?force=true&fieldManager=tenant");
            let api = arena.lab().api();
            api.send("PATCH", &query, Content::Apply, &change).await.unwrap();
            arena.pass(1).await;
            let now = arena.get(path).await.unwrap();
            set_back += usize::from(now["data"][format!("k{index}")] == "mine");
        }
        assert!((5..=100).contains(&set_back), "{set_back} of 200 changes were set back");
        arena.primary_says("rotating", "Synced", "False", "Contested").await;
        neighbour_works(&arena).await;
    });
}

/// A document of so many levels, of which every hundred lie in a text that a parser might read on.
fn nested(levels: usize) -> String {
    let mut text = "1".to_owned();
    for _ in 0..levels {
        text = format!("{}{text}{}", r#"{"a":"#.repeat(100), "}".repeat(100));
        text = format!(r#"{{"$serde_json::private::RawValue":{}}}"#, Value::from(text));
    }
    text
}

#[test]
fn documents_that_parsers_read_differently_are_unreadable_or_harmless() {
    block_on(async {
        let arena = Arena::start(&[]).await;
        neighbour(&arena).await;
        let object = config_map("made");
        for (name, says) in [
            ("duplicate", r#"{"objects":[],"objects":[]}"#.to_owned()),
            ("surrogate", r#"{"status":{"a":"\ud800"}}"#.to_owned()),
            ("number", r#"{"status":{"a":1e400}}"#.to_owned()),
            ("nan", r#"{"status":{"a":NaN}}"#.to_owned()),
            ("text", r#"{"status":{"a":{"$serde_json::private::RawValue":"]"}}}"#.to_owned()),
            ("deep", format!(r#"{{"status":{{"a":{}}}}}"#, nested(4))),
            (
                "object",
                format!(
                    r#"{{"objects":[{{"object":{{"apiVersion":"v1","kind":"ConfigMap","metadata":{},"data":{}}}}}]}}"#,
                    object["metadata"],
                    nested(4)
                ),
            ),
        ] {
            let guest = Tiny::default().manifest(&manifest(&[]).to_string()).outcome(0, &says);
            arena.install(&Attack::new(name, &guest)).await;
            arena.primary_says(name, "Synced", "False", "OutputUnreadable").await;
        }
        neighbour_works(&arena).await;
    });
}

/// How many requests of a module write a status.
fn statuses(arena: &Arena, module: &str) -> usize {
    let account = format!("{MODULES}:{module} ");
    let is_meant = |line: &&String| {
        line.contains(&account) && line.contains("PATCH") && line.contains("/status")
    };
    arena.log().iter().filter(is_meant).count()
}

#[test]
fn numbers_at_the_bounds_of_their_types_are_written_once() {
    block_on(async {
        let arena = Arena::start(&[]).await;
        let says = r#"{"requeueAfterSeconds":1,"status":{"a":9223372036854775807,"b":-9223372036854775808,"c":0.1,"d":1e300,"e":-1e-300,"f":1.5}}"#;
        let guest = Tiny::default().manifest(&manifest(&[]).to_string()).outcome(0, says);
        arena.install(&Attack::new("numbers", &guest)).await;
        arena.primary_says("numbers", "Synced", "True", "Applied").await;
        let before = statuses(&arena, "numbers");
        arena.pass(60).await;
        assert_eq!(statuses(&arena, "numbers"), before, "written without a change");
    });
}

#[test]
fn primary_that_is_deleted_and_made_again_quickly_has_the_objects_of_the_last_one() {
    block_on(async {
        let arena = Arena::start(&[]).await;
        neighbour(&arena).await;
        let mut manifest = manifest(&[]);
        manifest["finalizer"] = "".into();
        let says = json!({"objects": [{"object": config_map("made")}], "finalized": true});
        let attack = Attack::new("again", &guest(&manifest, &says));
        arena.install(&attack.may(&["update", "patch"], GROUP, "hostiles")).await;
        arena.primary_says("again", "Synced", "True", "Applied").await;
        let path = format!("/apis/{GROUP}/v1/namespaces/attack-again/hostiles/again");
        let primary = json!({"apiVersion": format!("{GROUP}/v1"), "kind": "Hostile",
            "metadata": {"name": "again", "namespace": "attack-again"}});
        for round in 0..40 {
            let _ = arena.lab().api().delete(&path).await;
            if round % 3 == 0 {
                arena.pass(1).await;
            }
            arena.apply(&primary).await;
        }
        arena.pass(30).await;
        if arena.get(&path).await.is_none() {
            arena.apply(&primary).await;
        }
        arena.primary_says("again", "Synced", "True", "Applied").await;
        let uid = arena.primary("again").await["metadata"]["uid"].clone();
        let made = arena.get("/api/v1/namespaces/attack-again/configmaps/made").await.unwrap();
        assert_eq!(made["metadata"]["ownerReferences"][0]["uid"], uid, "{made:#}");
        neighbour_works(&arena).await;
    });
}

#[test]
fn each_field_of_a_module_is_asked_about_by_the_policy_or_changes_no_reach() {
    let policy = include_str!("../../../../deploy/base/module-policy.yaml");
    // None of these lets a module do as its account what it could not do before.
    let exempt = ["resyncPeriod", "manageStatus", "runResult", "limits", "paused", "rollout"];
    let crd = innkeeper_modules::crd();
    let spec = &crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"];
    let fields = spec["properties"].as_object().unwrap();
    assert!(fields.len() > exempt.len(), "{fields:?}");
    for (field, schema) in fields {
        // The definition refuses a field under its old name.
        if schema["description"].as_str().is_some_and(|text| text.starts_with("Not accepted: use "))
        {
            continue;
        }
        let is_asked = policy.contains(&format!("'{field}'"));
        assert_ne!(is_asked, exempt.contains(&field.as_str()), "{field}");
    }
}
