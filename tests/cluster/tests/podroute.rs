//! The guest podroute on a real API server: from a custom resource to its objects, and that
//! they stay so.

#![allow(clippy::unwrap_used, reason = "a test may fail by it")]

use std::time::Duration;

use anyhow::{Context as _, Error, Result, ensure};
use innkeeper_cluster_tests::router::ROUTES;
use innkeeper_cluster_tests::stage::{SOON, message, says};
use innkeeper_cluster_tests::{
    Admin, AuditFilter, Host, Kind, Proxy, Stage, condition, eventually,
};
use serde_json::{Value, json};

/// The Podroute of most tests.
const NAME: &str = "test-podroute";
const IMAGE: &str = "quay.io/austincunningham/always200:latest";
const DEPLOYMENT: &str = "pod-route";
const SERVICE: &str = "podroute-service";
const ROUTE: &str = "podroute-route";

fn podroute(namespace: &str, name: &str, replicas: u32) -> String {
    json!({"apiVersion": "quay.io/v1alpha1", "kind": "Podroute",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"image": IMAGE, "replicas": replicas}})
    .to_string()
}

fn labels(name: &str) -> Value {
    json!({"app": "PodRoute", "podroute_cr": name, "tier": "backend-podroute"})
}

fn owner(object: &Value) -> &str {
    object["metadata"]["ownerReferences"][0]["name"].as_str().unwrap_or_default()
}

/// A stage with the module podroute serving.
async fn stage() -> Result<(Stage, innkeeper_cluster_tests::Host, String)> {
    let stage = Stage::new().await?;
    stage.module("podroute", "podroute", &json!({"allowedCRDGroups": ["quay.io"]})).await?;
    let host = stage.host().await?;
    stage.ready("podroute").await?;
    let namespace = stage.admin.namespace("web").await?;
    Ok((stage, host, namespace))
}

/// Waits until the host has nothing to do: all that changed has been worked on.
async fn synced(stage: &Stage, namespace: &str, name: &str) -> Result<Value> {
    stage.synced((Kind::PODROUTE, namespace, name)).await
}

#[tokio::test(flavor = "multi_thread")]
async fn podroute_objects_match_its_spec_and_drift_is_repaired() -> Result<()> {
    let (stage, host, namespace) = stage().await?;
    let (admin, ns) = (&stage.admin, namespace.as_str());
    admin.apply(&podroute(ns, NAME, 3)).await?;
    synced(&stage, ns, NAME).await?;
    deployment_and_service_match_the_spec(admin, ns).await?;
    missing_kind_of_the_route_is_reported(admin, ns).await?;
    labels_of_an_earlier_version_are_removed(&stage, ns).await?;

    admin.apply(&podroute(ns, NAME, 5)).await?;
    until_replicas(admin, ns, 5).await?;

    updated_image_is_set_back(admin, ns).await?;
    updated_selector_is_set_back(admin, ns).await?;
    force_applied_replicas_are_set_back(admin, ns, 5).await?;
    deleted_service_is_created_again(admin, ns).await?;
    terminating_service_is_waited_for(&stage, ns).await?;

    admin.delete(Kind::PODROUTE, ns, NAME).await?;
    for (kind, name) in [(Kind::DEPLOYMENT, DEPLOYMENT), (Kind::SERVICE, SERVICE)] {
        admin.until_gone(SOON, (kind, ns, name)).await?;
    }
    let (status, _) = host.stop(Duration::from_secs(10)).await?;
    assert!(status.success(), "the host ends well within ten seconds: {status}");
    Ok(())
}

/// Exact names, labels, owners, and what the guest sets in the specs.
async fn deployment_and_service_match_the_spec(admin: &Admin, ns: &str) -> Result<()> {
    let deployment = admin.must_get(Kind::DEPLOYMENT, ns, DEPLOYMENT).await?;
    let service = admin.must_get(Kind::SERVICE, ns, SERVICE).await?;
    for object in [&deployment, &service] {
        // As in the original, where only the Route and the pods have labels.
        assert_eq!(object["metadata"]["labels"], Value::Null);
        assert_eq!(owner(object), NAME);
        assert_eq!(object["metadata"]["ownerReferences"][0]["controller"], true);
    }
    let spec = &deployment["spec"];
    assert_eq!(spec["replicas"], 3);
    assert_eq!(spec["selector"]["matchLabels"], labels(NAME));
    assert_eq!(spec["template"]["metadata"]["labels"], labels(NAME));
    let container = &spec["template"]["spec"]["containers"][0];
    assert_eq!(container["name"], "podroute-pod");
    assert_eq!(container["image"], IMAGE);
    assert_eq!(container["imagePullPolicy"], "Always");
    assert_eq!(container["ports"][0]["containerPort"], 8080);
    assert_eq!(container["ports"][0]["name"], "podroute");
    assert_eq!(service["spec"]["selector"], labels(NAME));
    assert_eq!(service["spec"]["ports"][0]["port"], 8080);
    assert_eq!(service["spec"]["ports"][0]["targetPort"], 8080);
    Ok(())
}

