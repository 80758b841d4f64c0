//! Kinds that the parameters of a Module name.

use innkeeper_hostile_tests::{Arena, Attack, block_on, guest};
use innkeeper_lab::{Api, Content};
use innkeeper_tiny_guests::Tiny;
use serde_json::{Value, json};

use crate::kinds::{definition, kind, of_primary, requests, secret, wants};

const DEFINITION: &str =
    "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/foos.late.example.dev";

/// A guest that decorates the kind of the parameter `target`, by default StatefulSets, owns the
/// kinds of `copies`, and reads the kinds of `watch`. It wants the ConfigMap `made`.
fn decorator() -> Tiny {
    let mut manifest =
        of_primary(kind("apps/v1", "StatefulSet", "statefulsets", "Namespaced"), &[]);
    manifest["decorates"] = true.into();
    manifest["parametersSchema"] =
        json!({"type": "object", "properties": {"target": {}, "copies": {}, "watch": {}}});
    manifest["kindParameters"] = json!([
        {"parameter": "target", "role": "Primary"},
        {"parameter": "copies", "role": "Owned"},
        {"parameter": "watch", "role": "Reads"},
    ]);
    let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "made"}});
    guest(&manifest, &wants(&[object]))
}

fn attack(name: &str, parameters: &Value) -> Attack {
    let spec = json!({"parameters": parameters, "rollout": {"strategy": "Immediate"}});
    Attack::new(name, &decorator()).has_all_rights().spec(spec)
}

fn named(api_version: &str, kind: &str) -> Value {
    json!({"apiVersion": api_version, "kind": kind})
}

fn foo() -> Value {
    named("late.example.dev/v1", "Foo")
}

async fn delete(arena: &Arena, path: &str) {
    arena.lab().api().send("DELETE", path, Content::Json, &json!({})).await.unwrap();
}

/// Replaces the parameters of a Module.
async fn set(arena: &Arena, name: &str, parameters: &Value) {
    let mut change = json!({"target": null, "copies": null, "watch": null});
    for (member, value) in parameters.as_object().unwrap() {
        change[member] = value.clone();
    }
    let path = format!("/apis/innkeeper.dev/v1alpha1/modules/{name}");
    arena.merge(&path, &json!({"spec": {"parameters": change}})).await;
}

/// Applies an object of a kind into the namespace of an attack.
async fn apply_primary(arena: &Arena, name: &str, api_version: &str, kind: &str) {
    let mut object = json!({"apiVersion": api_version, "kind": kind,
        "metadata": {"name": "first", "namespace": format!("attack-{name}")}});
    if api_version == "apps/v1" {
        let labels = json!({"app": "first"});
        object["spec"] = json!({"selector": {"matchLabels": labels}, "template": {
            "metadata": {"labels": labels},
            "spec": {"containers": [{"name": "main", "image": "example.com/main"}]}}});
    }
    arena.apply(&object).await;
}

/// The kind of the owner of the ConfigMap that the guest made; empty if there is none.
async fn owner(arena: &Arena, name: &str) -> String {
    let path = format!("/api/v1/namespaces/attack-{name}/configmaps/made");
    let made = arena.get(&path).await.unwrap_or_default();
    let owner = &made["metadata"]["ownerReferences"][0];
    owner["kind"].as_str().unwrap_or_default().to_owned()
}

#[test]
fn guest_reconciles_in_each_module_the_kind_that_its_parameters_name() {
    block_on(async {
        let arena = Arena::start(&[]).await;
        for (name, parameters) in [
            ("default", json!({})),
            ("web", json!({"target": named("apps/v1", "Deployment")})),
            ("late", json!({"target": foo()})),
        ] {
            arena.install(&attack(name, &parameters)).await;
        }
        let message = arena.module_says("late", "Loaded", "False", "KindNotServed").await;
        assert!(
            message.contains(
                "spec.parameters.target: the API server does not serve late.example.dev/v1 Foo; install it or correct spec.parameters.target"
            ),
            "{message}"
        );
        arena.apply(&definition("Foo", "foos", "Namespaced")).await;
        arena.module_says("late", "Loaded", "True", "SourceLoaded").await;
        for name in ["default", "web", "late"] {
            apply_primary(&arena, name, "apps/v1", "StatefulSet").await;
            apply_primary(&arena, name, "apps/v1", "Deployment").await;
            apply_primary(&arena, name, "late.example.dev/v1", "Foo").await;
        }
        arena.pass(60).await;
        let arena = arena.restart().await;
        for (name, kind) in [("default", "StatefulSet"), ("web", "Deployment"), ("late", "Foo")] {
            let path = format!("/api/v1/namespaces/attack-{name}/configmaps/made");
            assert_eq!(owner(&arena, name).await, kind);
            delete(&arena, &path).await;
            arena.pass(60).await;
            assert_eq!(owner(&arena, name).await, kind, "after a restart of the host");
            assert_eq!(arena.module(name).await["status"]["primary"]["kind"], kind);
        }
    });
}

