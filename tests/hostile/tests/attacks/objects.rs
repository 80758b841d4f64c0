//! A guest that desires what its primary says, and objects for it.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use innkeeper_hostile_tests::{Arena, Attack, GROUP, MODULES, guest, manifest};
use innkeeper_lab::Content;
use innkeeper_tiny_guests::Tiny;
use serde_json::{Value, json};

/// How much virtual time a new version has to be served, and its answer to be carried out.
pub(crate) const SOON: Duration = Duration::from_mins(2);

/// A claim, as an owned kind.
pub(crate) fn claims() -> Value {
    json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim",
        "plural": "persistentvolumeclaims", "scope": "Namespaced"})
}

/// The kind of the primaries, as an owned kind.
pub(crate) fn hostiles() -> Value {
    json!({"apiVersion": format!("{GROUP}/v1"), "kind": "Hostile", "plural": "hostiles",
        "scope": "Namespaced"})
}

/// A major version as a semantic version.
pub(crate) fn semver(major: &str) -> String {
    format!("{major}.0.0")
}

/// A guest that owns ConfigMaps, claims and its own kind, and desires these objects.
pub(crate) fn desires(version: &str, objects: &Value) -> Tiny {
    let mut manifest = manifest(&[claims(), hostiles()]);
    manifest["version"] = semver(version).into();
    guest(&manifest, &json!({ "objects": objects }))
}

/// An attack whose next version serves at once, and whose account may write claims and primaries.
pub(crate) fn attack(name: &str, guest: &Tiny) -> Attack {
    let all = ["get", "list", "watch", "create", "patch", "update", "delete"];
    Attack::new(name, guest)
        .spec(json!({"rollout": {"strategy": "Immediate", "rollbackWindow": "0s"}}))
        .may(&all, "", "persistentvolumeclaims")
        .may(&all, GROUP, "hostiles")
        .may(&all, "apps", "statefulsets")
}

/// Replaces the guest of an attack, and waits until the new version serves and had its say.
pub(crate) async fn replace(arena: &Arena, name: &str, version: &str, guest: &Tiny) {
    let source = format!("/api/v1/namespaces/{MODULES}/configmaps/{name}");
    let data = json!({"binaryData": {"guest.wasm": BASE64.encode(guest.component())}});
    arena.merge(&source, &data).await;
    let what = format!("version {version} of {name} serves");
    let path = format!("/apis/innkeeper.dev/v1alpha1/modules/{name}");
    let serves = arena.lab().until(&what, SOON, async |api| {
        let module = api.get(&path).await?.unwrap_or_default();
        Ok(module["status"]["guest"]["version"] == semver(version))
    });
    serves.await.unwrap();
    arena.pass(30).await;
}

/// Writes by server-side apply under any name of a field manager, as an administrator.
pub(crate) async fn apply_as(arena: &Arena, manager: &str, path: &str, object: &Value) {
    let path = format!("{path}?fieldManager={}&force=true", manager.replace('/', "%2F"));
    arena.lab().api().send("PATCH", &path, Content::Apply, object).await.unwrap();
}

pub(crate) fn config_map(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"a": "b"}})
}
