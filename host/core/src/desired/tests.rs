#![allow(clippy::needless_pass_by_value, reason = "cases read better without references")]

use expect_test::{Expect, expect};

use std::sync::Arc;

use innkeeper_contract::{Kind, OwnedKind, ValueSourceKind};
use serde_json::{Value, json};

use super::*;
use crate::value_source::{TargetNamespaces, ValueSourceGrant};
use crate::well_known::RETAINED_FOR_LABEL;
use crate::{ObjectKey, ObjectRef, in_sync};

fn manifest() -> Manifest {
    serde_json::from_value(json!({
        "name": "podroute",
        "primary": {"apiVersion": "quay.io/v1alpha1", "kind": "Podroute", "plural": "podroutes"},
        "owned": [
            {"kind": {"apiVersion": "apps/v1", "kind": "Deployment", "plural": "deployments"}},
            {"kind": {"apiVersion": "v1", "kind": "Service", "plural": "services"}},
            {"kind": {"apiVersion": "v1", "kind": "Namespace", "plural": "namespaces", "scope": "Cluster"}}
        ]
    }))
    .unwrap()
}

fn primary() -> PrimaryOwner {
    let kind = Arc::new(manifest().primary.unwrap());
    PrimaryOwner::new("podroute", ObjectRef::new(kind, ObjectKey::new("web", "first")), "u1")
}

fn read(objects: Value, cross_namespace: bool) -> Result<DesiredState, InvalidDesired> {
    read_with(&manifest(), objects, cross_namespace)
}

fn read_with(
    manifest: &Manifest,
    objects: Value,
    cross_namespace: bool,
) -> Result<DesiredState, InvalidDesired> {
    let desired: Desired = serde_json::from_value(json!({ "objects": objects })).unwrap();
    let grants = Grants { cross_namespace, ..Grants::default() };
    DesiredState::read(&desired, manifest, &primary(), grants)
}

fn refused(object: Value, expected: Expect) {
    expected.assert_eq(&read(json!([{ "object": object }]), false).unwrap_err().to_string());
}

#[test]
fn object_gets_namespace_owner_and_digest() {
    let desired_state = read(
        json!([{"object": {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "a"}}}]),
        false,
    )
    .unwrap();
    let body = &desired_state.objects[0].body;
    assert_eq!(body["metadata"]["namespace"], "web");
    assert_eq!(body["metadata"]["ownerReferences"][0]["uid"], "u1");
    assert_eq!(body["metadata"]["annotations"][in_sync::APPLIED_ANNOTATION], in_sync::digest(body));
}

#[test]
fn object_is_refused_when_its_name_or_namespace_has_a_nul() {
    // A key holds namespace and name with a NUL between them: one more would move the border.
    for (namespace, name) in [("web\0x", "y"), ("web", "x\0y")] {
        let object = json!({"apiVersion": "v1", "kind": "Service",
            "metadata": {"name": name, "namespace": namespace}});
        let refusal = read(json!([{ "object": object }]), true).unwrap_err();
        assert_eq!(refusal.reason(), "MalformedObject");
    }
}

#[test]
fn bodies_of_create_and_update_have_their_guards() {
    let desired_state = read(
        json!([{"object": {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "a"}}}]),
        false,
    )
    .unwrap();
    assert_eq!(desired_state.objects[0].create_body()["metadata"]["resourceVersion"], "1");
    assert_eq!(desired_state.objects[0].apply_body("u9")["metadata"]["uid"], "u9");
    assert_eq!(desired_state.objects[0].body["metadata"].get("uid"), None);
}

#[test]
fn objects_are_sorted_by_apply_order() {
    let desired_state = read(
        json!([
            {"object": {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "a"}}},
            {"object": {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "b"}}},
        ]),
        false,
    )
    .unwrap();
    let names: Vec<String> =
        desired_state.objects.iter().map(|one| one.object_ref.to_string()).collect();
    assert_eq!(names, ["Deployment web/b", "Service web/a"]);
}