#[test]
fn parameters_that_name_no_kind_of_a_guest_are_refused_and_nothing_is_read() {
    block_on(async {
        let arena = Arena::start(&[secret("default", "bytes")]).await;
        for (name, parameters, part) in [
            ("folded", json!({"watch": named("v1", "\u{17f}ecret")}), "is not a CamelCase name"),
            ("subresource", json!({"watch": named("v1", "pods/exec")}), "is not a CamelCase name"),
            ("path", json!({"watch": named("../v1", "Pod")}), "is not a group and a version"),
            ("text", json!({"target": "v1 Secret"}), "names no kind"),
            (
                "plural",
                json!({"watch": {"apiVersion": "v1", "kind": "Pod", "plural": "secrets"}}),
                "names no kind",
            ),
            ("list", json!({"target": [named("v1", "Secret")]}), "is a list"),
            ("many", json!({"watch": vec![named("v1", "Secret"); 10_000]}), "10000 kinds are more"),
            (
                "definitions",
                json!({"copies": named("apiextensions.k8s.io/v1", "CustomResourceDefinition")}),
                "cannot be owned",
            ),
            (
                "modules",
                json!({"copies": named("innkeeper.dev/v1alpha1", "Module")}),
                "the host's own",
            ),
            (
                "host",
                json!({"target": named("innkeeper.dev/v1alpha1", "Module")}),
                "the host's own",
            ),
        ] {
            arena.install(&attack(name, &parameters)).await;
            let message = arena.module_says(name, "Loaded", "False", "InvalidKindParameter").await;
            assert!(message.contains(part), "{message}");
            assert_eq!(requests(&arena, name, "secrets"), Vec::<String>::new());
        }
        for (name, parameters) in [
            ("options", json!({"watch": named("v1", "PodExecOptions")})),
            ("items", json!({"watch": named("v1", "List")})),
        ] {
            arena.install(&attack(name, &parameters)).await;
            arena.module_says(name, "Loaded", "False", "KindNotServed").await;
        }
    });
}

#[test]
fn primary_kind_of_an_active_revision_does_not_change() {
    block_on(async {
        let arena = Arena::start(&[]).await;
        arena.install(&attack("fixed", &json!({}))).await;
        apply_primary(&arena, "fixed", "apps/v1", "StatefulSet").await;
        apply_primary(&arena, "fixed", "apps/v1", "Deployment").await;
        arena.module_says("fixed", "Ready", "True", "RevisionActive").await;
        set(&arena, "fixed", &json!({"target": named("apps/v1", "Deployment")})).await;
        let message = arena.module_says("fixed", "Ready", "False", "PrimaryKindChanged").await;
        assert!(message.contains("make another Module for apps/v1 Deployment"), "{message}");
        arena.pass(60).await;
        assert_eq!(owner(&arena, "fixed").await, "StatefulSet");
        assert_eq!(requests(&arena, "fixed", "deployments"), Vec::<String>::new());
        set(&arena, "fixed", &json!({})).await;
        arena.module_says("fixed", "Ready", "True", "RevisionActive").await;
    });
}

#[test]
fn kinds_of_earlier_parameters_are_watched_no_more() {
    block_on(async {
        let arena = Arena::start(&[definition("Foo", "foos", "Namespaced")]).await;
        arena.install(&attack("many", &json!({}))).await;
        arena.module_says("many", "Ready", "True", "RevisionActive").await;
        for round in 0..100 {
            let watch = if round % 2 == 0 { foo() } else { named("v1", "Service") };
            set(&arena, "many", &json!({"copies": [watch], "watch": watch})).await;
            arena.pass(1).await;
        }
        arena.pass(60).await;
        let before = requests(&arena, "many", "/foos").len();
        assert!(before > 0);
        // Longer than a watch.
        arena.pass(1_200).await;
        assert_eq!(requests(&arena, "many", "/foos").len(), before, "nothing more is read");
        let status = &arena.module("many").await["status"];
        let owned = status["ownedKinds"].as_array().unwrap();
        let owned: Vec<_> = owned.iter().filter_map(|kind| kind["kind"].as_str()).collect();
        assert_eq!(owned, ["ConfigMap", "Service"]);
    });
}

#[test]
fn kind_of_a_parameter_that_comes_back_with_another_scope_is_resolved_again() {
    block_on(async {
        for is_restarted in [false, true] {
            let mut arena = Arena::start(&[definition("Foo", "foos", "Namespaced")]).await;
            arena.install(&attack("scope", &json!({"target": foo(), "copies": foo()}))).await;
            apply_primary(&arena, "scope", "late.example.dev/v1", "Foo").await;
            arena.module_says("scope", "KindsAvailable", "True", "AllKindsServed").await;
            delete(&arena, DEFINITION).await;
            arena.module_says("scope", "KindsAvailable", "False", "NotServed").await;
            if is_restarted {
                // A host that starts now knows the kind from the status.
                arena = arena.restart().await;
                arena.module_says("scope", "KindsAvailable", "False", "NotServed").await;
                arena.module_says("scope", "Serving", "True", "RevisionActive").await;
            }
            arena.apply(&definition("Foo", "foos", "Cluster")).await;
            arena.pass(10).await;
            arena.module_says("scope", "KindsAvailable", "True", "AllKindsServed").await;
            arena.module_says("scope", "Ready", "True", "RevisionActive").await;
            let status = &arena.module("scope").await["status"];
            assert_eq!(status["primary"]["clusterScoped"], true);
            assert_eq!(status["ownedKinds"][0]["clusterScoped"], true);
        }
    });
}

