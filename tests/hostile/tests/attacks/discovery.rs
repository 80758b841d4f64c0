//! Kinds, plurals and scopes that a guest invents.

use innkeeper_hostile_tests::{
    Arena, Attack, GROUP, MODULES, block_on, condition, guest, manifest,
};
use innkeeper_lab::Content;
use innkeeper_tiny_guests::Tiny;
use serde_json::{Value, json};

use crate::kinds::{definition, kind, namespace, of_primary, reading, requests, secret, wants};

const DEFINITION: &str =
    "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/foos.late.example.dev";

fn foo() -> Value {
    kind("late.example.dev/v1", "Foo", "foos", "Namespaced")
}

fn config_map(namespace: &str, name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": namespace}, "data": {"a": "b"}})
}

async fn delete(arena: &Arena, path: &str) {
    arena.lab().api().send("DELETE", path, Content::Json, &json!({})).await.unwrap();
}

#[test]
fn secrets_under_another_kind_are_refused_by_name_and_never_read() {
    block_on(async {
        let arena = Arena::start(&[namespace("victim"), secret("victim", "bytes")]).await;
        let loot = kind("v1", "Loot", "secrets", "Namespaced");
        for (name, manifest, declared) in [
            ("sekret", reading(&[kind("v1", "Sekret", "secrets", "Namespaced")]), "v1 Sekret"),
            ("map", reading(&[kind("v1", "ConfigMaps", "secrets", "Namespaced")]), "v1 ConfigMaps"),
            ("loot", manifest(&[loot]), "v1 Loot"),
            ("plural", reading(&[kind("v1", "Secret", "sekrets", "Namespaced")]), "v1 Secret"),
            ("scope", reading(&[kind("v1", "Secret", "secrets", "Cluster")]), "v1 Secret"),
            (
                "primary",
                of_primary(kind("v1", "Sekret", "secrets", "Namespaced"), &[]),
                "v1 Sekret",
            ),
        ] {
            let attack = Attack::new(name, &guest(&manifest, &wants(&[]))).has_all_rights();
            let attack = attack.spec(json!({"namespaces": []}));
            arena.install(&attack).await;
            let message = arena.module_says(name, "Loaded", "False", "KindMismatch").await;
            assert!(message.contains(&format!("declares {declared} (")), "{message}");
            let served = "serves v1 Secret (plural secrets, scope Namespaced)";
            assert!(message.contains(served), "{message}");
            assert!(message.contains("correct the guest's manifest"), "{message}");
            assert_eq!(requests(&arena, name, "secrets"), Vec::<String>::new());
        }
    });
}

#[test]
fn a_config_map_that_is_called_secrets_is_refused() {
    block_on(async {
        let arena = Arena::start(&[secret("default", "bytes")]).await;
        let mut manifest = manifest(&[]);
        manifest["owned"] = json!([{"kind": kind("v1", "ConfigMap", "secrets", "Namespaced")}]);
        arena
            .install(&Attack::new("as-map", &guest(&manifest, &wants(&[]))).has_all_rights())
            .await;
        arena.module_says("as-map", "Loaded", "False", "KindMismatch").await;
        assert_eq!(requests(&arena, "as-map", "secrets"), Vec::<String>::new());
    });
}

#[test]
fn names_that_fold_to_a_secret_or_are_subresources_are_no_manifest() {
    block_on(async {
        let arena = Arena::start(&[]).await;
        for (name, read) in [
            ("folded", kind("v1", "\u{17f}ecret", "secrets", "Namespaced")),
            ("lower", kind("v1", "secret", "secrets", "Namespaced")),
            ("subresource", kind("v1", "Secret", "secrets/status", "Namespaced")),
            ("scale", kind("apps/v1", "Scale", "deployments/scale", "Namespaced")),
        ] {
            let guest = guest(&reading(&[read]), &wants(&[]));
            arena.install(&Attack::new(name, &guest).has_all_rights()).await;
            arena.module_says(name, "Loaded", "False", "InvalidManifest").await;
            assert_eq!(requests(&arena, name, "secrets"), Vec::<String>::new());
        }
    });
}