#[test]
fn object_that_violates_the_contract_is_refused_with_its_name_and_the_problem() {
    refused(
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}}),
        expect![
            "the guest gave Secret a, but its manifest does not own v1 Secret; add the kind to `owned`"
        ],
    );
    refused(
        json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "a", "namespace": "other"}}),
        expect![
            "the guest gave Service other/a, outside the primary's namespace; the Module does not allow that (spec.allowCrossNamespace)"
        ],
    );
    refused(
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "a"}}),
        expect![
            "the guest gave Namespace a, outside the primary's namespace; the Module does not allow that (spec.allowCrossNamespace)"
        ],
    );
    refused(
        json!({"apiVersion": "v1", "kind": "Service", "metadata": {"generateName": "a-"}}),
        expect![
            "the guest gave an unusable object (Service): metadata.name is missing or is not a text"
        ],
    );
    refused(
        json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "../secrets/a"}}),
        expect![
            "the guest gave an unusable object (Service ../secrets/a): metadata.name is not a name that Kubernetes allows"
        ],
    );
    refused(
        json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "a\n\u{202e}b"}}),
        expect![[
            r"the guest gave an unusable object (Service a\n\u{202e}b): metadata.name is not a name that Kubernetes allows"
        ]],
    );
    refused(
        json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "a", "namespace": "b c"}}),
        expect![
            "the guest gave an unusable object (Service a): metadata.namespace is not a name that Kubernetes allows"
        ],
    );
    refused(
        json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "a"}, "items": []}),
        expect![
            "the guest gave an unusable object (Service a): items is a member of lists, not of objects"
        ],
    );
    refused(
        json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "a", "annotations": []}}),
        expect![
            "the guest gave an unusable object (Service a): metadata.annotations is not an object"
        ],
    );
    refused(
        json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "a", "uid": "u"}}),
        expect![
            "the guest gave an unusable object (Service a): metadata.uid is not the guest's to give"
        ],
    );
    refused(
        json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "a"}, "status": {}}),
        expect![
            "the guest gave an unusable object (Service a): status belongs to the controller of the object"
        ],
    );
    refused(
        json!("x"),
        expect![
            "the guest gave an unusable object (an object): apiVersion is missing or is not a text"
        ],
    );
    let twice =
        json!({"object": {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "a"}}});
    assert_eq!(
        read(json!([twice, twice]), false).unwrap_err().to_string(),
        "the guest gave Service web/a twice"
    );
}

#[test]
fn keep_reference_is_refused_when_a_member_is_malformed() {
    let keep = |api_version: &str, kind: &str, namespace: &str, name: &str| {
        let kept = json!({"keep": [{"apiVersion": api_version, "kind": kind,
            "namespace": namespace, "name": name}]});
        let desired: Desired = serde_json::from_value(kept).unwrap();
        DesiredState::read(&desired, &manifest(), &primary(), Grants::default())
            .map_err(|error| error.to_string())
    };
    assert_eq!(keep("v1", "Service", "", "a").unwrap().keep.len(), 1);
    for (api_version, kind, namespace, name, problem) in [
        ("v1", "Service", "", "a b", "name `a b`"),
        ("v1", "Service", "", "a\u{1b}[2J", r"name `a\u{1b}[2J`"),
        ("v1", "Service", "x\n", "a", r"namespace `x\n`"),
        ("v1/..", "Service", "", "a", "apiVersion `v1/..`"),
        ("v1", "\0", "", "a", r"kind `\u{0}`"),
    ] {
        let error = keep(api_version, kind, namespace, name).unwrap_err();
        assert!(error.contains("(keep[0])") && error.contains(problem), "{error}");
    }
}

#[test]
fn malformed_condition_is_refused_and_long_names_are_cut_in_messages() {
    let manifest = manifest();
    let primary = primary();
    let desired =
        json!({"conditions": [{"type": "Ready", "status": "True", "reason": "two words"}]});
    let desired: Desired = serde_json::from_value(desired).unwrap();
    let refusal = DesiredState::read(&desired, &manifest, &primary, Grants::default()).unwrap_err();
    assert_eq!(refusal.reason(), "MalformedStatus");
    assert_eq!(
        refusal.to_string(),
        "the guest gave an unusable status: conditions[0].reason is not a CamelCase word"
    );
    let long = json!({"apiVersion": "v1", "kind": "K".repeat(1 << 20), "metadata": {"name": "a"}});
    let refusal = read(json!([{ "object": long }]), false).unwrap_err();
    assert!(refusal.to_string().len() < 2_000, "{} bytes", refusal.to_string().len());
}