/// Without the Route's kind, a condition reports that and nothing else suffers.
async fn missing_kind_of_the_route_is_reported(admin: &Admin, ns: &str) -> Result<()> {
    let object = admin.must_get(Kind::PODROUTE, ns, NAME).await?;
    assert!(says(&object, "KindsAvailable", "False", "NotServed"), "{object:#}");
    assert!(message(&object, "KindsAvailable").contains("route.openshift.io/v1 Route"));
    Ok(())
}

/// Earlier versions gave the Deployment and the Service the three labels too. The objects remain
/// the Podroute's, and lose the labels.
async fn labels_of_an_earlier_version_are_removed(stage: &Stage, ns: &str) -> Result<()> {
    let admin = &stage.admin;
    let primary = admin.must_get(Kind::PODROUTE, ns, NAME).await?;
    let manager = format!("innkeeper/podroute/{}", primary["metadata"]["uid"].as_str().unwrap());
    let before = admin.must_get(Kind::SERVICE, ns, SERVICE).await?;
    let labelled = json!({"apiVersion": "v1", "kind": "Service",
        "metadata": {"name": SERVICE, "namespace": ns, "labels": labels(NAME),
            "ownerReferences": before["metadata"]["ownerReferences"]},
        "spec": {"selector": labels(NAME),
            "ports": [{"port": 8080, "targetPort": 8080, "protocol": "TCP"}]}});
    admin.apply_as(&manager, true, &labelled.to_string()).await?;
    let at = (Kind::SERVICE, ns, SERVICE);
    let has_none = |one: &Value| one["metadata"]["labels"] == Value::Null;
    let after = admin.until("the labels are gone", SOON, at, has_none).await?;
    assert_eq!(after["metadata"]["uid"], before["metadata"]["uid"], "it is the same object");
    assert_eq!(after["spec"], before["spec"]);
    Ok(())
}

async fn until_replicas(admin: &Admin, ns: &str, replicas: u32) -> Result<()> {
    let what = format!("{replicas} replicas");
    let at = (Kind::DEPLOYMENT, ns, DEPLOYMENT);
    admin.until(&what, SOON, at, |one| one["spec"]["replicas"] == replicas).await?;
    Ok(())
}

async fn updated_image_is_set_back(admin: &Admin, ns: &str) -> Result<()> {
    let image = json!({"spec": {"template": {"spec": {"containers": [
        {"name": "podroute-pod", "image": "example.com/other:1"}]}}}});
    admin.merge(Kind::DEPLOYMENT, ns, DEPLOYMENT, "kubectl-edit", &image).await?;
    let is_back = |one: &Value| one["spec"]["template"]["spec"]["containers"][0]["image"] == IMAGE;
    let at = (Kind::DEPLOYMENT, ns, DEPLOYMENT);
    admin.until("the image is back", SOON, at, is_back).await?;
    Ok(())
}

async fn updated_selector_is_set_back(admin: &Admin, ns: &str) -> Result<()> {
    let selector = json!({"spec": {"selector": {"app": "other"}}});
    admin.merge(Kind::SERVICE, ns, SERVICE, "kubectl-edit", &selector).await?;
    let is_back = |one: &Value| one["spec"]["selector"] == labels(NAME);
    admin.until("the selector is back", SOON, (Kind::SERVICE, ns, SERVICE), is_back).await?;
    Ok(())
}

async fn force_applied_replicas_are_set_back(admin: &Admin, ns: &str, replicas: u32) -> Result<()> {
    let forced = json!({"apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": DEPLOYMENT, "namespace": ns}, "spec": {"replicas": 9}});
    admin.apply_as("another-team", true, &forced.to_string()).await?;
    until_replicas(admin, ns, replicas).await
}

async fn deleted_service_is_created_again(admin: &Admin, ns: &str) -> Result<()> {
    let before = admin.must_get(Kind::SERVICE, ns, SERVICE).await?;
    admin.delete(Kind::SERVICE, ns, SERVICE).await?;
    until_another_service(admin, ns, &before).await
}

