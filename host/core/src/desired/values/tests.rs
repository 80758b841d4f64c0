use std::sync::Arc;

use innkeeper_contract::{Desired, Manifest};
use serde_json::{Value, json};

use crate::desired::{DesiredState, InvalidDesired};
use crate::host_names::Grants;
use crate::ownership::PrimaryOwner;
use crate::value_source::{TargetNamespaces, ValueSourceGrant};
use crate::{ObjectKey, ObjectRef};
use innkeeper_contract::ValueSourceKind;

fn manifest() -> Manifest {
    serde_json::from_value(json!({
        "name": "podroute", "finalizer": "",
        "primary": {"apiVersion": "quay.io/v1alpha1", "kind": "Podroute", "plural": "podroutes"},
        "owned": [
            {"kind": {"apiVersion": "v1", "kind": "Secret", "plural": "secrets"}},
            {"kind": {"apiVersion": "v1", "kind": "ConfigMap", "plural": "configmaps"}},
            {"kind": {"apiVersion": "v1", "kind": "Service", "plural": "services"}}
        ]
    }))
    .unwrap()
}

/// Grants `central/pull` (keys a and b, into web) and all of `central/open` (everywhere), as
/// Secrets, and the ConfigMap `web/maps`.
fn grants() -> Vec<ValueSourceGrant> {
    let web = || TargetNamespaces::Named(vec!["web".to_owned()]);
    let grant = |kind, key: ObjectKey, keys: Option<[&str; 2]>, to_namespaces| ValueSourceGrant {
        kind,
        key,
        keys: keys.map(|keys| keys.map(str::to_owned).to_vec()),
        to_namespaces,
    };
    vec![
        grant(ValueSourceKind::Secret, ObjectKey::new("central", "pull"), Some(["a", "b"]), web()),
        grant(
            ValueSourceKind::Secret,
            ObjectKey::new("central", "open"),
            None,
            TargetNamespaces::All,
        ),
        grant(ValueSourceKind::ConfigMap, ObjectKey::new("web", "maps"), None, web()),
        // No Module has this grant; the document is refused even so.
        grant(ValueSourceKind::Secret, ObjectKey::new("innkeeper-system", "key"), None, web()),
    ]
}

fn read(document: &Value) -> Result<DesiredState, InvalidDesired> {
    let desired: Desired = serde_json::from_value(document.clone()).unwrap();
    let kind = Arc::new(manifest().primary.unwrap());
    let primary = ObjectRef::new(kind, ObjectKey::new("web", "first"));
    let primary = PrimaryOwner::new("podroute", primary, "u1");
    let value_sources = grants();
    let grants =
        Grants { cross_namespace: true, value_sources: &value_sources, ..Grants::default() };
    DesiredState::read(&desired, &manifest(), &primary, grants)
}

/// A Secret `copy` with these sources.
fn copy(sources: &Value) -> Value {
    json!({"object": {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "copy"},
        "data": {"own": "eA=="}}, "valuesFrom": sources})
}

fn source(member: &str, value: Value) -> Value {
    let mut source =
        json!({"kind": "Secret", "namespace": "central", "name": "pull", "keys": {"a": "a"}});
    source[member] = value;
    source
}

#[test]
fn granted_source_is_read_with_its_namespace() {
    let maps = json!({"object": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "copy"}},
        "valuesFrom": [{"kind": "ConfigMap", "name": "maps"}]});
    let document = json!({"objects": [copy(&json!([source("kind", json!("Secret"))])), maps]});
    let state = read(&document).unwrap();
    let sources: Vec<_> = state
        .objects
        .iter()
        .map(|object| {
            let source = &object.values[0];
            format!("{}: {}/{}", object.object_ref, source.namespace, source.name)
        })
        .collect();
    assert_eq!(sources, ["ConfigMap web/copy: web/maps", "Secret web/copy: central/pull"]);
}