#[test]
fn a_namespaced_primary_that_is_declared_cluster_scoped_writes_nowhere() {
    block_on(async {
        let arena = Arena::start(&[namespace("victim"), namespace("innkeeper-system")]).await;
        let primary = kind(&format!("{GROUP}/v1"), "Hostile", "hostiles", "Cluster");
        let namespaces = kind("v1", "Namespace", "namespaces", "Cluster");
        let desired =
            wants(&[config_map("victim", "evil"), config_map(MODULES, "evil"), namespace("evil")]);
        let lies = Attack::new("scope", &guest(&of_primary(primary, &[namespaces]), &desired));
        arena.install(&lies.has_all_rights().spec(json!({"namespaces": []}))).await;
        let message = arena.module_says("scope", "Loaded", "False", "KindMismatch").await;
        assert!(message.contains("Hostile (plural hostiles, scope Cluster)"), "{message}");
        assert!(message.contains("Hostile (plural hostiles, scope Namespaced)"), "{message}");
        arena.pass(60).await;
        assert_eq!(requests(&arena, "scope", "evil"), Vec::<String>::new());
        for path in [
            "/api/v1/namespaces/evil".to_owned(),
            "/api/v1/namespaces/victim/configmaps/evil".to_owned(),
            format!("/api/v1/namespaces/{MODULES}/configmaps/evil"),
        ] {
            assert_eq!(arena.get(&path).await, None, "{path}");
        }
    });
}

#[test]
fn an_owned_kind_with_another_scope_is_refused() {
    block_on(async {
        let arena = Arena::start(&[]).await;
        for (name, owned) in [
            ("flat", kind("v1", "Secret", "secrets", "Cluster")),
            ("deep", kind("v1", "Namespace", "namespaces", "Namespaced")),
        ] {
            let guest = guest(&manifest(&[owned]), &wants(&[]));
            arena.install(&Attack::new(name, &guest).has_all_rights()).await;
            arena.module_says(name, "Loaded", "False", "KindMismatch").await;
        }
    });
}

/// A revision that wants the ConfigMap `good` with this value.
fn revision(version: &str, manifest: &Value) -> Tiny {
    let mut manifest = manifest.clone();
    manifest["version"] = version.into();
    let object = json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "good"}, "data": {"version": version}});
    guest(&manifest, &wants(&[object]))
}

#[test]
fn a_candidate_with_another_kind_replaces_no_active_revision() {
    block_on(async {
        let arena = Arena::start(&[secret("default", "bytes")]).await;
        for (name, strategy) in [("guarded", "Guarded"), ("immediate", "Immediate")] {
            let spec = json!({"rollout": {"strategy": strategy}});
            let honest = revision("1.0.0", &manifest(&[]));
            let attack =
                |guest: &Tiny| Attack::new(name, guest).spec(spec.clone()).has_all_rights();
            arena.install(&attack(&honest)).await;
            arena.primary_says(name, "Synced", "True", "Applied").await;

            let lies = reading(&[kind("v1", "Sekret", "secrets", "Namespaced")]);
            arena.install(&attack(&revision("2.0.0", &lies))).await;
            let message = arena.module_says(name, "Loaded", "False", "KindMismatch").await;
            assert!(message.contains("stays active"), "{message}");
            // The active revision goes on with what it did before.
            let path = format!("/api/v1/namespaces/attack-{name}/configmaps/good");
            delete(&arena, &path).await;
            arena.pass(60).await;
            assert_eq!(arena.get(&path).await.unwrap()["data"]["version"], "1.0.0");
            let module = arena.module(name).await;
            assert_eq!(condition(&module, "Serving").unwrap()["status"], "True");
            assert_eq!(requests(&arena, name, "secrets"), Vec::<String>::new());

            // A candidate that declares what is served takes over.
            arena.install(&attack(&revision("3.0.0", &manifest(&[])))).await;
            arena.module_says(name, "Loaded", "True", "SourceLoaded").await;
            arena.pass(30).await;
            assert_eq!(arena.get(&path).await.unwrap()["data"]["version"], "3.0.0");
        }
    });
}

#[test]
fn a_candidate_that_was_refused_serves_when_the_definition_is_corrected() {
    block_on(async {
        let arena = Arena::start(&[definition("Foo", "foos", "Cluster")]).await;
        let guest = revision("1.0.0", &reading(&[foo()]));
        arena.install(&Attack::new("early", &guest).has_all_rights()).await;
        arena.module_says("early", "Loaded", "False", "KindMismatch").await;
        delete(&arena, DEFINITION).await;
        arena.apply(&definition("Foo", "foos", "Namespaced")).await;
        arena.module_says("early", "Loaded", "True", "SourceLoaded").await;
        arena.primary_says("early", "Synced", "True", "Applied").await;
    });
}

