//! Kinds as a manifest declares them, and objects of them.

use innkeeper_hostile_tests::{Arena, MODULES, manifest};
use serde_json::{Value, json};

/// A kind as a manifest declares it.
pub(crate) fn kind(api_version: &str, kind: &str, plural: &str, scope: &str) -> Value {
    json!({"apiVersion": api_version, "kind": kind, "plural": plural, "scope": scope})
}

/// A manifest that reads these kinds.
pub(crate) fn reading(reads: &[Value]) -> Value {
    let mut manifest = manifest(&[]);
    manifest["reads"] = json!(reads);
    manifest
}

/// A manifest with another primary.
pub(crate) fn of_primary(primary: Value, owned: &[Value]) -> Value {
    let mut manifest = manifest(owned);
    manifest["primary"] = primary;
    manifest
}

/// The definition of a kind in a group of its own.
pub(crate) fn definition(kind: &str, plural: &str, scope: &str) -> Value {
    let any = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.late.example.dev")},
        "spec": {"group": "late.example.dev", "scope": scope,
            "names": {"kind": kind, "plural": plural},
            "versions": [{"name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": any}}}}]}})
}

pub(crate) fn secret(namespace: &str, name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": namespace},
        "data": {"key": "aHVudGVyMmh1bnRlcjI="}})
}

pub(crate) fn namespace(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
}

/// What a guest wants: these objects, as they are.
pub(crate) fn wants(objects: &[Value]) -> Value {
    let objects: Vec<Value> = objects.iter().map(|one| json!({ "object": one })).collect();
    json!({ "objects": objects })
}

/// The requests of an attack's account whose method or path holds this part.
pub(crate) fn requests(arena: &Arena, account: &str, part: &str) -> Vec<String> {
    let user = format!("{MODULES}:{account} ");
    let mut log = arena.log();
    log.retain(|line| {
        let head = line.split(" Query ").next().unwrap_or_default();
        line.contains(&user) && head.contains(part)
    });
    log
}
