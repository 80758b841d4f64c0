//! Tiny guests that answer with what a case says, and objects for them.

use innkeeper_tiny_guests::Tiny;
use serde_json::{Value, json};

/// Verbs of what is owned.
pub(crate) const OWN: &[&str] = &["get", "list", "watch", "create", "patch", "delete"];

/// A manifest that owns ConfigMaps and these: version, kind, plural, and whether it has namespaces.
pub(crate) fn manifest(owned: &[(&str, &str, &str, bool)]) -> Value {
    let kind = |api_version: &str, kind: &str, plural: &str, namespaced: bool| {
        json!({"apiVersion": api_version, "kind": kind, "plural": plural,
            "scope": if namespaced { "Namespaced" } else { "Cluster" }})
    };
    let owned: Vec<Value> = [("v1", "ConfigMap", "configmaps", true)]
        .iter()
        .chain(owned)
        .map(|one| json!({"kind": kind(one.0, one.1, one.2, one.3)}))
        .collect();
    json!({"name": "hostile", "primary": kind("hostile.example.dev/v1", "Hostile", "hostiles", true),
        "owned": owned})
}

/// A guest that owns ConfigMaps.
pub(crate) fn guest() -> Tiny {
    owning(&[])
}

/// A guest that owns ConfigMaps and these.
pub(crate) fn owning(owned: &[(&str, &str, &str, bool)]) -> Tiny {
    Tiny::default().manifest(&manifest(owned).to_string())
}

/// A guest that says of itself what `change` makes of an honest manifest.
pub(crate) fn describing(change: impl FnOnce(&mut Value)) -> Vec<u8> {
    let mut manifest = manifest(&[]);
    change(&mut manifest);
    Tiny::default().manifest(&manifest.to_string()).component()
}

/// A guest that owns ConfigMaps and answers with this text.
pub(crate) fn says(text: &str) -> Tiny {
    guest().outcome(0, text)
}

/// An answer that desires these.
pub(crate) fn desires(objects: &[Value]) -> String {
    let objects: Vec<Value> = objects.iter().map(|one| json!({ "object": one })).collect();
    json!({ "objects": objects }).to_string()
}

pub(crate) fn object(api_version: &str, kind: &str, name: &str) -> Value {
    json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": name}})
}

pub(crate) fn config_map(name: &str) -> Value {
    object("v1", "ConfigMap", name)
}

pub(crate) fn elsewhere(mut object: Value, namespace: &str) -> Value {
    object["metadata"]["namespace"] = namespace.into();
    object
}
