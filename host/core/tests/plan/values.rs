//! Values that the host copies into desired objects: placeholders, and plans by them.

use std::collections::BTreeMap;
use std::sync::Arc;

use innkeeper_contract::{Desired, Kind, Manifest, ValueSourceKind};
use innkeeper_core::desired::DesiredState;
use innkeeper_core::host_names::Grants;
use innkeeper_core::in_sync::LastApplied;
use innkeeper_core::ownership::PrimaryOwner;
use innkeeper_core::plan::{self, Input, Lookup, PlannerState};
use innkeeper_core::value_source::{TargetNamespaces, ValueSourceGrant};
use innkeeper_core::{Object, ObjectKey, ObjectRef};
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::case::entry;

const COPIED_KEYS: &str = "innkeeper.dev/copied-keys";

fn secrets() -> Kind {
    Kind::namespaced("v1", "Secret", "secrets")
}

fn primary() -> PrimaryOwner {
    let kind = Kind::namespaced("quay.io/v1alpha1", "Podroute", "podroutes");
    PrimaryOwner::new(
        "podroute",
        ObjectRef::new(Arc::new(kind), ObjectKey::new("web", "first")),
        "u1",
    )
}

/// The desired Secret or ConfigMap `copy` of the granted source `central/source`.
fn desired(kind: ValueSourceKind, object: &Value, keys: &Value) -> DesiredState {
    let manifest: Manifest = serde_json::from_value(json!({
        "name": "podroute", "primary": &*primary().object_ref.kind,
        "owned": [{"kind": secrets()},
            {"kind": {"apiVersion": "v1", "kind": "ConfigMap", "plural": "configmaps"}}]
    }))
    .unwrap();
    let mut object = object.clone();
    object["apiVersion"] = json!("v1");
    object["kind"] = json!(kind.as_str());
    object["metadata"]["name"] = json!("copy");
    let source = json!({"kind": kind, "namespace": "central", "name": "source", "keys": keys});
    let desired: Desired =
        serde_json::from_value(json!({"objects": [{"object": object, "valuesFrom": [source]}]}))
            .unwrap();
    let grant = ValueSourceGrant {
        kind,
        key: ObjectKey::new("central", "source"),
        keys: None,
        to_namespaces: TargetNamespaces::All,
    };
    let grants = Grants { value_sources: &[grant], ..Grants::default() };
    DesiredState::read(&desired, &manifest, &primary(), grants).unwrap()
}

/// A Secret as the cache has it: a digest in place of each value.
fn secret(key: &str, type_: &str, data: &Value) -> Lookup {
    let (namespace, name) = key.split_once('/').unwrap();
    let text = json!({"apiVersion": "v1", "kind": "Secret", "type": type_, "data": data,
        "metadata": {"name": name, "namespace": namespace, "uid": "s1", "resourceVersion": "5"}});
    let digest = |key: &ObjectKey, name: &str, value: &str| format!("{key}/{name}/{value}");
    let object = Object::decode(&secrets(), &text.to_string(), Some(&digest)).unwrap();
    Lookup::Found(Arc::new(object))
}

fn opaque(data: &Value) -> Lookup {
    secret("central/source", "Opaque", data)
}

/// The desired state with what the source gives.
fn placed(mut desired: DesiredState, source: &Lookup) -> DesiredState {
    plan::place_values(&mut desired, &mut |object_ref| {
        assert_eq!(object_ref.key, ObjectKey::new("central", "source"));
        source.clone()
    });
    desired
}