#[test]
fn object_in_another_namespace_needs_a_grant_and_gets_no_owner() {
    let in_another_namespace = |policy: Value| json!([{"object": {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "a", "namespace": "other"}}, "policy": policy}]);
    let desired_state = read(in_another_namespace(json!(["orphan"])), true).unwrap();
    assert_eq!(desired_state.objects[0].body["metadata"].get("ownerReferences"), None);
    expect![
        "the guest gave an unusable object (Service a): it is outside the primary's namespace, so Kubernetes does not delete it with the primary: declare a finalizer in the manifest, or give the policy orphan"
    ]
    .assert_eq(&read(in_another_namespace(json!([])), true).unwrap_err().to_string());
    let with_finalizer = Manifest { finalizer: Some(String::new()), ..manifest() };
    read_with(&with_finalizer, in_another_namespace(json!([])), true).unwrap();
}

#[test]
fn object_of_innkeeper_itself_is_reserved_whatever_the_module_allows() {
    let namespace =
        |name: &str| json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
    let service = |namespace: &str| json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "a", "namespace": namespace}});
    let with_finalizer = Manifest { finalizer: Some(String::new()), ..manifest() };
    for object in [
        namespace("innkeeper-modules"),
        namespace("innkeeper-system"),
        service("innkeeper-modules"),
        service("innkeeper-system"),
    ] {
        for policy in [json!([]), json!(["merge"]), json!(["orphan"])] {
            let objects = json!([{"object": object, "policy": policy}]);
            let read = read_with(&with_finalizer, objects, true).unwrap();
            assert!(read.objects[0].is_reserved, "{read:?}");
        }
    }
    let objects = json!([{"object": namespace("web"), "policy": ["merge"]}]);
    assert!(!read_with(&with_finalizer, objects, true).unwrap().objects[0].is_reserved);
}

/// One HorizontalPodAutoscaler in the versions v1 and v2, of which these are optional.
fn two_versions(optional: [bool; 2]) -> Result<DesiredState, InvalidDesired> {
    let versions = ["autoscaling/v1", "autoscaling/v2"];
    let mut manifest = manifest();
    manifest.owned = versions
        .iter()
        .zip(optional)
        .map(|(version, optional)| OwnedKind {
            kind: Kind::namespaced(*version, "HorizontalPodAutoscaler", "horizontalpodautoscalers"),
            optional,
            merges: false,
        })
        .collect();
    let object = |version| {
        json!({"object": {"apiVersion": version, "kind": "HorizontalPodAutoscaler",
            "metadata": {"name": "a"}}})
    };
    read_with(&manifest, versions.into_iter().map(object).collect(), false)
}

#[test]
fn object_in_two_versions_of_its_kind_is_refused() {
    let refusal = two_versions([false, false]).unwrap_err();
    assert_eq!(refusal.reason(), "MalformedObject");
    expect![
        "the guest gave HorizontalPodAutoscaler web/a in two versions, autoscaling/v1 and autoscaling/v2; have the guest give one"
    ]
    .assert_eq(&refusal.to_string());
}

#[test]
fn object_in_two_versions_of_its_kind_is_allowed_if_one_is_optional() {
    for optional in [[true, false], [false, true], [true, true]] {
        assert_eq!(two_versions(optional).unwrap().objects.len(), 2, "{optional:?}");
    }
}

#[test]
fn object_in_another_namespace_is_refused_when_the_manifest_declares_a_false_scope() {
    let mut manifest = manifest();
    let kind = manifest.primary.as_mut().unwrap();
    kind.scope = innkeeper_contract::Scope::Cluster;
    let kind = Arc::new(kind.clone());
    let misdeclared =
        PrimaryOwner::new("podroute", ObjectRef::new(kind, ObjectKey::new("web", "first")), "u1");
    for object in [
        json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "a", "namespace": "other"}}),
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "a"}}),
    ] {
        let desired: Desired =
            serde_json::from_value(json!({"objects": [{"object": object}]})).unwrap();
        let refusal =
            DesiredState::read(&desired, &manifest, &misdeclared, Grants::default()).unwrap_err();
        assert_eq!(refusal.reason(), "CrossNamespace", "{refusal}");
    }
}

