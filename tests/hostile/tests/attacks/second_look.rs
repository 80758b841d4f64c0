//! Consent that a controller copies, objects that a decorated primary owns, and what is left when a
//! module changes its kinds.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use innkeeper_hostile_tests::{
    Arena, Attack, GROUP, MODULES, RBAC, block_on, condition, guest, manifest,
};
use innkeeper_tiny_guests::{TIME, Tiny};
use serde_json::{Value, json};

/// How much virtual time a new version has to be served, and its answer to be carried out.
const SOON: Duration = Duration::from_mins(2);

/// All verbs that a guest can need.
const ALL: [&str; 7] = ["get", "list", "watch", "create", "patch", "update", "delete"];

/// A version of a module serves as soon as it is there.
fn at_once() -> Value {
    json!({"rollout": {"strategy": "Immediate", "rollbackWindow": "0s"}})
}

/// A kind of a namespace.
fn kind(api_version: &str, kind: &str, plural: &str) -> Value {
    json!({"apiVersion": api_version, "kind": kind, "plural": plural, "scope": "Namespaced"})
}

/// A guest that decorates a kind, owns these kinds, and desires these objects.
fn decorator(version: &str, primary: &Value, owned: &[Value], objects: &Value) -> Tiny {
    let owned: Vec<Value> = owned.iter().map(|kind| json!({ "kind": kind })).collect();
    let manifest = json!({"name": "hostile", "version": version, "primary": primary,
        "decorates": true, "owned": owned});
    guest(&manifest, &json!({ "objects": objects }))
}

/// Replaces the guest of an attack, and waits until the new version serves and had its say.
async fn replace(arena: &Arena, name: &str, version: &str, guest: &Tiny) {
    let source = format!("/api/v1/namespaces/{MODULES}/configmaps/{name}");
    let data = json!({"binaryData": {"guest.wasm": BASE64.encode(guest.component())}});
    arena.merge(&source, &data).await;
    let path = format!("/apis/innkeeper.dev/v1alpha1/modules/{name}");
    let serves = arena.lab().until("the new version serves", SOON, async |api| {
        let module = api.get(&path).await?.unwrap_or_default();
        Ok(module["status"]["guest"]["version"] == version)
    });
    serves.await.unwrap();
    arena.pass(30).await;
}

fn config_map(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"a": "b"}})
}

#[test]
fn consent_that_a_controller_copies_from_a_template_of_the_guest_adopts_nothing() {
    block_on(async {
        let arena = Arena::start(&[]).await;
        let pods = kind("v1", "Pod", "pods");
        let owned =
            [kind("v1", "ConfigMap", "configmaps"), kind("apps/v1", "StatefulSet", "statefulsets")];
        let containers = json!([{"name": "web", "image": "web:1"}]);
        let set = json!({"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "web"},
            "spec": {"replicas": 1, "serviceName": "web", "selector": {"matchLabels": {"app": "web"}},
                "template": {"spec": {"containers": containers}, "metadata": {
                    "labels": {"app": "web"}, "annotations": {"innkeeper.dev/adopt": "true"}}}}});
        let first = decorator("1.0.0", &pods, &owned, &json!([{"object": set}]));
        let attack = Attack::new("copied", &first)
            .spec(at_once())
            .may(&ALL, "", "pods")
            .may(&["update"], "", "pods/finalizers")
            .may(&ALL, "apps", "statefulsets");
        arena.install(&attack).await;
        arena
            .apply(&json!({"apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": "seed", "namespace": "attack-copied"},
            "spec": {"containers": containers}}))
            .await;
        let mut theirs = config_map("theirs");
        theirs["metadata"]["namespace"] = "attack-copied".into();
        theirs["data"] = json!({"whose": "theirs"});
        arena.apply(&theirs).await;
        arena.module_says("copied", "Serving", "True", "RevisionActive").await;
        arena.pass(60).await;
        let second = decorator("2.0.0", &pods, &owned, &json!([{"object": config_map("theirs")}]));
        replace(&arena, "copied", "2.0.0", &second).await;
        let home = "/api/v1/namespaces/attack-copied";
        let theirs = arena.get(&format!("{home}/configmaps/theirs")).await.unwrap();
        assert_eq!(theirs["data"], json!({"whose": "theirs"}), "{theirs:#}");
        assert_eq!(theirs["metadata"]["ownerReferences"], Value::Null);
    });
}

