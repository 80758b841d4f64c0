//! The namespaces of Innkeeper itself: its modules, its sources and its key.

use innkeeper_hostile_tests::{
    Arena, Attack, GROUP, MODULES, block_on, condition, guest, manifest,
};
use serde_json::{Value, json};

use crate::kinds::{definition, kind, namespace, of_primary, reading, requests, secret, wants};

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
fn object_of_innkeeper_itself_holds_back_no_object_of_another_namespace() {
    block_on(async {
        // Given a guest that desires objects in all namespaces, by every way to write one.
        let map = |namespace: &str, name: &str| {
            json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"value": "evil"},
                "metadata": {"name": name, "namespace": namespace}})
        };
        let arena = Arena::start(&[
            namespace("innkeeper-system"),
            namespace("web"),
            map("innkeeper-system", "merged"),
            map("innkeeper-system", "grouped"),
            secret("web", "source"),
        ])
        .await;
        let role = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
            "metadata": {"name": "copies-reader"}, "rules": []});
        let copied = json!({"apiVersion": "v1", "kind": "Secret",
            "metadata": {"name": "copy", "namespace": MODULES}});
        let source = json!({"kind": "Secret", "namespace": "web", "name": "source"});
        let desired = json!({
            "objects": [
                {"object": map("innkeeper-system", "copy")},
                {"object": map(MODULES, "orphan"), "policy": ["orphan"]},
                {"object": map("innkeeper-system", "merged"), "policy": ["merge"]},
                {"object": map("innkeeper-system", "grouped"), "updateGroup": "all"},
                {"object": copied, "valuesFrom": [source]},
                {"object": map("web", "copy")},
                {"object": map("web", "grouped"), "updateGroup": "all"},
                {"object": role},
            ],
            "updateGroups": [{"name": "all", "method": "Recreate"}],
        });
        let mut manifest = manifest(&[
            kind("rbac.authorization.k8s.io/v1", "ClusterRole", "clusterroles", "Cluster"),
            kind("v1", "Secret", "secrets", "Namespaced"),
        ]);
        manifest["finalizer"] = "".into();
        let mut granted = source;
        granted["toNamespaces"] = json!(["*"]);
        let spec = json!({"namespaces": [], "allowCrossNamespace": true,
            "valueSources": [granted]});
        let attack = Attack::new("copies", &guest(&manifest, &desired)).has_all_rights();

        // When it is installed, and the host restarts.
        arena.install(&attack.spec(spec)).await;
        let message = arena.primary_says("copies", "Synced", "False", "ReservedObject").await;
        assert!(message.contains("belongs to Innkeeper itself"), "{message}");
        let arena = arena.restart().await;
        arena.pass(60).await;

        // Then the host makes the objects elsewhere, sends nothing for the others, and the module
        // is at fault.
        let message = arena.module_says("copies", "Healthy", "False", "ReservedObject").await;
        assert!(message.contains("belongs to Innkeeper itself"), "{message}");
        let web = "/api/v1/namespaces/web/configmaps";
        for path in [
            &format!("{web}/copy"),
            &format!("{web}/grouped"),
            "/apis/rbac.authorization.k8s.io/v1/clusterroles/copies-reader",
        ] {
            assert!(arena.get(path).await.is_some(), "{path}");
        }
        for reserved in ["innkeeper-system", MODULES] {
            let path = format!("/namespaces/{reserved}");
            assert_eq!(requests(&arena, "copies", &path), Vec::<String>::new());
        }
        for name in ["merged", "grouped"] {
            let path = format!("/api/v1/namespaces/innkeeper-system/configmaps/{name}");
            let managers = arena.get(&path).await.unwrap()["metadata"]["managedFields"].to_string();
            assert!(!managers.contains("innkeeper/copies"), "{managers}");
        }
    });
}

#[test]
fn object_in_innkeepers_own_namespaces_is_never_a_primary() {
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
        // By spec.secretNames, with a primary next to it.
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