#[test]
fn orphan_gets_the_retained_label_and_no_owner() {
    let desired_state = read(
        json!([{"object": {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "a"}}, "policy": ["orphan"]}]),
        false,
    )
    .unwrap();
    let metadata = &desired_state.objects[0].body["metadata"];
    assert_eq!(metadata.get("ownerReferences"), None);
    assert_eq!(metadata["labels"][RETAINED_FOR_LABEL], "a9b0903d4d9a82614e63870244d71cd8");
}

#[test]
fn merged_object_gets_its_own_annotation_and_no_owner() {
    let merged = |policy: Value| json!([{"object": {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "a"}}, "policy": policy}]);
    let desired_state = read(merged(json!(["merge"])), false).unwrap();
    let metadata = &desired_state.objects[0].body["metadata"];
    assert_eq!(metadata.get("ownerReferences"), None);
    let annotations: Vec<_> = metadata["annotations"].as_object().unwrap().keys().collect();
    assert_eq!(annotations, [&desired_state.objects[0].annotation(&primary())]);
    assert_ne!(annotations[0], in_sync::APPLIED_ANNOTATION);
    expect![
        "the guest gave an unusable object (Service a): the policy merge excludes all others, since the object belongs to another owner"
    ]
    .assert_eq(&read(merged(json!(["merge", "orphan"])), false).unwrap_err().to_string());
}

#[test]
fn examples_of_the_reference_are_accepted() {
    let manifest: Manifest = serde_json::from_str(include_str!(
        "../../../../xtask/src/reference/examples/manifest.json"
    ))
    .unwrap();
    let desired: Desired =
        serde_json::from_str(include_str!("../../../../xtask/src/reference/examples/desired.json"))
            .unwrap();
    let grant = ValueSourceGrant {
        kind: ValueSourceKind::Secret,
        key: ObjectKey::new("central", "registry"),
        keys: None,
        to_namespaces: TargetNamespaces::All,
    };
    let grants = Grants { value_sources: &[grant], ..Grants::default() };
    let kind = Arc::new(manifest.primary.clone().unwrap());
    let primary = ObjectRef::new(kind, ObjectKey::new("shop", "front"));
    let primary = PrimaryOwner::new("website", primary, "u1");
    let desired = DesiredState::read(&desired, &manifest, &primary, grants).unwrap();
    assert_eq!(desired.objects.len(), 3);
}

#[test]
fn object_is_in_the_update_group_that_it_names() {
    let document = |group: &str| {
        json!({"updateGroups": [{"name": "pods", "method": "RollingRecreate"}], "objects": [
            {"object": {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "a"}}, "updateGroup": group},
            {"object": {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "b"}}}]})
    };
    let read = |group: &str| {
        let desired: Desired = serde_json::from_value(document(group)).unwrap();
        DesiredState::read(&desired, &manifest(), &primary(), Grants::default())
    };
    let desired_state = read("pods").unwrap();
    let groups: Vec<_> =
        desired_state.objects.iter().map(|one| one.update_group.as_deref()).collect();
    assert_eq!(groups, [Some("pods"), None]);
    assert_eq!(desired_state.update_groups.len(), 1);
    let refusal = read("others").unwrap_err();
    assert_eq!(refusal.reason(), "MalformedObject");
    assert!(refusal.to_string().ends_with("updateGroup \"others\" is not in updateGroups"));
}

#[test]
fn objects_keep_their_positions_in_the_document_when_the_host_sorts_them() {
    let desired_state = read(
        json!([
            {"object": {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "b"}}},
            {"object": {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "a"}}},
        ]),
        false,
    )
    .unwrap();
    let positions: Vec<_> = desired_state
        .objects
        .iter()
        .map(|object| (object.object_ref.key.name(), object.position))
        .collect();
    assert_eq!(positions, [("a", 1), ("b", 0)]);
}