#[test]
fn object_that_a_controller_made_for_a_decorated_primary_is_neither_changed_nor_deleted() {
    block_on(async {
        let arena = Arena::start(&[]).await;
        let sets = kind("apps/v1", "StatefulSet", "statefulsets");
        let owned = [kind("v1", "Pod", "pods")];
        let pod = json!({"apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": "web-0", "labels": {"app": "web", "taken": "yes"}},
            "spec": {"containers": [{"name": "web", "image": "evil:1"}]}});
        let first = decorator("1.0.0", &sets, &owned, &json!([{"object": pod}]));
        let attack = Attack::new("child", &first)
            .spec(at_once())
            .may(&ALL, "", "pods")
            .may(&ALL, "apps", "statefulsets")
            .may(&["update"], "apps", "statefulsets/finalizers");
        arena
            .apply(&json!({"apiVersion": "v1", "kind": "Namespace",
            "metadata": {"name": "attack-child"}}))
            .await;
        arena.apply(&json!({"apiVersion": "apps/v1", "kind": "StatefulSet",
            "metadata": {"name": "web", "namespace": "attack-child"},
            "spec": {"replicas": 1, "serviceName": "web", "selector": {"matchLabels": {"app": "web"}},
                "template": {"metadata": {"labels": {"app": "web"}},
                    "spec": {"containers": [{"name": "web", "image": "web:1"}]}}}})).await;
        arena.pass(30).await;
        let path = "/api/v1/namespaces/attack-child/pods/web-0";
        let before = arena.get(path).await.expect("the controller has made the Pod");
        arena.install(&attack).await;
        arena.module_says("child", "Serving", "True", "RevisionActive").await;
        arena.pass(60).await;
        let now = arena.get(path).await.unwrap();
        assert_eq!(now["spec"]["containers"][0]["image"], "web:1", "{:#}", now["metadata"]);
        assert_eq!(now["metadata"]["labels"]["taken"], Value::Null, "{:#}", now["metadata"]);
        let second = decorator("2.0.0", &sets, &owned, &json!([]));
        replace(&arena, "child", "2.0.0", &second).await;
        let now = arena.get(path).await.unwrap();
        assert_eq!(now["metadata"]["uid"], before["metadata"]["uid"], "deleted and created again");
    });
}

#[test]
fn object_that_another_module_made_for_the_same_primary_is_a_conflict() {
    block_on(async {
        let arena = Arena::start(&[]).await;
        let good = guest(&manifest(&[]), &json!({"objects": [{"object": config_map("made")}]}));
        arena.install(&Attack::new("victim", &good)).await;
        arena.primary_says("victim", "Synced", "True", "Applied").await;
        let path = "/api/v1/namespaces/attack-victim/configmaps/made";
        let before = arena.get(path).await.unwrap();

        let mut taken = config_map("made");
        taken["data"] = json!({"a": "taken"});
        let hostiles = kind(&format!("{GROUP}/v1"), "Hostile", "hostiles");
        let maps = [kind("v1", "ConfigMap", "configmaps")];
        let first = decorator("1.0.0", &hostiles, &maps, &json!([{"object": taken}]));
        let mut spec = at_once();
        spec["namespaces"] = json!(["attack-victim"]);
        arena.install(&Attack::new("sibling", &first).spec(spec).has_all_rights()).await;
        arena.module_says("sibling", "Serving", "True", "RevisionActive").await;
        arena.pass(60).await;
        assert_eq!(arena.get(path).await.unwrap()["data"], json!({"a": "b"}), "taken by force");
        let second = decorator("2.0.0", &hostiles, &maps, &json!([]));
        replace(&arena, "sibling", "2.0.0", &second).await;
        let now = arena.get(path).await.unwrap();
        assert_eq!(now["metadata"]["uid"], before["metadata"]["uid"], "deleted and created again");
    });
}

