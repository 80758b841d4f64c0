//! What a guest desires for a primary.

use std::collections::BTreeSet;
use std::sync::{Arc, LazyLock};

use innkeeper_contract::{Desired, Manifest, Policy};
use innkeeper_core::desired::{DesiredObject, DesiredState};
use innkeeper_core::host_names::{self, Grants};
use innkeeper_core::ownership::PrimaryOwner;
use innkeeper_core::{ObjectKey, ObjectRef, in_sync, order};
use serde_json::{Value, json};

/// The manifest of the guest that gives the document.
static MANIFEST: LazyLock<Manifest> = LazyLock::new(|| {
    let manifest = json!({
        "name": "g",
        "primary": {"apiVersion": "example.com/v1", "kind": "Web", "plural": "webs"},
        "owned": [
            {"kind": {"apiVersion": "apps/v1", "kind": "Deployment", "plural": "deployments"}},
            {"kind": {"apiVersion": "v1", "kind": "Service", "plural": "services"}},
            {"kind": {"apiVersion": "v1", "kind": "Secret", "plural": "secrets"}, "merges": true},
            {"kind": {"apiVersion": "v1", "kind": "Namespace", "plural": "namespaces",
                "scope": "Cluster"}}
        ],
        "finalizer": "example.com/g"
    });
    serde_json::from_value(manifest).expect("a manifest")
});

/// Reads a desired document and completes it for a primary in the namespace `home`. What is
/// accepted stays within the manifest and the namespace, carries the host's owner and digest, and
/// allowing other namespaces only adds to what is accepted.
pub fn fuzz_entry(data: &[u8]) {
    let Ok(desired) = serde_json::from_slice::<Desired>(data) else { return };
    let text = serde_json::to_string(&desired).expect("a document is printed");
    let again: Desired = serde_json::from_str(&text).expect("a printed document is read");
    assert_eq!(desired, again, "a document changes when it is printed and read");

    let kind = Arc::new(MANIFEST.primary.clone().expect("it has a primary"));
    let primary =
        PrimaryOwner::new("g", ObjectRef::new(kind, ObjectKey::new("home", "first")), "u1");
    let mut least = None;
    for (cross_namespace, finalizers) in
        [(false, false), (false, true), (true, false), (true, true)]
    {
        let grants = Grants { cross_namespace, finalizers, ..Grants::default() };
        let state = DesiredState::read(&desired, &MANIFEST, &primary, grants);
        let second = DesiredState::read(&again, &MANIFEST, &primary, grants);
        assert_eq!(state, second, "reading is not stable");
        // Whatever is accepted without grants is accepted with them, and gives the same.
        let least = least.get_or_insert_with(|| state.clone());
        match (&*least, &state) {
            (Ok(least), Ok(state)) => assert_eq!(least, state),
            (Ok(_), Err(refusal)) => panic!("refused where more is allowed: {refusal}"),
            (Err(refusal), _) => assert!(refusal.to_string().len() < 8_192, "{refusal}"),
        }
        if let Ok(state) = state {
            accepted(&state, &desired, &primary, grants);
        }
    }
}

fn accepted(state: &DesiredState, desired: &Desired, primary: &PrimaryOwner, grants: Grants) {
    assert_eq!(state.objects.len(), desired.objects.len());
    let targets: BTreeSet<&ObjectRef> = state.objects.iter().map(|one| &one.object_ref).collect();
    assert_eq!(targets.len(), state.objects.len(), "an object is there twice");
    let ranks: Vec<_> = state.objects.iter().map(|one| order::sort_key(&one.object_ref)).collect();
    assert!(ranks.is_sorted(), "the objects are not in order");
    for wanted in &state.objects {
        complete(wanted, primary, grants);
    }
}

fn complete(wanted: &DesiredObject, primary: &PrimaryOwner, grants: Grants) {
    let DesiredObject { object_ref: target, body, .. } = wanted;
    let owned = MANIFEST.owned.iter().find(|owned| owned.kind == *target.kind);
    let owned = owned.expect("the kind is declared");
    assert!(!owned.merges || wanted.has(Policy::Merge), "made where it is only merged: {target}");
    assert_eq!(body["apiVersion"], owned.kind.api_version);
    assert_eq!(body["kind"], owned.kind.kind);
    let metadata = &body["metadata"];
    let (namespace, name) = (target.key.namespace(), target.key.name());
    assert_eq!(metadata["name"], name);
    assert_eq!(metadata.get("namespace").and_then(Value::as_str).unwrap_or_default(), namespace);
    assert_eq!(namespace.is_empty(), !owned.kind.is_namespaced(), "{target}");
    assert!(grants.cross_namespace || namespace == "home", "{target} is not at home");
    for segment in [name, namespace] {
        assert!(!segment.contains(['/', '%', '?', '#']) && segment != "." && segment != "..");
    }
    for member in ["uid", "resourceVersion", "managedFields", "generateName", "deletionTimestamp"] {
        assert!(metadata.get(member).is_none(), "metadata.{member} came through");
    }
    assert!(body.get("status").is_none(), "status came through");
    for finalizer in metadata["finalizers"].as_array().into_iter().flatten() {
        assert!(grants.finalizers && !wanted.has(Policy::Merge), "{finalizer} came through");
        assert!(!host_names::is_reserved(finalizer.as_str().unwrap_or_default()), "{finalizer}");
    }
    match &metadata["ownerReferences"] {
        Value::Null => {}
        owners => assert_eq!(*owners, json!([primary.owner_reference()])),
    }
    assert_eq!(in_sync::digest(body), wanted.digest(), "the stamp changes the digest");
    assert_eq!(metadata["annotations"][wanted.annotation(primary)], wanted.digest());
}
