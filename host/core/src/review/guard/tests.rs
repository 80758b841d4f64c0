use innkeeper_contract::{Operation, User};
use serde_json::json;

use super::*;
use crate::review::{Gvk, Gvr};

/// The context of a request for a resource (`pods/status`) of a group.
fn context(group: &'static str, resource: &'static str) -> ChangeContext {
    let (resource, subresource) = resource.split_once('/').unwrap_or((resource, ""));
    let user = User::default();
    let input = ReviewInput {
        operation: Operation::Update,
        kind: Gvk { group, version: "v1", kind: "Thing" },
        resource: Gvr { group, version: "v1", resource },
        subresource,
        request_kind: None,
        request_resource: None,
        name: "a",
        namespace: "n",
        user: &user,
        object: None,
        old_object: None,
        options: None,
        dry_run: false,
        background: false,
        parameters: "",
    };
    ChangeContext::of(&input, false)
}

fn pod() -> Value {
    json!({"apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "a", "namespace": "n", "labels": {"app": "a"},
            "annotations": {"innkeeper.dev/adopt": "true", "team": "a"},
            "finalizers": ["example.com/f"], "creationTimestamp": null},
        "spec": {"containers": [{"name": "a", "image": "x"}]}, "status": {"phase": "Pending"}})
}

/// Checks the change of one value, by its JSON pointer; null removes it.
fn change(
    before: &Value,
    pointer: &str,
    value: &Value,
    context: &ChangeContext,
) -> Result<Value, InvalidVerdict> {
    let mut after = before.clone();
    let (parent, member) = pointer.rsplit_once('/').unwrap();
    let parent = after.pointer_mut(parent).unwrap().as_object_mut().unwrap();
    let member = member.replace("~1", "/");
    match value {
        Value::Null => drop(parent.remove(&member)),
        value => drop(parent.insert(member, value.clone())),
    }
    check_change(before, after, context)
}

#[track_caller]
fn refused(before: &Value, pointer: &str, value: &Value, context: &ChangeContext, field: &str) {
    let error = change(before, pointer, value, context).unwrap_err();
    let InvalidVerdict::Field { field: found, .. } = &error else { panic!("{pointer}: {error}") };
    assert_eq!(found, field, "{error}");
}

#[test]
fn spec_labels_and_annotations_may_change() {
    let (pod, context) = (pod(), context("", "pods"));
    assert_eq!(check_change(&pod, pod.clone(), &context).unwrap(), pod);
    for (pointer, value) in [
        ("/spec/serviceAccountName", json!("other")),
        ("/spec/containers", json!([{"name": "a", "image": "y"}])),
        ("/metadata/labels/app", json!("b")),
        ("/metadata/labels/example.com~1x", json!("b")),
        ("/metadata/annotations/team", Value::Null),
        ("/metadata/creationTimestamp", Value::Null),
        ("/metadata/labels", Value::Null),
        ("/more", json!(1)),
    ] {
        let changed = change(&pod, pointer, &value, &context);
        assert!(changed.is_ok_and(|changed| changed != pod), "{pointer}");
    }
}

#[test]
fn identity_of_the_object_does_not_change() {
    let (pod, context) = (pod(), context("", "pods"));
    for (pointer, value, field) in [
        ("/apiVersion", json!("v2"), "apiVersion"),
        ("/kind", Value::Null, "kind"),
        ("/metadata", Value::Null, "metadata"),
        ("/metadata", json!("x"), "metadata"),
        ("/metadata/name", json!("b"), "metadata.name"),
        ("/metadata/namespace", Value::Null, "metadata.namespace"),
        ("/metadata/uid", json!("u"), "metadata.uid"),
        ("/metadata/ownerReferences", json!([{"uid": "u"}]), "metadata.ownerReferences"),
        ("/metadata/managedFields", json!([{}]), "metadata.managedFields"),
        ("/metadata/deletionTimestamp", json!("now"), "metadata.deletionTimestamp"),
    ] {
        refused(&pod, pointer, &value, &context, field);
    }
}

#[test]
fn kept_time_in_another_form_is_no_change() {
    let (mut before, context) = (pod(), context("", "pods"));
    let second = "2026-01-11T12:25:50Z";
    before["metadata"]["creationTimestamp"] = json!(second);
    before["status"]["conditions"] = json!([{"type": "Ready", "lastProbeTime": second}]);
    before["spec"]["at"] = json!(second);
    for (text, is_same) in [
        ("2026-01-11T12:25:50.000Z", true),
        ("2026-01-11T13:25:50+01:00", true),
        ("2026-01-11T12:25:50.001Z", false),
        ("now", false),
    ] {
        for pointer in ["/metadata/creationTimestamp", "/status/conditions/0/lastProbeTime"] {
            let changed = change(&before, pointer, &json!(text), &context);
            assert_eq!(changed.is_ok_and(|after| after == before), is_same, "{pointer} {text}");
        }
        // Elsewhere it is a change like others.
        assert_eq!(
            change(&before, "/spec/at", &json!(text), &context).unwrap()["spec"]["at"],
            text
        );
    }
}