#[test]
fn a_kind_that_is_not_served_yet_is_read_when_it_is_served() {
    block_on(async {
        let arena = Arena::start(&[]).await;
        let guest = revision("1.0.0", &reading(&[foo()]));
        arena.install(&Attack::new("waits", &guest).has_all_rights()).await;
        arena.module_says("waits", "KindsAvailable", "False", "NotServed").await;
        arena.primary_says("waits", "Synced", "True", "Applied").await;
        assert_eq!(requests(&arena, "waits", "/foos"), Vec::<String>::new());
        arena.apply(&definition("Foo", "foos", "Namespaced")).await;
        arena.module_says("waits", "KindsAvailable", "True", "AllKindsServed").await;
        assert!(!requests(&arena, "waits", "/foos").is_empty());
    });
}

#[test]
fn a_kind_that_is_served_otherwise_when_it_comes_is_never_listed() {
    block_on(async {
        let arena = Arena::start(&[]).await;
        for (name, served) in [
            ("other-kind", ("Bar", "foos", "Namespaced")),
            ("other-scope", ("Foo", "foos", "Cluster")),
        ] {
            let guest = revision("1.0.0", &reading(&[foo()]));
            arena.install(&Attack::new(name, &guest).has_all_rights()).await;
            arena.module_says(name, "KindsAvailable", "False", "NotServed").await;
            let (kind, plural, scope) = served;
            arena.apply(&definition(kind, plural, scope)).await;
            let message = arena.module_says(name, "KindsAvailable", "False", "KindMismatch").await;
            assert!(message.contains("declares late.example.dev/v1 Foo"), "{message}");
            arena.pass(120).await;
            assert_eq!(requests(&arena, name, "/foos"), Vec::<String>::new());
            delete(&arena, DEFINITION).await;
            arena.module_says(name, "KindsAvailable", "False", "NotServed").await;
        }
    });
}

#[test]
fn a_definition_that_is_replaced_while_a_module_serves_closes_its_kind() {
    block_on(async {
        let arena = Arena::start(&[definition("Foo", "foos", "Namespaced")]).await;
        let guest = revision("1.0.0", &reading(&[foo()]));
        arena.install(&Attack::new("later", &guest).has_all_rights()).await;
        arena.module_says("later", "KindsAvailable", "True", "AllKindsServed").await;
        for (kind, scope) in [("Bar", "Namespaced"), ("Foo", "Cluster")] {
            delete(&arena, DEFINITION).await;
            arena.apply(&definition(kind, "foos", scope)).await;
            arena.pass(30).await;
            let message =
                arena.module_says("later", "KindsAvailable", "False", "KindMismatch").await;
            assert!(message.contains(&format!("serves late.example.dev/v1 {kind} ")), "{message}");
            let before = requests(&arena, "later", "/foos").len();
            arena.pass(600).await;
            assert_eq!(requests(&arena, "later", "/foos").len(), before, "nothing more is read");
        }
        delete(&arena, DEFINITION).await;
        arena.apply(&definition("Foo", "foos", "Namespaced")).await;
        arena.module_says("later", "KindsAvailable", "True", "AllKindsServed").await;
        // The other kinds of the module were not held up.
        arena.primary_says("later", "Synced", "True", "Applied").await;
    });
}

#[test]
fn a_primary_kind_that_is_replaced_by_a_cluster_scoped_one_is_not_reconciled() {
    block_on(async {
        let arena =
            Arena::start(&[definition("Foo", "foos", "Namespaced"), namespace("victim")]).await;
        let object = json!({"apiVersion": "late.example.dev/v1", "kind": "Foo",
            "metadata": {"name": "first", "namespace": "attack-swapped"}});
        let desired = wants(&[json!({"apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": "evil", "namespace": "victim"}})]);
        let guest = guest(&of_primary(foo(), &[]), &desired);
        arena.install(&Attack::new("swapped", &guest).has_all_rights()).await;
        arena.apply(&object).await;
        arena.module_says("swapped", "Healthy", "False", "CrossNamespace").await;
        delete(&arena, DEFINITION).await;
        arena.apply(&definition("Foo", "foos", "Cluster")).await;
        arena.module_says("swapped", "KindsAvailable", "False", "KindMismatch").await;
        let object = json!({"apiVersion": "late.example.dev/v1", "kind": "Foo",
            "metadata": {"name": "first"}});
        let path = "/apis/late.example.dev/v1/foos";
        arena.lab().api().send("POST", path, Content::Json, &object).await.unwrap();
        arena.pass(120).await;
        assert_eq!(arena.get("/api/v1/namespaces/victim/configmaps/evil").await, None);
    });
}