/// What the plan does with the copy, whose live object is this.
fn step(desired: &DesiredState, live: &Lookup, state: &PlannerState) -> String {
    let owned = match live {
        Lookup::Found(object) => {
            vec![(desired.objects[0].object_ref.clone(), object.clone())]
        }
        _ => Vec::new(),
    };
    let plan = plan::plan(&Input {
        primary: &primary(),
        desired,
        complete: true,
        lookups: std::slice::from_ref(live),
        owned: &owned,
        state,
        readable: true,
        deleting: false,
        adopt: false,
        now: Timestamp::UNIX_EPOCH,
    });
    plan.steps.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

/// The copy as the host applied it, with its digests in place of the values.
fn applied(desired: &DesiredState) -> Lookup {
    let mut body = desired.objects[0].body.clone();
    let fields = entry(&body);
    body["metadata"]["uid"] = json!("c1");
    body["metadata"]["resourceVersion"] = json!("9");
    body["metadata"]["managedFields"] = json!([{"manager": primary().manager.to_string(),
        "operation": "Apply", "time": "2026-01-01T00:00:00Z", "fieldsV1": fields}]);
    let digest = |_: &ObjectKey, name: &str, _: &str| format!("copy-of-{name}");
    Lookup::Found(Arc::new(Object::decode(&secrets(), &body.to_string(), Some(&digest)).unwrap()))
}

#[test]
fn secret_gets_the_digests_of_its_source_its_type_and_the_mark() {
    let object = json!({"data": {"own": "eA=="}});
    let desired = desired(ValueSourceKind::Secret, &object, &json!({"a": "x", "b": "b"}));
    let placed = placed(
        desired.clone(),
        &secret("central/source", "kubernetes.io/tls", &json!({"a": "1", "b": "2", "c": "3"})),
    );
    let copy = &placed.objects[0];
    let expected = json!({"own": "eA==", "x": "central/source/a/1", "b": "central/source/b/2"});
    assert_eq!(copy.body["data"], expected);
    assert_eq!(copy.body["type"], "kubernetes.io/tls");
    assert_eq!(copy.body["metadata"]["annotations"][COPIED_KEYS], r#"["b","x"]"#);
    assert_ne!(copy.digest(), desired.objects[0].digest(), "the digest depends on the values");
    assert_eq!(copy.body["metadata"]["annotations"]["innkeeper.dev/applied"], copy.digest());
    let source = &copy.copied[0];
    assert_eq!((&*source.uid, &*source.resource_version), ("s1", "5"));
    let keys = [("a", "x"), ("b", "b")].map(|(a, b)| (a.to_owned(), b.to_owned()));
    assert_eq!(source.keys, BTreeMap::from(keys));
}

#[test]
fn type_that_the_guest_gives_stays() {
    let desired = desired(ValueSourceKind::Secret, &json!({"type": "Opaque"}), &Value::Null);
    let placed =
        placed(desired, &secret("central/source", "kubernetes.io/tls", &json!({"a": "1"})));
    assert_eq!(placed.objects[0].body["type"], "Opaque");
    assert_eq!(placed.objects[0].body["data"], json!({"a": "central/source/a/1"}));
}

#[test]
fn config_map_gets_placeholders_in_the_member_of_each_key() {
    let desired = desired(ValueSourceKind::ConfigMap, &json!({}), &Value::Null);
    let text = json!({"apiVersion": "v1", "kind": "ConfigMap", "type": "x", "data": {"a": "text"},
        "binaryData": {"b": "AAEC"}, "metadata": {"name": "source", "namespace": "central"}});
    let kind = Kind::namespaced("v1", "ConfigMap", "configmaps");
    let object = Object::decode(&kind, &text.to_string(), None).unwrap();
    let placed = placed(desired, &Lookup::Found(Arc::new(object)));
    let body = &placed.objects[0].body;
    for (member, key) in [("data", "a"), ("binaryData", "b")] {
        let placeholder = body[member][key].as_str().unwrap();
        assert!(placeholder.len() == 16 && hex::decode(placeholder).is_ok(), "{placeholder}");
    }
    assert_eq!(body["metadata"]["annotations"].get(COPIED_KEYS), None);
    assert_eq!(body.get("type"), None);
}

#[test]
fn copy_is_in_sync_after_a_restart_until_its_source_changes() {
    let desired = desired(ValueSourceKind::Secret, &json!({}), &Value::Null);
    let first = placed(desired.clone(), &opaque(&json!({"a": "1"})));
    let live = applied(&first);
    let fresh = PlannerState { clean: true, ..PlannerState::default() };
    assert_eq!(step(&first, &live, &fresh), "skip Secret web/copy: in sync");

    // The running host remembers the apply.
    let Lookup::Found(object) = &live else { panic!("no copy") };
    let copy = &first.objects[0];
    let mut state = fresh.clone();
    let last = LastApplied::with_digest(copy.digest(), object, &primary().manager).unwrap();
    state.applied.insert(copy.object_ref.clone(), last);
    for state in [&fresh, &state] {
        assert_eq!(step(&first, &live, state), "skip Secret web/copy: in sync");
        let rotated = placed(desired.clone(), &opaque(&json!({"a": "2"})));
        assert_eq!(step(&rotated, &live, state), "apply Secret web/copy: changed");
    }
}

#[test]
fn object_without_its_values_is_neither_created_nor_changed() {
    let keyed =
        |keys: &Value| desired(ValueSourceKind::Secret, &json!({"data": {"own": "eA=="}}), keys);
    let a = json!({"a": "a"});
    let many: serde_json::Map<_, _> = (0..10_000).map(|n| (format!("k{n}"), json!("x"))).collect();
    let fresh = PlannerState { clean: true, ..PlannerState::default() };
    let live = applied(&placed(keyed(&a), &opaque(&json!({"a": "1"}))));
    for (keys, source, expected) in [
        (&a, Lookup::Absent, "does not exist; create it"),
        (&a, Lookup::Unknown, "must be read again first"),
        (&a, Lookup::NotServed, "does not serve its kind"),
        (&a, Lookup::Unreadable("no right".to_owned()), "cannot be read: no right"),
        (&a, opaque(&json!({"b": "1"})), "has no key `a`"),
        (
            &Value::Null,
            opaque(&json!({"own": "1"})),
            "has the key `own`, which the object already has",
        ),
        (&Value::Null, opaque(&Value::Object(many)), "is too large"),
        (
            &a,
            secret("central/source", "kubernetes.io/service-account-token", &json!({"a": "1"})),
            "a token of the API server",
        ),
    ] {
        let desired = placed(keyed(keys), &source);
        for live in [&Lookup::Absent, &live] {
            let step = step(&desired, live, &fresh);
            let start = "skip Secret web/copy: its value source Secret central/source ";
            assert!(step.starts_with(start) && step.contains(expected), "{step}");
        }
    }
}