#[test]
fn names_of_the_host_and_mirror_annotations_do_not_change() {
    let (pod, context) = (pod(), context("", "pods"));
    for (pointer, value, field) in [
        ("/metadata/labels/innkeeper.dev~1x", json!("b"), r#"metadata.labels["innkeeper.dev/x"]"#),
        (
            "/metadata/annotations/innkeeper.dev~1adopt",
            Value::Null,
            r#"metadata.annotations["innkeeper.dev/adopt"]"#,
        ),
        (
            "/metadata/annotations/Innkeeper.DEV~1paused",
            json!("true"),
            r#"metadata.annotations["Innkeeper.DEV/paused"]"#,
        ),
        (
            "/metadata/annotations/kubernetes.io~1config.mirror",
            json!("x"),
            r#"metadata.annotations["kubernetes.io/config.mirror"]"#,
        ),
        (
            "/metadata/annotations/kubectl.kubernetes.io~1last-applied-configuration",
            json!("{}"),
            r#"metadata.annotations["kubectl.kubernetes.io/last-applied-configuration"]"#,
        ),
        (
            "/metadata/labels/innkeep\u{435}r.dev~1x",
            json!("b"),
            "metadata.labels[\"innkeep\u{435}r.dev/x\"]",
        ),
        ("/metadata/labels/app", json!(1), r#"metadata.labels["app"]"#),
        ("/metadata/annotations", json!(["a"]), "metadata.annotations"),
        ("/metadata/annotations", Value::Null, r#"metadata.annotations["innkeeper.dev/adopt"]"#),
    ] {
        refused(&pod, pointer, &value, &context, field);
    }
}

#[test]
fn consent_of_a_user_does_not_change_in_a_template_either() {
    let context = context("apps", "deployments");
    let with = |annotations: Value| {
        json!({"metadata": {"name": "a"}, "spec": {"templates": [
            {"metadata": {"annotations": annotations}}]}})
    };
    let (none, consent) = (with(json!({"a": "b"})), with(json!({"innkeeper.dev/adopt": "true"})));
    for (before, after) in [
        (&none, &consent),
        (&consent, &none),
        (&none, &with(json!({"Innkeeper.dev/paused": "true"}))),
        (&consent, &with(json!({"innkeeper.dev/adopt": "false"}))),
    ] {
        let error = check_change(before, after.clone(), &context).unwrap_err();
        let expected = "spec.templates.metadata.annotations.";
        assert!(error.to_string().contains(expected), "{error}");
    }
    let mut more = consent.clone();
    more["spec"]["templates"].as_array_mut().unwrap().insert(0, json!({}));
    assert!(check_change(&consent, more, &context).is_ok(), "another item before it");
}

#[test]
fn finalizers_change_only_where_the_module_allows_it() {
    let (pod, mut context) = (pod(), context("", "pods"));
    let finalizers = json!(["example.com/g"]);
    refused(&pod, "/metadata/finalizers", &finalizers, &context, "metadata.finalizers");
    context.allow_finalizers = true;
    assert!(change(&pod, "/metadata/finalizers", &finalizers, &context).is_ok());
    let of_host = json!(["innkeeper.dev/x"]);
    refused(&pod, "/metadata/finalizers", &of_host, &context, "metadata.finalizers");
}

#[test]
fn finalizers_of_a_namespace_are_finalizers() {
    let before = json!({"metadata": {"name": "a"}, "spec": {"finalizers": ["kubernetes"]}});
    for resource in ["namespaces", "namespaces/finalize"] {
        let context = context("", resource);
        refused(&before, "/spec/finalizers", &Value::Null, &context, "spec.finalizers");
        refused(&before, "/spec/finalizers", &json!(["a.example/b"]), &context, "spec.finalizers");
    }
}

#[test]
fn status_changes_only_in_its_subresource_and_alone_there() {
    let pod = pod();
    refused(&pod, "/status/phase", &json!("Running"), &context("", "pods"), "status");
    let status = context("", "pods/status");
    assert!(change(&pod, "/status/phase", &json!("Running"), &status).is_ok());
    refused(&pod, "/spec/x", &json!(1), &status, "spec");
    refused(&pod, "/metadata/labels/app", &json!("b"), &status, "metadata");
}

#[test]
fn values_of_a_secret_do_not_change() {
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "type": "Opaque",
        "metadata": {"name": "a"}, "data": {"p": "digest"}});
    for context in [context("", "secrets"), context("example.com", "things")] {
        refused(&secret, "/data/p", &json!("aHVudGVyMg=="), &context, "data");
        refused(&secret, "/data", &Value::Null, &context, "data");
        refused(&secret, "/stringData", &json!({"p": "x"}), &context, "stringData");
        let token = json!("kubernetes.io/service-account-token");
        refused(&secret, "/type", &token, &context, "type");
        let mut annotated = secret.clone();
        annotated["metadata"]["annotations"] = json!({});
        let name = "/metadata/annotations/kubernetes.io~1service-account.name";
        let field = r#"metadata.annotations["kubernetes.io/service-account.name"]"#;
        refused(&annotated, name, &json!("admin"), &context, field);
        assert!(change(&annotated, "/metadata/annotations/a", &json!("b"), &context).is_ok());
    }
}

#[test]
fn change_of_an_object_that_grants_rights_is_refused() {
    for (group, resource, shown) in [
        ("rbac.authorization.k8s.io", "clusterroles", "clusterroles.rbac.authorization.k8s.io"),
        ("", "serviceaccounts/token", "serviceaccounts/token"),
    ] {
        let context = context(group, resource);
        let error = change(&pod(), "/spec/x", &json!(1), &context).unwrap_err();
        assert_eq!(error, InvalidVerdict::NeverChanged { resource: shown.to_owned() });
        assert!(check_change(&pod(), pod(), &context).is_ok(), "the same object is no change");
    }
}

#[test]
fn object_that_is_too_deep_or_too_large_is_refused() {
    let nested = |levels: usize| (0..levels).fold(json!(1), |value, _| json!([value]));
    let (pod, context) = (pod(), context("", "pods"));
    assert!(change(&pod, "/x", &nested(DEPTH_MAX - 1), &context).is_ok());
    let error = change(&pod, "/x", &nested(DEPTH_MAX), &context).unwrap_err();
    assert_eq!(error, InvalidVerdict::TooDeep { limit: DEPTH_MAX });
    let mut deep = pod.clone();
    deep["x"] = nested(DEPTH_MAX + 9);
    assert!(change(&deep, "/y", &json!(1), &context).is_ok(), "it was deeper before");
    let large = change(&pod, "/x", &json!("x".repeat(BYTES_MAX)), &context).unwrap_err();
    assert_eq!(large.reason(), "ObjectTooLarge");
    for after in [json!([]), json!("x"), Value::Null] {
        assert_eq!(check_change(&pod, after, &context), Err(InvalidVerdict::NoObject));
    }
}

#[test]
fn lost_map_of_annotations_comes_back_empty() {
    let context = context("", "pods");
    let before = json!({"metadata": {"name": "a", "annotations": {}}});
    let after = json!({"metadata": {"name": "a"}});
    assert_eq!(check_change(&before, after.clone(), &context).unwrap(), before);
    let annotated = json!({"metadata": {"name": "a", "annotations": {"x": "y"}}});
    assert_eq!(check_change(&annotated, after, &context).unwrap(), before);
}

#[test]
fn empty_member_that_the_policy_adds_to_the_metadata_is_no_change() {
    let (pod, context) = (pod(), context("", "pods"));
    for (member, empty) in [
        ("managedFields", json!([])),
        ("managedFields", Value::Null),
        ("ownerReferences", json!([])),
        ("deletionTimestamp", Value::Null),
    ] {
        let changed = change_of(&pod, member, &empty, &context);
        assert_eq!(changed, pod, "{member} {empty}");
    }
}

/// The object after a policy has added a member to its metadata.
fn change_of(before: &Value, member: &str, value: &Value, context: &ChangeContext) -> Value {
    let mut after = before.clone();
    after["metadata"][member] = value.clone();
    check_change(before, after, context).unwrap()
}

#[test]
fn consents_without_end_are_compared_in_a_moment() {
    let context = context("", "configmaps");
    let name = |index: usize| -> String {
        let upper = |(at, letter): (usize, char)| {
            if (index >> at) & 1 == 1 { letter.to_ascii_uppercase() } else { letter }
        };
        let name: String = "adoptinnkeeper".chars().enumerate().map(upper).collect();
        format!("{}.dev/{}", &name[5..], &name[..5])
    };
    let annotations: Map<String, Value> =
        (0..1 << 14).map(|index| (name(index), json!("true"))).collect();
    let items = json!([annotations, annotations, annotations, annotations]);
    let before = json!({"kind": "ConfigMap", "metadata": {"name": "a"}, "items": items});
    let mut after = before.clone();
    after["metadata"]["labels"] = json!({"a": "b"});
    assert!(check_change(&before, after.clone(), &context).is_ok());
    after["items"][3]["innkeeper.dev/adopt"] = json!("false");
    let error = check_change(&before, after, &context).unwrap_err();
    assert!(error.to_string().contains("items.innkeeper.dev/adopt"), "{error}");
}