#[test]
fn primary_of_a_kind_that_a_new_version_gave_up_can_be_deleted() {
    block_on(async {
        let arena = Arena::start(&[]).await;
        let mut first = manifest(&[]);
        first["finalizer"] = "".into();
        let attack = Attack::new("switch", &guest(&first, &json!({})))
            .spec(at_once())
            .may(&ALL, GROUP, "hostiles")
            .may(&ALL, "", "configmaps");
        arena.install(&attack).await;
        arena.primary_says("switch", "Synced", "True", "Applied").await;
        let finalizers = arena.primary("switch").await["metadata"]["finalizers"].clone();
        assert_eq!(finalizers, json!(["innkeeper.dev/switch"]));
        let maps = kind("v1", "ConfigMap", "configmaps");
        let second = decorator("2.0.0", &maps, &[], &json!([]));
        replace(&arena, "switch", "2.0.0", &second).await;
        let path = format!("/apis/{GROUP}/v1/namespaces/attack-switch/hostiles/switch");
        arena.lab().api().delete(&path).await.unwrap();
        arena.pass(120).await;
        let left = arena.get(&path).await;
        assert!(left.is_none(), "nobody can delete it: {left:#?}");
    });
}

#[test]
fn conditions_of_one_type_are_written_once_whether_the_host_manages_the_status() {
    block_on(async {
        let arena = Arena::start(&[]).await;
        let twice = |type_: &str| json!({"type": type_, "status": "True", "reason": "Good", "message": "m"});
        let says = json!({"conditions": [twice("Fine"), twice("Fine"), twice("Synced")]});
        for (name, manage) in [("managed", true), ("unmanaged", false)] {
            let attack = Attack::new(name, &guest(&manifest(&[]), &says));
            arena.install(&attack.spec(json!({ "manageStatus": manage }))).await;
        }
        arena.primary_says("managed", "Synced", "True", "Applied").await;
        arena.primary_says("managed", "Fine", "True", "Good").await;
        arena.primary_says("unmanaged", "Fine", "True", "Good").await;
    });
}

#[test]
fn objects_of_the_cluster_that_install_innkeeper_are_not_merged_into_with_all_rights() {
    block_on(async {
        let arena = Arena::start(&[]).await;
        let of_policies = "admissionregistration.k8s.io/v1";
        let roles = format!("{RBAC}/v1");
        let cases = [
            (
                "policy",
                of_policies,
                "ValidatingAdmissionPolicy",
                "validatingadmissionpolicies",
                "innkeeper-module-account",
            ),
            (
                "binding",
                of_policies,
                "ValidatingAdmissionPolicyBinding",
                "validatingadmissionpolicybindings",
                "innkeeper-module-account",
            ),
            ("role", &roles, "ClusterRole", "clusterroles", "innkeeper"),
            ("role-binding", &roles, "ClusterRoleBinding", "clusterrolebindings", "innkeeper"),
        ];
        for (name, version, of_kind, plural, target) in cases {
            let kinds = json!({"apiVersion": version, "kind": of_kind, "plural": plural, "scope": "Cluster"});
            let mut object = json!({"apiVersion": version, "kind": of_kind,
                "metadata": {"name": target, "labels": {"taken": "yes"}}});
            if name == "policy" {
                object["spec"] =
                    json!({"matchConditions": [{"name": "never", "expression": "false"}]});
            }
            let desired = json!({"objects": [{"object": object, "policy": ["merge"]}]});
            let attack = Attack::new(name, &guest(&manifest(&[kinds]), &desired)).has_all_rights();
            arena.install(&attack.spec(json!({"allowCrossNamespace": true}))).await;
            arena.primary_says(name, "Synced", "False", "ReservedObject").await;
        }
    });
}

#[test]
fn definitions_as_primaries_leave_the_definition_of_modules_alone() {
    block_on(async {
        let arena = Arena::start(&[]).await;
        let definitions = json!({"apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition", "plural": "customresourcedefinitions", "scope": "Cluster"});
        let manifest = json!({"name": "hostile", "version": "1.0.0", "primary": definitions,
            "finalizer": "", "owned": []});
        let attack = Attack::new("crds", &guest(&manifest, &json!({}))).has_all_rights();
        arena.install(&attack.spec(json!({"namespaces": []}))).await;
        arena.pass(60).await;
        let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
        let modules = arena.get(&format!("{path}/modules.innkeeper.dev")).await.unwrap();
        assert!(!modules["metadata"].to_string().contains("innkeeper.dev/crds"), "{modules}");
    });
}

