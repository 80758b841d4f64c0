//! A kind of things, the module that defines it, and things that are stored.

use innkeeper_hostile_tests::{Arena, Attack, SOON, guest, manifest};
use serde_json::{Value, json};

pub(crate) const DEFINED: &str = "defined.example.dev";

pub(crate) const CRD: &str =
    "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/things.defined.example.dev";

/// A definition of things with this schema of their spec.
pub(crate) fn things(spec: &Value) -> Value {
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("things.{DEFINED}")},
        "spec": {"group": DEFINED, "scope": "Namespaced",
            "names": {"kind": "Thing", "plural": "things"},
            "versions": [{"name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}}}]}})
}

pub(crate) fn object_of(properties: &Value) -> Value {
    json!({"type": "object", "properties": properties})
}

pub(crate) fn size_and_color() -> Value {
    object_of(&json!({"size": {"type": "integer"}, "color": {"type": "string"}}))
}

pub(crate) fn grown() -> Value {
    object_of(
        &json!({"size": {"type": "integer"}, "color": {"type": "string"}, "shape": {"type": "string"}}),
    )
}

/// A module whose guest describes these definitions.
pub(crate) fn attack(name: &str, definitions: &[Value]) -> Attack {
    let mut manifest = manifest(&[]);
    manifest["crds"] = json!(definitions);
    Attack::new(name, &guest(&manifest, &json!({})))
        .spec(json!({"allowedCRDGroups": [DEFINED]}))
        .has_all_rights()
}

/// Gives a module that is installed another component.
pub(crate) async fn push(arena: &Arena, attack: &Attack) {
    for object in attack.objects().iter().filter(|one| one["kind"] == "ConfigMap") {
        arena.apply(object).await;
    }
    // What the Module says then is of this component and not of the one before.
    arena.pass(20).await;
}

/// An arena in which the module `things` has installed a definition, and a thing is stored.
pub(crate) async fn arena_with(definition: &Value, spec: &Value) -> Arena {
    let arena = Arena::start(&[]).await;
    arena.install(&attack("things", std::slice::from_ref(definition))).await;
    arena.module_says("things", "Ready", "True", "RevisionActive").await;
    arena.apply(&thing("a", spec)).await;
    arena
}

pub(crate) async fn arena() -> Arena {
    arena_with(&things(&size_and_color()), &json!({"size": 3, "color": "red"})).await
}

pub(crate) fn thing(name: &str, spec: &Value) -> Value {
    json!({"apiVersion": format!("{DEFINED}/v1"), "kind": "Thing",
        "metadata": {"name": name, "namespace": "attack-things"}, "spec": spec})
}

pub(crate) async fn stored(arena: &Arena, name: &str) -> Option<Value> {
    arena.get(&format!("/apis/{DEFINED}/v1/namespaces/attack-things/things/{name}")).await
}

/// Waits until the installed definition names this place.
pub(crate) async fn until_installed(arena: &Arena, place: &str) {
    let is_there = arena
        .lab()
        .until(&format!("the definition has {place}"), SOON, async |api| {
            Ok(api.get(CRD).await?.unwrap_or_default().pointer(place).is_some())
        })
        .await;
    is_there.unwrap();
}

pub(crate) const SHAPE: &str =
    "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/shape";
