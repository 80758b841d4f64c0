//! The manifests of `deploy/`: they are accepted, and give the rights that they say and no more.

use anyhow::{Context as _, Result};
use innkeeper_cluster_tests::stage::SOON;
use innkeeper_cluster_tests::{Admin, eventually, shared};
use serde_json::{Value, json};

const HOST: &str = "system:serviceaccount:innkeeper-system:innkeeper";
const PODROUTE: &str = "system:serviceaccount:innkeeper-modules:podroute";

/// A right: verb, API group, resource with subresource, namespace (empty: everywhere), name
/// (empty: any).
type Right = (&'static str, &'static str, &'static str, &'static str, &'static str);

async fn may(admin: &Admin, user: &str, right: Right) -> Result<bool> {
    let (verb, group, resource, namespace, name) = right;
    let (resource, subresource) = resource.split_once('/').unwrap_or((resource, ""));
    let body = json!({
        "apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview",
        "spec": {
            "user": user,
            "groups": ["system:serviceaccounts", "system:authenticated"],
            "resourceAttributes": {
                "verb": verb, "group": group, "resource": resource, "subresource": subresource,
                "namespace": namespace, "name": name,
            },
        },
    });
    let request = http::Request::post("/apis/authorization.k8s.io/v1/subjectaccessreviews")
        .header("content-type", "application/json")
        .body(serde_json::to_vec(&body)?)?;
    let answer: Value = admin.client().request(request).await.context("asking for a right")?;
    answer["status"]["allowed"].as_bool().context("no answer about a right")
}

async fn check(admin: &Admin, user: &str, allowed: &[Right], denied: &[Right]) -> Result<()> {
    // The API server learns of new roles by a watch of its own, a moment later.
    for right in allowed {
        eventually(&format!("{user} has {right:?}"), SOON, async || {
            Ok(if may(admin, user, *right).await? { Ok(()) } else { Err("not yet".to_owned()) })
        })
        .await?;
    }
    for right in denied {
        assert!(!may(admin, user, *right).await?, "{user} should not have {right:?}");
    }
    Ok(())
}

#[tokio::test]
async fn the_host_may_act_as_modules_and_little_else() -> Result<()> {
    let admin = Admin::of(shared()?).await?;
    admin.install().await?;
    let allowed: [Right; 13] = [
        ("watch", "innkeeper.dev", "modules", "", ""),
        ("patch", "innkeeper.dev", "modules", "", "any"),
        ("patch", "innkeeper.dev", "modules/status", "", "any"),
        ("list", "apiextensions.k8s.io", "customresourcedefinitions", "", ""),
        ("impersonate", "", "serviceaccounts", "innkeeper-modules", "podroute"),
        ("watch", "", "configmaps", "innkeeper-modules", ""),
        ("create", "", "configmaps", "innkeeper-modules", ""),
        ("delete", "", "configmaps", "innkeeper-modules", ""),
        ("get", "", "secrets", "innkeeper-system", "innkeeper-digest-key"),
        ("create", "", "secrets", "innkeeper-system", ""),
        ("create", "", "events", "default", ""),
        ("patch", "events.k8s.io", "events", "default", "any"),
        ("create", "authorization.k8s.io", "selfsubjectaccessreviews", "", ""),
    ];
    let denied: [Right; 16] = [
        ("impersonate", "", "serviceaccounts", "", "admin"),
        ("impersonate", "", "serviceaccounts", "kube-system", "generic-garbage-collector"),
        ("impersonate", "", "users", "", "admin"),
        ("impersonate", "", "groups", "", "system:masters"),
        ("delete", "innkeeper.dev", "modules", "", "any"),
        ("create", "apiextensions.k8s.io", "customresourcedefinitions", "", ""),
        ("patch", "apiextensions.k8s.io", "customresourcedefinitions", "", "any"),
        ("get", "", "secrets", "innkeeper-system", "other"),
        ("list", "", "secrets", "innkeeper-system", ""),
        ("get", "", "secrets", "innkeeper-modules", "any"),
        ("update", "", "configmaps", "innkeeper-modules", "any"),
        ("patch", "", "configmaps", "innkeeper-modules", "any"),
        ("list", "", "configmaps", "", ""),
        ("create", "", "serviceaccounts/token", "innkeeper-modules", "podroute"),
        ("list", "apps", "deployments", "", ""),
        ("create", "", "pods", "innkeeper-system", ""),
    ];
    check(&admin, HOST, &allowed, &denied).await
}

#[tokio::test]
async fn the_module_podroute_may_make_its_objects_and_its_crd() -> Result<()> {
    let admin = Admin::of(shared()?).await?;
    admin.install().await?;
    admin.apply(include_str!("../../../deploy/samples/module-podroute.yaml")).await?;
    let allowed: [Right; 8] = [
        ("watch", "quay.io", "podroutes", "", ""),
        ("patch", "quay.io", "podroutes/status", "team", "a"),
        ("create", "apps", "deployments", "team", ""),
        ("patch", "apps", "deployments", "team", "pod-route"),
        ("delete", "", "services", "team", "podroute-service"),
        ("watch", "route.openshift.io", "routes", "", ""),
        ("create", "", "events", "team", ""),
        ("patch", "apiextensions.k8s.io", "customresourcedefinitions", "", "podroutes.quay.io"),
    ];
    let denied: [Right; 8] = [
        ("patch", "quay.io", "podroutes", "team", "a"),
        ("delete", "quay.io", "podroutes", "team", "a"),
        ("patch", "apiextensions.k8s.io", "customresourcedefinitions", "", "others.quay.io"),
        ("delete", "apiextensions.k8s.io", "customresourcedefinitions", "", "podroutes.quay.io"),
        ("list", "", "secrets", "team", ""),
        ("create", "", "pods", "team", ""),
        ("patch", "innkeeper.dev", "modules", "", "podroute"),
        ("impersonate", "", "serviceaccounts", "innkeeper-modules", "podroute"),
    ];
    check(&admin, PODROUTE, &allowed, &denied).await
}
