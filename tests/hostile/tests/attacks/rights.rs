//! Tenants whose primaries need rights that the module does not have in their namespace.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use innkeeper_hostile_tests::{
    Arena, Attack, GROUP, MODULES, block_on, condition, guest, manifest,
};
use innkeeper_tiny_guests::Tiny;
use serde_json::{Value, json};

use crate::objects::{config_map, replace, semver};

const RBAC: &str = "rbac.authorization.k8s.io";

/// A guest that makes a ConfigMap in the namespace of each primary, or nothing.
fn maker(version: &str, makes: bool) -> Tiny {
    let mut manifest = manifest(&[]);
    manifest["version"] = semver(version).into();
    let objects = makes.then(|| json!({"object": config_map("made")}));
    guest(&manifest, &json!({"objects": objects.into_iter().collect::<Vec<_>>()}))
}

/// A module `shared` with primaries at home and in these namespaces, in none of which its account
/// may write ConfigMaps. It reads them everywhere.
async fn arena(tenants: &[&str]) -> Arena {
    let namespaces = tenants
        .iter()
        .map(|name| json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}));
    let arena = Arena::start(&namespaces.collect::<Vec<_>>()).await;
    let rule = |group: &str, resources: &[&str], verbs: &[&str]| json!({"apiGroups": [group], "resources": resources, "verbs": verbs});
    arena
        .apply(&json!({"apiVersion": format!("{RBAC}/v1"), "kind": "ClusterRole",
        "metadata": {"name": "reads"}, "rules": [
            rule(GROUP, &["hostiles"], &["get", "list", "watch"]),
            rule(GROUP, &["hostiles/status"], &["patch"]),
            rule(GROUP, &["hostiles/finalizers"], &["update"]),
            rule("events.k8s.io", &["events"], &["create", "patch"]),
            rule("", &["configmaps"], &["get", "list", "watch"]),
        ]}))
        .await;
    arena
        .apply(&json!({"apiVersion": format!("{RBAC}/v1"), "kind": "ClusterRoleBinding",
            "metadata": {"name": "reads"},
            "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": "reads"},
            "subjects": [{"kind": "ServiceAccount", "name": "shared", "namespace": MODULES}]}))
        .await;
    let all: Vec<&str> = ["attack-shared"].iter().chain(tenants).copied().collect();
    let spec = json!({"namespaces": all, "rollout": {"strategy": "Immediate"}});
    arena.install(&Attack::new("shared", &maker("1", false)).spec(spec)).await;
    arena.primary_says("shared", "Synced", "True", "Applied").await;
    for tenant in tenants {
        for name in ["one", "two", "three"] {
            arena
                .apply(&json!({"apiVersion": format!("{GROUP}/v1"), "kind": "Hostile",
                    "metadata": {"name": name, "namespace": tenant}}))
                .await;
        }
    }
    arena.pass(30).await;
    arena
}

async fn version(arena: &Arena) -> Value {
    arena.module("shared").await["status"]["guest"]["version"].clone()
}

#[test]
fn tenant_in_a_namespace_without_rights_rolls_back_no_revision_of_others() {
    block_on(async {
        // Given primaries of a tenant in a namespace where the account may not write.
        let arena = arena(&["tenant"]).await;

        // When a revision that writes becomes active.
        replace(&arena, "shared", "2", &maker("2", true)).await;
        arena.pass(120).await;

        // Then it stays, the other namespace has its object, and the Module names the right.
        assert_eq!(version(&arena).await, semver("2"));
        arena.primary_says("shared", "Synced", "True", "Applied").await;
        let message = arena.module_says("shared", "Healthy", "False", "Forbidden").await;
        assert!(message.contains("configmaps in namespace tenant"), "{message}");
        let path = format!("/apis/{GROUP}/v1/namespaces/tenant/hostiles/one");
        let primary = arena.get(&path).await.unwrap();
        assert_eq!(condition(&primary, "Synced").unwrap()["reason"], "Forbidden");
    });
}

#[test]
fn right_that_is_missing_in_several_namespaces_rolls_a_revision_back() {
    block_on(async {
        let arena = arena(&["tenant", "other"]).await;
        let source = format!("/api/v1/namespaces/{MODULES}/configmaps/shared");
        let component = BASE64.encode(maker("2", true).component());
        arena.merge(&source, &json!({"binaryData": {"guest.wasm": component}})).await;
        arena.module_says("shared", "Ready", "False", "RolledBack").await;
        assert_eq!(version(&arena).await, semver("1"));
    });
}