/// A Service that terminates slowly causes no error, and is created again when it is gone.
async fn terminating_service_is_waited_for(stage: &Stage, ns: &str) -> Result<()> {
    let admin = &stage.admin;
    let finalizers = |finalizers: Value| json!({"metadata": {"finalizers": finalizers}});
    let slow = finalizers(json!(["example.com/slow"]));
    admin.merge(Kind::SERVICE, ns, SERVICE, "slow", &slow).await?;
    admin.delete(Kind::SERVICE, ns, SERVICE).await?;
    let terminating = admin.must_get(Kind::SERVICE, ns, SERVICE).await?;
    assert!(terminating["metadata"]["deletionTimestamp"].is_string());
    synced(stage, ns, NAME).await?;
    admin.merge(Kind::SERVICE, ns, SERVICE, "slow", &finalizers(Value::Null)).await?;
    until_another_service(admin, ns, &terminating).await
}

async fn until_another_service(admin: &Admin, ns: &str, before: &Value) -> Result<()> {
    let is_another = |one: &Value| one["metadata"]["uid"] != before["metadata"]["uid"];
    let at = (Kind::SERVICE, ns, SERVICE);
    admin.until("the Service is created again", SOON, at, is_another).await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn route_is_created_when_its_kind_is_served_even_later() -> Result<()> {
    let (stage, _host, namespace) = stage().await?;
    let (admin, ns) = (&stage.admin, namespace.as_str());
    admin.apply(&podroute(ns, NAME, 1)).await?;
    synced(&stage, ns, NAME).await?;
    let at = (Kind::PODROUTE, ns, NAME);
    stage.says(at, ("KindsAvailable", "False", "NotServed")).await?;

    for crd in admin.apply(ROUTES).await? {
        admin.until_established(&crd).await?;
    }
    let route = admin.until("the Route is made", SOON, (Kind::ROUTE, ns, ROUTE), |_| true).await?;
    assert_eq!(route["spec"]["to"]["name"], SERVICE);
    assert_eq!(route["spec"]["port"]["targetPort"], 8080);
    assert_eq!(route["metadata"]["labels"], labels(NAME));
    assert_eq!(owner(&route), NAME);
    stage.says(at, ("KindsAvailable", "True", "AllKindsServed")).await?;

    // A new one gets its Route at once.
    let second = admin.namespace("web").await?;
    admin.apply(&podroute(&second, NAME, 1)).await?;
    admin.until("its Route", SOON, (Kind::ROUTE, &second, ROUTE), |_| true).await?;

    // The definition is deleted and created again, without a restart.
    admin.delete(Kind::CRD, "", "routes.route.openshift.io").await?;
    stage.says(at, ("KindsAvailable", "False", "NotServed")).await?;
    admin.until_gone(SOON, (Kind::CRD, "", "routes.route.openshift.io")).await?;
    for crd in admin.apply(ROUTES).await? {
        admin.until_established(&crd).await?;
    }
    admin.until("the Route is made again", SOON, (Kind::ROUTE, ns, ROUTE), |_| true).await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn second_podroute_of_a_namespace_waits_until_the_names_are_free() -> Result<()> {
    let (stage, _host, namespace) = stage().await?;
    let (admin, ns) = (&stage.admin, namespace.as_str());
    admin.apply(&podroute(ns, "first", 1)).await?;
    synced(&stage, ns, "first").await?;
    let mark = stage.plane.audit()?.mark()?;
    admin.apply(&podroute(ns, "second", 2)).await?;
    let message =
        stage.says((Kind::PODROUTE, ns, "second"), ("Synced", "False", "Conflict")).await?;
    assert!(message.contains("Podroute first"), "the holder is named: {message}");

    // One child of the first is deleted: it comes back to the first.
    for (kind, name) in [(Kind::DEPLOYMENT, DEPLOYMENT), (Kind::SERVICE, SERVICE)] {
        let before = admin.must_get(kind, ns, name).await?["metadata"]["uid"].clone();
        admin.delete(kind, ns, name).await?;
        let again = admin
            .until("it is back", SOON, (kind, ns, name), |one| one["metadata"]["uid"] != before)
            .await?;
        assert_eq!(owner(&again), "first");
    }
    // The Route's kind arrives late: the first's too.
    for crd in admin.apply(ROUTES).await? {
        admin.until_established(&crd).await?;
    }
    let route = admin.until("the Route", SOON, (Kind::ROUTE, ns, ROUTE), |_| true).await?;
    assert_eq!(owner(&route), "first");
    synced(&stage, ns, "first").await?;

    // Of the second, nothing has been written but its status and Events.
    let second = admin.must_get(Kind::PODROUTE, ns, "second").await?;
    let uid = second["metadata"]["uid"].as_str().context("uid")?.to_owned();
    let events = stage.plane.audit()?.since(mark, &AuditFilter::new().writes())?;
    let written: Vec<_> =
        events.iter().filter(|event| event.uri.contains(&uid) && event.succeeded()).collect();
    assert!(written.is_empty(), "the second wrote {written:?}");

    // When the first goes, the second takes the names over, all of them.
    admin.delete(Kind::PODROUTE, ns, "first").await?;
    synced(&stage, ns, "second").await?;
    for (kind, name) in
        [(Kind::DEPLOYMENT, DEPLOYMENT), (Kind::SERVICE, SERVICE), (Kind::ROUTE, ROUTE)]
    {
        assert_eq!(owner(&admin.must_get(kind, ns, name).await?), "second");
    }

    // Both at once, several times: the names are one's or the other's.
    for _ in 0..5 {
        both_at_once(&stage).await?;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn podroutes_created_at_once_on_stale_caches_never_split_the_names() -> Result<()> {
    let stage = Stage::new().await?;
    for crd in stage.admin.apply(ROUTES).await? {
        stage.admin.until_established(&crd).await?;
    }
    stage.module("podroute", "podroute", &json!({"allowedCRDGroups": ["quay.io"]})).await?;
    let proxy = Proxy::start(stage.plane.kubeconfig()).await?;
    let mut host = Host::start(&stage.host_options(&proxy.kubeconfig()).await?)?;
    host.ready(SOON).await?;
    stage.ready("podroute").await?;
    // The host learns of nothing that it did not write itself.
    for resource in ["deployments", "services", "routes"] {
        proxy.hold(resource);
    }
    let mut namespaces = Vec::new();
    for _ in 0..5 {
        namespaces.push(both_at_once(&stage).await?);
    }
    for resource in ["deployments", "services", "routes"] {
        proxy.release(resource);
    }
    // What it learns afterwards changes nothing about it.
    stage.quiet(Duration::from_secs(2)).await?;
    for (namespace, winner) in &namespaces {
        assert_eq!(&owner_of_all(&stage.admin, namespace).await?.map_err(Error::msg)?, winner);
        synced(&stage, namespace, winner).await?;
    }
    Ok(())
}

/// Makes two podroutes at once in a new namespace, and waits until one has all the names and the
/// other says so; gives the namespace and the one.
async fn both_at_once(stage: &Stage) -> Result<(String, String)> {
    let admin = &stage.admin;
    let namespace = admin.namespace("both").await?;
    let ns = namespace.as_str();
    let (left, right) = (podroute(ns, "left", 1), podroute(ns, "right", 1));
    let (left, right) = tokio::join!(admin.apply(&left), admin.apply(&right));
    left?;
    right?;
    let winner =
        eventually("one has all names", SOON, async || owner_of_all(admin, ns).await).await?;
    let loser = if winner == "left" { "right" } else { "left" };
    stage.says((Kind::PODROUTE, ns, loser), ("Synced", "False", "Conflict")).await?;
    Ok((namespace, winner))
}

/// Who owns the Deployment, the Service and the Route of a namespace.
///
/// # Errors
/// If they are two's: that is never right, not even for a moment.
async fn owner_of_all(admin: &Admin, ns: &str) -> Result<Result<String, String>> {
    let mut owners = Vec::new();
    for (kind, name) in
        [(Kind::DEPLOYMENT, DEPLOYMENT), (Kind::SERVICE, SERVICE), (Kind::ROUTE, ROUTE)]
    {
        match admin.get(kind, ns, name).await? {
            Some(object) => owners.push(owner(&object).to_owned()),
            None => return Ok(Err(format!("{kind} is not there"))),
        }
    }
    ensure!(owners.iter().all(|one| *one == owners[0]), "the names are split: {owners:?}");
    Ok(Ok(owners.swap_remove(0)))
}

#[tokio::test(flavor = "multi_thread")]
async fn foreign_deployment_is_untouched_until_the_podroute_allows_adoption() -> Result<()> {
    let (stage, _host, namespace) = stage().await?;
    let (admin, ns) = (&stage.admin, namespace.as_str());
    let foreign = json!({"apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": DEPLOYMENT, "namespace": ns},
        "spec": {"replicas": 1, "selector": {"matchLabels": labels(NAME)},
            "template": {"metadata": {"labels": labels(NAME)},
                "spec": {"containers": [{"name": "podroute-pod", "image": "example.com/theirs:1"}]}}}});
    admin.apply(&foreign.to_string()).await?;
    let before = admin.must_get(Kind::DEPLOYMENT, ns, DEPLOYMENT).await?;
    admin.apply(&podroute(ns, NAME, 2)).await?;
    let at = (Kind::PODROUTE, ns, NAME);
    stage.says(at, ("Synced", "False", "Conflict")).await?;
    let after = admin.must_get(Kind::DEPLOYMENT, ns, DEPLOYMENT).await?;
    assert_eq!(before["spec"], after["spec"]);
    assert_eq!(after["metadata"]["ownerReferences"], Value::Null);
    assert!(admin.get(Kind::SERVICE, ns, SERVICE).await?.is_none(), "nothing else is created");

    let adopt = json!({"metadata": {"annotations": {"innkeeper.dev/adopt": "true"}}});
    admin.merge(Kind::PODROUTE, ns, NAME, "somebody", &adopt).await?;
    synced(&stage, ns, NAME).await?;
    let adopted = admin.must_get(Kind::DEPLOYMENT, ns, DEPLOYMENT).await?;
    assert_eq!(adopted["metadata"]["uid"], before["metadata"]["uid"], "it is the same object");
    assert_eq!(owner(&adopted), NAME);
    assert_eq!(adopted["spec"]["replicas"], 2);
    eventually("an Event tells of it", SOON, async || {
        let events = admin.list(Kind::EVENT, ns).await?;
        let found = events.iter().any(|event| event["reason"] == "Adopted");
        Ok(if found { Ok(()) } else { Err(format!("{} Events, none of it", events.len())) })
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn child_recreated_by_another_user_stays_theirs() -> Result<()> {
    let (stage, host, namespace) = stage().await?;
    let (admin, ns) = (&stage.admin, namespace.as_str());
    admin.apply(&podroute(ns, NAME, 1)).await?;
    synced(&stage, ns, NAME).await?;
    // While the host is away, so that the stranger is first.
    host.kill().await?;
    admin.delete(Kind::SERVICE, ns, SERVICE).await?;
    admin.until_gone(SOON, (Kind::SERVICE, ns, SERVICE)).await?;
    let theirs = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": SERVICE, "namespace": ns},
        "spec": {"ports": [{"port": 1}]}});
    admin.apply(&theirs.to_string()).await?;
    let _host = stage.host().await?;
    stage.says((Kind::PODROUTE, ns, NAME), ("Synced", "False", "Conflict")).await?;
    let service = admin.must_get(Kind::SERVICE, ns, SERVICE).await?;
    assert_eq!(service["spec"]["ports"][0]["port"], 1);
    assert_eq!(service["metadata"]["ownerReferences"], Value::Null);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn contested_replicas_are_reported_and_left_alone() -> Result<()> {
    let (stage, _host, namespace) = stage().await?;
    let (admin, ns) = (&stage.admin, namespace.as_str());
    admin.apply(&podroute(ns, NAME, 3)).await?;
    synced(&stage, ns, NAME).await?;
    let mark = stage.plane.audit()?.mark()?;
    // Like an autoscaler: whenever it finds another number, it sets its own.
    let message = eventually("the fight is reported", SOON, async || {
        let deployment = admin.must_get(Kind::DEPLOYMENT, ns, DEPLOYMENT).await?;
        if deployment["spec"]["replicas"] != 7 {
            let scale = json!({"spec": {"replicas": 7}});
            admin.merge(Kind::DEPLOYMENT, ns, DEPLOYMENT, "autoscaler", &scale).await?;
        }
        let object = admin.must_get(Kind::PODROUTE, ns, NAME).await?;
        Ok(if says(&object, "Synced", "False", "Contested") {
            Ok(message(&object, "Synced").to_owned())
        } else {
            Err(format!("Synced is {:?}", condition(&object, "Synced")))
        })
    })
    .await?;
    assert!(message.contains(".spec.replicas") && message.contains("autoscaler"), "{message}");
    let filter = AuditFilter::new()
        .writes()
        .impersonated("system:serviceaccount:innkeeper-modules:podroute")
        .resource("deployments");
    let writes = stage.plane.audit()?.since(mark, &filter)?.len();
    assert!((6..=7).contains(&writes), "it was set back {writes} times, then left alone");
    Ok(())
}