#[test]
fn primary_of_the_longest_name_has_a_status_events_and_objects() {
    block_on(async {
        let arena = Arena::start(&[]).await;
        let says = json!({"objects": [{"object": config_map("made")}],
            "events": [{"reason": "Long", "message": "m"}]});
        arena.install(&Attack::new("long", &guest(&manifest(&[]), &says))).await;
        arena.primary_says("long", "Synced", "True", "Applied").await;
        let name = format!("{}.{}", "a".repeat(126), "b".repeat(126));
        arena
            .apply(&json!({"apiVersion": format!("{GROUP}/v1"), "kind": "Hostile",
            "metadata": {"name": name, "namespace": "attack-long"}}))
            .await;
        arena.pass(30).await;
        let path = format!("/apis/{GROUP}/v1/namespaces/attack-long/hostiles/{name}");
        let primary = arena.get(&path).await.unwrap();
        assert_eq!(condition(&primary, "Synced").unwrap()["reason"], "Conflict", "{primary:#}");
        let events = "/apis/events.k8s.io/v1/namespaces/attack-long/events";
        let events = arena.lab().api().list(events).await.unwrap();
        assert!(events.iter().any(|one| one["regarding"]["name"] == name), "{events:#?}");
    });
}

/// How many requests of a module the log has that begin so and name this.
fn count(arena: &Arena, module: &str, verb: &str, part: &str) -> usize {
    let account = format!("{MODULES}:{module} ");
    let log = arena.log();
    let is_meant =
        |line: &&String| line.contains(&account) && line.contains(verb) && line.contains(part);
    log.iter().filter(is_meant).count()
}

#[test]
fn status_that_differs_in_each_run_does_not_run_the_guest_again() {
    block_on(async {
        let arena = Arena::start(&[]).await;
        let says = json!({"status": {"at": TIME}, "requeueAfterSeconds": 10});
        arena.install(&Attack::new("clock", &guest(&manifest(&[]), &says).timed())).await;
        arena.primary_says("clock", "Synced", "True", "Applied").await;
        arena.pass(100).await;
        let written = count(&arena, "clock", "PATCH", "/status");
        assert!((5..=15).contains(&written), "{written}");
    });
}

/// A kind that is served in two versions.
fn doubles() -> Value {
    let any = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let version = |name: &str, storage: bool| {
        json!({"name": name, "served": true, "storage": storage,
            "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": any}}}})
    };
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "doubles.x.example.com"},
        "spec": {"group": "x.example.com", "scope": "Namespaced",
            "names": {"kind": "Double", "plural": "doubles"},
            "versions": [version("v1", true), version("v2", false)]}})
}

/// A Double by one of its versions.
fn double(version: &str, size: u32) -> Value {
    json!({"object": {"apiVersion": format!("x.example.com/{version}"), "kind": "Double",
        "metadata": {"name": "one"}, "spec": {"size": size}}})
}

/// An attack whose guest owns both versions of a Double.
fn of_doubles(name: &str, version: &str, objects: &Value) -> (Attack, Tiny) {
    let kinds = ["v1", "v2"].map(|one| kind(&format!("x.example.com/{one}"), "Double", "doubles"));
    let mut manifest = manifest(&kinds);
    manifest["version"] = version.into();
    let guest = guest(&manifest, &json!({ "objects": objects }));
    (Attack::new(name, &guest).spec(at_once()).may(&ALL, "x.example.com", "doubles"), guest)
}

#[test]
fn one_object_in_two_versions_is_refused_and_never_written() {
    block_on(async {
        let arena = Arena::start(&[doubles()]).await;
        let both = json!([double("v1", 1), double("v2", 2)]);
        arena.install(&of_doubles("twice", "1.0.0", &both).0).await;
        arena.pass(600).await;
        arena.primary_says("twice", "Synced", "False", "MalformedObject").await;
        assert_eq!(count(&arena, "twice", "PATCH", "/doubles/one"), 0);
    });
}

