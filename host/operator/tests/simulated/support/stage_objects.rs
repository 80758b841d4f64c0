//! The objects that a stage begins with.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::script::GROUP;

/// The namespace of the primaries; the scripted guest reads the ConfigMap `cm` there.
pub(crate) const NAMESPACE: &str = "ns";
/// The name of the module and of its ServiceAccount.
pub(super) const MODULE: &str = "scripts";
const RBAC: &str = "rbac.authorization.k8s.io";

pub(super) fn namespace(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
}

/// The ConfigMap that holds the component of the module.
pub(crate) fn component(bytes: &[u8]) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": MODULE, "namespace": "innkeeper-modules"},
        "binaryData": {"guest.wasm": STANDARD.encode(bytes)}})
}

/// A CustomResourceDefinition in the tests' group; its spec and status take anything.
pub(crate) fn definition(kind: &str, plural: &str) -> Value {
    let any = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let mut status = any.clone();
    status["properties"]["conditions"] = json!({"type": "array", "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["type"],
        "items": {"type": "object", "required": ["type"], "x-kubernetes-preserve-unknown-fields": true,
            "properties": {"type": {"type": "string"}}}});
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.{GROUP}")},
        "spec": {"group": GROUP, "scope": "Namespaced", "names": {"kind": kind, "plural": plural},
            "versions": [{"name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": any, "status": status}}}}]}})
}

/// An object in the namespace of the primaries, unless it is a definition.
pub(super) fn in_namespace(mut object: Value) -> Value {
    if object["kind"] != "CustomResourceDefinition" {
        object["metadata"]["namespace"] = json!(NAMESPACE);
    }
    object
}

pub(super) fn rule(group: &str, resource: &str, verbs: &[&str]) -> Value {
    json!({"apiGroups": [group], "resources": [resource], "verbs": verbs})
}

/// The module's account with its role.
pub(super) fn rights(further: &[Value]) -> Vec<Value> {
    let mut rules = vec![
        rule(GROUP, "scripts", &["get", "list", "watch", "patch"]),
        rule(GROUP, "scripts/status", &["patch"]),
        rule(GROUP, "scripts/finalizers", &["update"]),
        rule("events.k8s.io", "events", &["create", "patch"]),
        rule("", "configmaps", &["get", "list", "watch", "create", "patch", "delete"]),
    ];
    rules.extend(further.iter().cloned());
    vec![
        json!({"apiVersion": "v1", "kind": "ServiceAccount",
            "metadata": {"name": MODULE, "namespace": "innkeeper-modules",
                "annotations": {"innkeeper.dev/allowed-modules": MODULE}}}),
        json!({"apiVersion": format!("{RBAC}/v1"), "kind": "ClusterRole",
            "metadata": {"name": MODULE}, "rules": rules}),
        json!({"apiVersion": format!("{RBAC}/v1"), "kind": "ClusterRoleBinding",
            "metadata": {"name": MODULE},
            "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": MODULE},
            "subjects": [{"kind": "ServiceAccount", "name": MODULE, "namespace": "innkeeper-modules"}]}),
    ]
}
