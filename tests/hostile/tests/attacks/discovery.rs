//! Kinds, plurals and scopes that a guest invents.

use innkeeper_hostile_tests::{
    Arena, Attack, GROUP, MODULES, block_on, condition, guest, manifest,
};
use innkeeper_lab::Content;
use innkeeper_tiny_guests::Tiny;
use serde_json::{Value, json};

/// A kind as a manifest declares it.
fn kind(api_version: &str, kind: &str, plural: &str, scope: &str) -> Value {
    json!({"apiVersion": api_version, "kind": kind, "plural": plural, "scope": scope})
}

/// A manifest that reads these kinds.
fn reading(reads: &[Value]) -> Value {
    let mut manifest = manifest(&[]);
    manifest["reads"] = json!(reads);
    manifest
}

/// A manifest with another primary.
fn of_primary(primary: Value, owned: &[Value]) -> Value {
    let mut manifest = manifest(owned);
    manifest["primary"] = primary;
    manifest
}

/// The definition of a kind in a group of its own.
fn definition(kind: &str, plural: &str, scope: &str) -> Value {
    let any = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.late.example.dev")},
        "spec": {"group": "late.example.dev", "scope": scope,
            "names": {"kind": kind, "plural": plural},
            "versions": [{"name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": any}}}}]}})
}

const DEFINITION: &str =
    "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/foos.late.example.dev";

fn foo() -> Value {
    kind("late.example.dev/v1", "Foo", "foos", "Namespaced")
}

fn secret(namespace: &str, name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": namespace},
        "data": {"key": "aHVudGVyMmh1bnRlcjI="}})
}

fn namespace(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
}

/// What a guest wants: these objects, as they are.
fn wants(objects: &[Value]) -> Value {
    let objects: Vec<Value> = objects.iter().map(|one| json!({ "object": one })).collect();
    json!({ "objects": objects })
}

fn config_map(namespace: &str, name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": namespace}, "data": {"a": "b"}})
}

/// The requests of an attack's account whose method or path holds this part.
fn requests(arena: &Arena, account: &str, part: &str) -> Vec<String> {
    let user = format!("{MODULES}:{account} ");
    let mut log = arena.log();
    log.retain(|line| {
        let head = line.split(" Query ").next().unwrap_or_default();
        line.contains(&user) && head.contains(part)
    });
    log
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
fn a_cluster_scoped_module_writes_nothing_of_innkeeper_itself() {
    block_on(async {
        let arena = Arena::start(&[
            definition("Wide", "wides", "Cluster"),
            namespace("innkeeper-system"),
            namespace("victim"),
        ])
        .await;
        let primary = kind("late.example.dev/v1", "Wide", "wides", "Cluster");
        let owned = [
            kind("v1", "Namespace", "namespaces", "Cluster"),
            kind("v1", "ServiceAccount", "serviceaccounts", "Namespaced"),
            kind("coordination.k8s.io/v1", "Lease", "leases", "Namespaced"),
            kind("apiregistration.k8s.io/v1", "APIService", "apiservices", "Cluster"),
        ];
        let object = |api_version: &str, kind: &str, namespace: &str, name: &str| {
            let mut object = json!({"apiVersion": api_version, "kind": kind,
                "metadata": {"name": name, "labels": {"evil": "true"}}});
            if !namespace.is_empty() {
                object["metadata"]["namespace"] = namespace.into();
            }
            object
        };
        let evil = [
            ("component", object("v1", "ConfigMap", MODULES, "component")),
            ("account", object("v1", "ServiceAccount", MODULES, "evil")),
            ("lease", object("coordination.k8s.io/v1", "Lease", "innkeeper-system", "innkeeper")),
            (
                "service",
                object("apiregistration.k8s.io/v1", "APIService", "", "v1alpha1.innkeeper.dev"),
            ),
            ("modules", object("v1", "Namespace", "", MODULES)),
            ("system", object("v1", "Namespace", "", "innkeeper-system")),
        ];
        for (name, object) in evil {
            for policy in [json!([]), json!(["merge"])] {
                let name = format!("{name}{}", policy.as_array().unwrap().len());
                let desired = json!({"objects": [{"object": object, "policy": policy}]});
                let guest = guest(&of_primary(primary.clone(), &owned), &desired);
                let spec = json!({"namespaces": [], "allowCrossNamespace": true,
                    "selector": {"matchLabels": {"for": name}}});
                arena.install(&Attack::new(&name, &guest).has_all_rights().spec(spec)).await;
                arena
                    .apply(&json!({"apiVersion": "late.example.dev/v1", "kind": "Wide",
                        "metadata": {"name": name, "labels": {"for": name}}}))
                    .await;
                let message = arena.module_says(&name, "Healthy", "False", "ReservedObject").await;
                assert!(message.contains("belongs to Innkeeper itself"), "{message}");
                let mut writes = requests(&arena, &name, "PATCH ");
                writes.retain(|line| !line.contains("/wides/"));
                assert_eq!(writes, Vec::<String>::new());
            }
        }
        let labels = |object: Option<Value>| object.unwrap()["metadata"]["labels"]["evil"].clone();
        let namespace = arena.get(&format!("/api/v1/namespaces/{MODULES}")).await;
        assert_eq!(labels(namespace), Value::Null);
    });
}

#[test]
fn what_lies_in_innkeepers_own_namespaces_is_no_modules_primary() {
    block_on(async {
        let arena = Arena::start(&[namespace("innkeeper-system"), namespace(MODULES)]).await;
        let desired = wants(&[json!({"apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": "evil"}})]);
        let guest = guest(&manifest(&[]), &desired);
        for home in ["innkeeper-system", MODULES] {
            let primary = json!({"apiVersion": format!("{GROUP}/v1"), "kind": "Hostile",
                "metadata": {"name": "first", "namespace": home}});
            arena.apply(&primary).await;
            let name = format!("in-{home}");
            let spec = json!({"namespaces": [home]});
            arena.install(&Attack::new(&name, &guest).spec(spec).has_all_rights()).await;
            let message = arena.module_says(&name, "Ready", "False", "InvalidSpec").await;
            assert!(message.contains("belongs to Innkeeper itself"), "{message}");
        }
        // A module of all namespaces reconciles what lies elsewhere.
        let all = Attack::new("all", &guest).spec(json!({"namespaces": []})).has_all_rights();
        arena.install(&all).await;
        arena.primary_says("all", "Synced", "True", "Applied").await;
        for home in ["innkeeper-system", MODULES] {
            let path = format!("/api/v1/namespaces/{home}/configmaps/evil");
            assert_eq!(arena.get(&path).await, None);
            for name in ["all", &format!("in-{home}")] {
                let mut writes = requests(&arena, name, "PATCH ");
                writes.retain(|line| line.contains(&format!("/namespaces/{home}/")));
                assert_eq!(writes, Vec::<String>::new());
            }
        }
    });
}