#[test]
fn object_that_is_desired_in_another_version_of_its_kind_is_not_deleted() {
    block_on(async {
        let arena = Arena::start(&[doubles()]).await;
        arena.install(&of_doubles("moved", "1.0.0", &json!([double("v1", 1)])).0).await;
        arena.primary_says("moved", "Synced", "True", "Applied").await;
        let path = "/apis/x.example.com/v1/namespaces/attack-moved/doubles/one";
        let before = arena.get(path).await.unwrap();
        let (_, second) = of_doubles("moved", "2.0.0", &json!([double("v2", 2)]));
        replace(&arena, "moved", "2.0.0", &second).await;
        let now = arena.get(path).await.unwrap();
        assert_eq!(now["metadata"]["uid"], before["metadata"]["uid"], "deleted and created again");
        assert_eq!(now["spec"]["size"], 2);
        let (_, third) = of_doubles("moved", "3.0.0", &json!([]));
        replace(&arena, "moved", "3.0.0", &third).await;
        assert!(arena.get(path).await.is_none(), "what is no longer wanted goes");
    });
}

#[test]
fn names_that_need_an_escape_in_a_path_are_applied_as_they_are() {
    block_on(async {
        let arena = Arena::start(&[]).await;
        let roles = kind(&format!("{RBAC}/v1"), "Role", "roles");
        let names = ["a\"b<c>", "\u{e9}+;=&@", "a\\b^`|{}", "system:x*", "..."];
        let objects: Vec<Value> = names
            .iter()
            .map(|name| {
                json!({"object": {"apiVersion": format!("{RBAC}/v1"), "kind": "Role",
                "metadata": {"name": name}, "rules": []}})
            })
            .collect();
        let attack =
            Attack::new("paths", &guest(&manifest(&[roles]), &json!({"objects": objects})));
        arena.install(&attack.may(&ALL, RBAC, "roles")).await;
        arena.primary_says("paths", "Synced", "True", "Applied").await;
        let listed = arena
            .lab()
            .api()
            .list(&format!("/apis/{RBAC}/v1/namespaces/attack-paths/roles"))
            .await
            .unwrap();
        for name in names {
            assert!(listed.iter().any(|one| one["metadata"]["name"] == name), "{name}");
        }
    });
}

#[test]
fn times_beyond_all_bounds_neither_stop_nor_spin_the_host() {
    block_on(async {
        let arena = Arena::start(&[]).await;
        for (name, seconds, reason) in [
            ("zero", "0", "Applied"),
            ("most", "4294967295", "Applied"),
            ("beyond", "4294967296", "OutputUnreadable"),
            ("negative", "-1", "OutputUnreadable"),
            ("endless", "1e300", "OutputUnreadable"),
        ] {
            let says = format!(r#"{{"requeueAfterSeconds":{seconds},"objects":[]}}"#);
            let guest = Tiny::default().manifest(&manifest(&[]).to_string()).outcome(0, &says);
            arena.install(&Attack::new(name, &guest)).await;
            let status = if reason == "Applied" { "True" } else { "False" };
            arena.primary_says(name, "Synced", status, reason).await;
        }
        let kept = guest(&manifest(&[]), &json!({"objects": [{"object": config_map("made")}]}));
        arena.install(&Attack::new("resync", &kept)).await;
        arena.primary_says("resync", "Synced", "True", "Applied").await;
        let path = format!("/apis/{GROUP}/v1/namespaces/attack-resync/hostiles/resync");
        for period in
            ["99999999999999999999h", "0.000001s", "1ns", "-5s", "1e300s", "584942417355y"]
        {
            let annotations = json!({"innkeeper.dev/resync-period": period});
            arena.merge(&path, &json!({"metadata": {"annotations": annotations}})).await;
            let before = count(&arena, "resync", "", "");
            arena.pass(20).await;
            let made = count(&arena, "resync", "", "") - before;
            assert!(made <= 20, "{period}: {made} requests in 20 s");
        }
        arena.primary_says("resync", "Synced", "True", "Applied").await;
    });
}