#[test]
fn a_version_that_is_not_served_is_neither_read_nor_written() {
    block_on(async {
        let arena = Arena::start(&[definition("Foo", "foos", "Namespaced")]).await;
        let skewed = kind("late.example.dev/v1beta1", "Foo", "foos", "Namespaced");
        let object = json!({"apiVersion": "late.example.dev/v1beta1", "kind": "Foo",
            "metadata": {"name": "evil"}});
        let guest = guest(&manifest(&[skewed]), &wants(&[object]));
        arena.install(&Attack::new("skew", &guest).has_all_rights()).await;
        let message = arena.module_says("skew", "KindsAvailable", "False", "NotServed").await;
        assert!(message.contains("late.example.dev/v1beta1 Foo"), "{message}");
        arena.primary_says("skew", "Synced", "False", "NotServed").await;
        assert_eq!(requests(&arena, "skew", "/foos"), Vec::<String>::new());
    });
}

#[test]
fn a_kind_of_several_groups_is_taken_in_each_of_them_as_it_is_served() {
    block_on(async {
        let arena = Arena::start(&[]).await;
        let honest = reading(&[
            kind("v1", "Event", "events", "Namespaced"),
            kind("events.k8s.io/v1", "Event", "events", "Namespaced"),
        ]);
        let attack = Attack::new("events", &revision("1.0.0", &honest)).has_all_rights();
        arena.install(&attack).await;
        arena.module_says("events", "KindsAvailable", "True", "AllKindsServed").await;
        let lies = reading(&[kind("events.k8s.io/v1", "Secret", "events", "Namespaced")]);
        arena.install(&Attack::new("lies", &revision("1.0.0", &lies)).has_all_rights()).await;
        arena.module_says("lies", "Loaded", "False", "KindMismatch").await;
    });
}

#[test]
fn of_two_modules_with_one_group_the_honest_one_goes_on() {
    block_on(async {
        let arena = Arena::start(&[definition("Foo", "foos", "Namespaced")]).await;
        let honest = revision("1.0.0", &reading(&[foo()]));
        arena.install(&Attack::new("one", &honest).has_all_rights()).await;
        arena.module_says("one", "KindsAvailable", "True", "AllKindsServed").await;
        let lies = reading(&[kind("late.example.dev/v1", "Bar", "foos", "Namespaced")]);
        arena.install(&Attack::new("two", &revision("1.0.0", &lies)).has_all_rights()).await;
        arena.module_says("two", "Loaded", "False", "KindMismatch").await;
        arena.pass(120).await;
        arena.module_says("one", "KindsAvailable", "True", "AllKindsServed").await;
        arena.primary_says("one", "Synced", "True", "Applied").await;
        assert_eq!(requests(&arena, "two", "/foos"), Vec::<String>::new());
    });
}

#[test]
fn an_active_revision_whose_kind_was_replaced_while_no_host_ran_serves_the_others() {
    block_on(async {
        let arena = Arena::start(&[definition("Foo", "foos", "Namespaced")]).await;
        let guest = revision("1.0.0", &reading(&[foo()]));
        arena.install(&Attack::new("back", &guest).has_all_rights()).await;
        arena.primary_says("back", "Synced", "True", "Applied").await;
        let digest = arena.module("back").await["status"]["digest"].clone();

        let simulator = arena.lab().simulator().clone();
        let arena = arena.restart().await;
        arena.module_says("back", "KindsAvailable", "True", "AllKindsServed").await;
        delete(&arena, DEFINITION).await;
        arena.apply(&definition("Bar", "foos", "Namespaced")).await;
        arena.pass(30).await;
        let arena = arena.restart().await;
        let before = simulator.log().len();
        arena.module_says("back", "KindsAvailable", "False", "KindMismatch").await;
        assert_eq!(arena.module("back").await["status"]["digest"], digest);
        let path = "/api/v1/namespaces/attack-back/configmaps/good";
        delete(&arena, path).await;
        arena.pass(60).await;
        assert_eq!(arena.get(path).await.unwrap()["data"]["version"], "1.0.0");
        let mut late = simulator.log().split_off(before);
        late.retain(|line| line.contains(&format!("{MODULES}:back ")) && line.contains("/foos"));
        assert_eq!(late, Vec::<String>::new());
    });
}