#[test]
fn the_key_of_the_digests_is_read_by_no_module() {
    block_on(async {
        let arena = Arena::start(&[
            namespace("innkeeper-system"),
            secret("innkeeper-system", "innkeeper-digest-key"),
        ])
        .await;
        let secrets = kind("v1", "Secret", "secrets", "Namespaced");
        // By spec.secretNames, with a primary beside it.
        let spec = json!({"namespaces": [], "secretNames": ["innkeeper-digest-key"]});
        let guest_ = guest(&reading(std::slice::from_ref(&secrets)), &wants(&[]));
        arena.install(&Attack::new("grants", &guest_).has_all_rights().spec(spec)).await;
        arena
            .apply(&json!({"apiVersion": format!("{GROUP}/v1"), "kind": "Hostile",
                "metadata": {"name": "first", "namespace": "innkeeper-system"}}))
            .await;
        arena.module_says("grants", "KindsAvailable", "True", "AllKindsServed").await;
        // By a primary that is a Secret itself: each one is reconciled, but for that one.
        arena.apply(&secret("default", "other")).await;
        let decorates = json!({"name": "hostile", "version": "1.0.0", "primary": secrets,
            "owned": [{"kind": secrets, "merges": true}]});
        let merge = |namespace: &str, name: &str| {
            let object = json!({"apiVersion": "v1", "kind": "Secret",
                "metadata": {"name": name, "namespace": namespace, "labels": {"seen": "true"}}});
            json!({"object": object, "policy": ["merge"]})
        };
        let desired = json!({"objects": [merge("innkeeper-system", "innkeeper-digest-key")]});
        let attack = Attack::new("primary", &guest(&decorates, &desired)).has_all_rights();
        let spec = json!({"namespaces": [], "allowCrossNamespace": true});
        arena.install(&attack.spec(spec)).await;
        arena.module_says("primary", "Healthy", "False", "ReservedObject").await;
        arena.pass(60).await;
        for name in ["grants", "primary"] {
            let found = requests(&arena, name, "/namespaces/innkeeper-system/secrets/");
            assert_eq!(found, Vec::<String>::new(), "{name}");
        }
        let path = "/api/v1/namespaces/innkeeper-system/secrets/innkeeper-digest-key";
        let key = arena.get(path).await.unwrap();
        assert_eq!(key["metadata"].get("labels"), None);
    });
}

#[test]
fn a_module_of_namespaces_leaves_innkeepers_own_alone_and_takes_the_others() {
    block_on(async {
        let arena = Arena::start(&[namespace("innkeeper-system"), namespace("web")]).await;
        let namespaces = kind("v1", "Namespace", "namespaces", "Cluster");
        let manifest = json!({"name": "hostile", "version": "1.0.0", "primary": namespaces,
            "owned": [{"kind": namespaces, "merges": true}], "finalizer": ""});
        let attack = Attack::new("wide", &guest(&manifest, &wants(&[]))).has_all_rights();
        arena.install(&attack.spec(json!({"namespaces": []}))).await;
        arena.module_says("wide", "KindsAvailable", "True", "AllKindsServed").await;
        arena.pass(60).await;
        let finalizers = async |name: &str| {
            let object = arena.get(&format!("/api/v1/namespaces/{name}")).await.unwrap();
            object["metadata"]["finalizers"].clone()
        };
        assert_ne!(finalizers("web").await, Value::Null);
        for name in ["innkeeper-system", MODULES] {
            assert_eq!(finalizers(name).await, Value::Null, "{name}");
            let path = format!("/namespaces/{name}");
            let mut writes = requests(&arena, "wide", &path);
            writes.retain(|line| line.starts_with("PATCH"));
            assert_eq!(writes, Vec::<String>::new());
        }
        let module = arena.module("wide").await;
        assert_eq!(condition(&module, "Healthy").unwrap()["status"], "True", "{module:#}");
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