#[test]
fn kind_of_a_parameter_that_changes_its_scope_often_costs_bounded_requests() {
    block_on(async {
        let arena = Arena::start(&[definition("Foo", "foos", "Namespaced")]).await;
        arena.install(&attack("flips", &json!({"copies": foo(), "watch": foo()}))).await;
        arena.module_says("flips", "Ready", "True", "RevisionActive").await;
        let of_group = |line: &&String| line.contains("/apis/late.example.dev/v1");
        let before = arena.log().iter().filter(of_group).count();
        for round in 0..100 {
            delete(&arena, DEFINITION).await;
            let scope = if round % 2 == 0 { "Cluster" } else { "Namespaced" };
            arena.apply(&definition("Foo", "foos", scope)).await;
            arena.pass(1).await;
        }
        arena.module_says("flips", "KindsAvailable", "True", "AllKindsServed").await;
        let flips = arena.log().iter().filter(of_group).count() - before;
        assert!(flips < 2_000, "{flips} requests and events for 100 changes");
        delete(&arena, DEFINITION).await;
        arena.module_says("flips", "KindsAvailable", "False", "NotServed").await;
        let before = requests(&arena, "flips", "/foos").len();
        arena.pass(1_200).await;
        assert_eq!(requests(&arena, "flips", "/foos").len(), before, "nothing more is read");
    });
}

/// The guest of [`decorator`], which wants a Foo too.
fn foo_maker() -> Tiny {
    let mut made = foo();
    made["metadata"] = json!({"name": "made"});
    let manifest = json!({"name": "maker", "version": "1.0.0",
        "primary": kind("apps/v1", "StatefulSet", "statefulsets", "Namespaced"), "decorates": true,
        "parametersSchema": {"type": "object", "properties": {"target": {}, "copies": {}, "watch": {}}},
        "kindParameters": [{"parameter": "copies", "role": "Owned"}]});
    guest(&manifest, &wants(&[made]))
}

/// Lets the status of Modules have this many owned kinds.
async fn limit_owned_kinds(arena: &Arena, most: u32) {
    let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/modules.innkeeper.dev";
    let mut versions = arena.get(path).await.unwrap()["spec"]["versions"].clone();
    let status = &mut versions[0]["schema"]["openAPIV3Schema"]["properties"]["status"];
    status["properties"]["ownedKinds"]["maxItems"] = most.into();
    arena.merge(path, &json!({"spec": {"versions": versions}})).await;
}

#[test]
fn objects_of_kinds_that_were_dropped_while_no_host_ran_are_pruned() {
    block_on(async {
        let arena = Arena::start(&[definition("Foo", "foos", "Namespaced")]).await;
        let spec = json!({"rollout": {"strategy": "Immediate"}});
        let of = |tiny: &Tiny| Attack::new("drop", tiny).has_all_rights().spec(spec.clone());
        arena.install(&of(&foo_maker())).await;
        apply_primary(&arena, "drop", "apps/v1", "StatefulSet").await;
        arena.module_says("drop", "Ready", "True", "RevisionActive").await;
        // The API server refuses each status that names the kind.
        limit_owned_kinds(&arena, 0).await;
        set(&arena, "drop", &json!({"copies": foo()})).await;
        arena.module_says("drop", "Ready", "Unknown", "CheckingParameters").await;
        arena.pass(60).await;
        assert_eq!(requests(&arena, "drop", "/foos"), Vec::<String>::new());
        limit_owned_kinds(&arena, 100).await;
        arena.module_says("drop", "Ready", "True", "RevisionActive").await;
        let made = "/apis/late.example.dev/v1/namespaces/attack-drop/foos/made";
        arena.pass(10).await;
        assert_ne!(arena.get(made).await, None);

        // The next version wants no Foo, and the parameters name none.
        let simulator = arena.end().await;
        let api = Api::simulated(simulator.clone());
        let module = "/apis/innkeeper.dev/v1alpha1/modules/drop";
        let change = json!({"spec": {"parameters": {"copies": null}}});
        api.send("PATCH", module, Content::MergePatch, &change).await.unwrap();
        for object in of(&decorator()).objects() {
            api.apply(&object, "default").await.unwrap();
        }
        let arena = Arena::on(simulator).await;
        arena.pass(60).await;
        assert_eq!(arena.get(made).await, None);
    });
}
