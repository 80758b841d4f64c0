use innkeeper_contract::User;
use serde_json::json;

use super::*;
use crate::review::Gvk;

fn input<'a>(user: &'a User, group: &'a str, resource: &'a str) -> ReviewInput<'a> {
    ReviewInput {
        operation: Operation::Create,
        kind: Gvk { group, version: "v1", kind: "Thing" },
        resource: Gvr { group, version: "v1", resource },
        subresource: "",
        request_kind: None,
        request_resource: None,
        name: "a",
        namespace: "",
        user,
        object: None,
        old_object: None,
        options: None,
        dry_run: false,
        background: false,
        parameters: "",
    }
}

#[test]
fn requests_that_a_cluster_needs_to_be_repaired_are_excluded() {
    let user = User::default();
    let of = |group, resource| input(&user, group, resource);
    let pods = of("", "pods");
    for (input, why) in [
        (ReviewInput { operation: Operation::Connect, ..pods }, "a connection"),
        (ReviewInput { namespace: "kube-system", ..pods }, "of Kubernetes"),
        (ReviewInput { namespace: "innkeeper-system", ..pods }, "of the host"),
        (ReviewInput { namespace: "innkeeper-modules", ..pods }, "of modules"),
        (ReviewInput { namespace: "operators", ..pods }, "where the host runs"),
        (of("innkeeper.dev", "modules"), "a Module"),
        (of("admissionregistration.k8s.io", "mutatingwebhookconfigurations"), "a webhook"),
        (of("authentication.k8s.io", "tokenreviews"), "a token"),
        (of("authorization.k8s.io", "subjectaccessreviews"), "a right"),
        (
            ReviewInput {
                request_resource: Some(of("innkeeper.dev", "modules").resource),
                ..of("example.com", "modules")
            },
            "a Module, as the client names it",
        ),
        (ReviewInput { subresource: "status", ..of("", "nodes") }, "the beat of a node"),
        (ReviewInput { name: "kube-public", ..of("", "namespaces") }, "a namespace"),
        (ReviewInput { name: "operators", ..of("", "namespaces") }, "the host's namespace"),
        (
            ReviewInput {
                name: "modules.innkeeper.dev",
                ..of("apiextensions.k8s.io", "customresourcedefinitions")
            },
            "the definition of Modules",
        ),
        (
            ReviewInput { name: "innkeeper", ..of("rbac.authorization.k8s.io", "clusterroles") },
            "the rights of the host",
        ),
    ] {
        assert!(is_excluded(&input, Some("operators")), "{why}");
    }
    for input in [
        ReviewInput { namespace: "default", ..pods },
        ReviewInput { namespace: "operators", ..pods },
        of("", "nodes"),
        ReviewInput { name: "default", ..of("", "namespaces") },
        of("rbac.authorization.k8s.io", "clusterroles"),
        ReviewInput { subresource: "token", namespace: "default", ..of("", "serviceaccounts") },
    ] {
        assert!(!is_excluded(&input, None), "{input:?}");
    }
}

#[test]
fn node_upkeep_is_excluded_for_kubelets_and_controllers_only() {
    let ann = User { groups: vec!["dev".to_owned()], ..User::default() };
    for (group, resource) in NODE_UPKEEP_RESOURCES {
        for group_of_user in NODE_UPKEEP_USERS {
            let user = User { groups: vec![group_of_user.to_owned()], ..User::default() };
            assert!(is_excluded(&input(&user, group, resource), None), "{resource}");
        }
        assert!(!is_excluded(&input(&ann, group, resource), None), "{resource}");
    }
    let kubelet = User { groups: vec![NODES.to_owned()], ..User::default() };
    assert!(!is_excluded(&input(&kubelet, "", "configmaps"), None));
}

#[test]
fn mirror_pod_is_excluded_for_kubelets_only() {
    let pod = |name: &str| {
        let pod = json!({"metadata": {"name": "a", "annotations": {name: "x"}}});
        RawValue::from_string(pod.to_string()).unwrap()
    };
    let (mirror, other) = (pod(MIRROR_ANNOTATION), pod("team"));
    let kubelet = User { groups: vec![NODES.to_owned()], ..User::default() };
    let (ann, pods) = (User::default(), input(&kubelet, "", "pods"));
    assert!(is_excluded(&ReviewInput { object: Some(&mirror), ..pods }, None));
    assert!(is_excluded(&ReviewInput { old_object: Some(&mirror), ..pods }, None));
    assert!(!is_excluded(&ReviewInput { object: Some(&other), ..pods }, None));
    assert!(!is_excluded(&ReviewInput { object: Some(&mirror), user: &ann, ..pods }, None));
    let maps = ReviewInput { object: Some(&mirror), ..input(&kubelet, "", "configmaps") };
    assert!(!is_excluded(&maps, None));
}