#[test]
fn source_that_the_module_does_not_grant_is_refused_by_name() {
    let elsewhere = {
        let mut copy = copy(&json!([source("keys", json!({"a": "a"}))]));
        copy["object"]["metadata"]["namespace"] = json!("other");
        copy
    };
    for (object, expected) in [
        (copy(&json!([source("name", json!("other"))])), "does not grant this source"),
        (copy(&json!([source("namespace", json!(""))])), "does not grant this source"),
        (copy(&json!([source("keys", json!({"c": "a"}))])), "does not grant the key `c`"),
        (copy(&json!([source("keys", Value::Null)])), "grants some keys of this source only"),
        (elsewhere, "does not grant copies of this source into namespace other"),
        (
            copy(&json!([{"kind": "Secret", "namespace": "innkeeper-system", "name": "key"}])),
            "belongs to Innkeeper itself",
        ),
    ] {
        let refusal = read(&json!({ "objects": [object] })).unwrap_err();
        assert_eq!(refusal.reason(), "ValueSourceNotGranted", "{refusal}");
        assert!(refusal.to_string().contains(expected), "{refusal}");
    }
}

#[test]
fn copy_that_would_be_readable_or_outlive_its_primary_is_refused() {
    let with = |member: &str, value: Value| {
        let mut object = copy(&json!([source("kind", json!("Secret"))]));
        object[member] = value;
        object
    };
    let of_kind = |kind: &str| {
        let mut object = copy(&json!([source("kind", json!("Secret"))]));
        object["object"] = json!({"apiVersion": "v1", "kind": kind, "metadata": {"name": "copy"}});
        object
    };
    let mut text = copy(&json!([source("kind", json!("Secret"))]));
    text["object"]["data"] = json!("x");
    let mut immutable = copy(&json!([source("kind", json!("Secret"))]));
    immutable["object"]["immutable"] = json!(true);
    let merged = |member: &str, value: Value| {
        json!({"object": {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "copy"}, member: value},
            "policy": ["merge"]})
    };
    let long = "k".repeat(1 << 20);
    let many: serde_json::Map<_, _> = (0..257).map(|n| (format!("k{n}"), json!("a"))).collect();
    for (object, expected) in [
        (of_kind("ConfigMap"), "a Secret into objects of the same kind only"),
        (of_kind("Service"), "for Secrets and ConfigMaps, not for v1 Service"),
        (with("policy", json!(["merge"])), "excludes the policy merge"),
        (with("policy", json!(["orphan"])), "excludes the policy orphan"),
        (immutable, "excludes immutable"),
        (merged("data", json!({"a": "Z3Vlc3M="})), "does not merge data into a Secret"),
        (merged("stringData", json!({"a": "guess"})), "does not merge stringData into a Secret"),
        (merged("immutable", json!(true)), "does not merge immutable into a Secret"),
        (text, "data is not an object"),
        (copy(&json!([source("name", json!("../x"))])), "is not a name that Kubernetes allows"),
        (copy(&json!([source("namespace", json!(long))])), "is not a name that Kubernetes allows"),
        (copy(&json!([source("keys", json!({}))])), "keys is empty"),
        (copy(&json!([source("keys", Value::Object(many))])), "keys has 257 entries"),
        (copy(&json!([source("keys", json!({"a": long}))])), "is not a key that Kubernetes allows"),
        (copy(&json!([source("keys", json!({"a": "own"}))])), "already has the key `own`"),
        (copy(&json!([source("keys", json!({"a": "x", "b": "x"}))])), "already has the key `x`"),
        (
            copy(&json!([
                source("keys", json!({"a": "x"})),
                {"kind": "Secret", "namespace": "central", "name": "open", "keys": {"z": "x"}}
            ])),
            "valuesFrom[1]: the object already has the key `x`",
        ),
        (copy(&json!(vec![source("keys", json!({"a": "a"})); 9])), "has 9 sources"),
        (
            copy(&json!([{"kind": "Secret", "name": "copy"}])),
            "valuesFrom[0]: the source is the object itself",
        ),
    ] {
        let refusal = read(&json!({ "objects": [object] })).unwrap_err();
        assert_eq!(refusal.reason(), "MalformedObject", "{refusal}");
        let refusal = refusal.to_string();
        assert!(refusal.contains(expected) && refusal.len() < 1_000, "{refusal}");
    }
}
