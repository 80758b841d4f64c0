//! From the original podroute operator.

use anyhow::Result;
use innkeeper_cluster_tests::router::ROUTES;
use innkeeper_cluster_tests::stage::SOON;
use innkeeper_cluster_tests::{Kind, Stage, kubelet};
use serde_json::{Value, json};

use crate::definitions::v1beta1;
use crate::original::{Original, OriginalObject};
use crate::takeover::{Takeover, controlled_by, uids};

const NAME: &str = "test-podroute";
const IMAGE: &str = "quay.io/austincunningham/always200:latest";
const KINDS: [(Kind, &str); 3] = [
    (Kind::DEPLOYMENT, "pod-route"),
    (Kind::SERVICE, "podroute-service"),
    (Kind::ROUTE, "podroute-route"),
];

// The beginnings of the blocks of commands in the README.
const INSTALL: &str = "kubectl apply -f deploy/samples/module-podroute.yaml";
const STOP: &str = "kubectl --namespace operators scale deployment podroute-operator";
const ADOPT: &str = "kubectl get podroutes --all-namespaces";
const RETURN: &str = "kubectl delete module podroute";
const BLOCKS: [&str; 4] = [INSTALL, STOP, ADOPT, RETURN];

fn definition() -> Value {
    let schema = json!({"type": "object", "properties": {
        "spec": {"type": "object", "properties": {
            "image": {"type": "string"}, "replicas": {"type": "integer", "format": "int32"}}},
        "status": {"type": "object"}}});
    v1beta1(("quay.io", "v1alpha1"), ("Podroute", "podroutes", "podroute"), &schema, true)
}

fn podroute(ns: &str, spec: &Value) -> String {
    json!({"apiVersion": Kind::PODROUTE.api_version, "kind": Kind::PODROUTE.kind,
        "metadata": {"name": NAME, "namespace": ns}, "spec": spec})
    .to_string()
}

/// What the original makes: only the Route has labels of its own.
fn objects(ns: &str, replicas: u32) -> [Value; 3] {
    let labels = json!({"app": "PodRoute", "podroute_cr": NAME, "tier": "backend-podroute"});
    let container = json!({"name": "podroute-pod", "image": IMAGE, "imagePullPolicy": "Always",
        "ports": [{"containerPort": 8080, "name": "podroute"}]});
    [
        json!({"apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"name": "pod-route", "namespace": ns},
            "spec": {"replicas": replicas, "selector": {"matchLabels": labels},
                "template": {"metadata": {"labels": labels},
                    "spec": {"containers": [container]}}}}),
        json!({"apiVersion": "v1", "kind": "Service",
            "metadata": {"name": "podroute-service", "namespace": ns},
            "spec": {"selector": labels,
                "ports": [{"protocol": "TCP", "port": 8080, "targetPort": 8080}]}}),
        json!({"apiVersion": "route.openshift.io/v1", "kind": "Route",
            "metadata": {"name": "podroute-route", "namespace": ns, "labels": labels},
            "spec": {"to": {"kind": "Service", "name": "podroute-service"},
                "port": {"targetPort": 8080}}}),
    ]
}

/// The original compares the number of pods only.
fn original_objects(objects: [Value; 3]) -> Vec<OriginalObject> {
    let [deployment, service, route] = objects;
    vec![
        OriginalObject::new(deployment, &["/spec/replicas"]),
        OriginalObject::new(service, &[]),
        OriginalObject::new(route, &[]),
    ]
}

fn at(ns: &str) -> [(Kind, &str, &str); 3] {
    KINDS.map(|(kind, name)| (kind, ns, name))
}

/// The original's definition has no default, and none is stored.
async fn parameter_sets_the_replicas_that_are_left_out(stage: &Stage, ns: &str) -> Result<()> {
    let admin = &stage.admin;
    let at = (Kind::DEPLOYMENT, ns, "pod-route");
    let has = |replicas: u32| move |one: &Value| one["spec"]["replicas"] == replicas;
    admin.edit((Kind::PODROUTE, ns, NAME), &json!({"spec": {"image": IMAGE}})).await?;
    admin.until("the Deployment has no pods", SOON, at, has(0)).await?;
    stage.says((Kind::PODROUTE, ns, NAME), ("Ready", "True", "NoPods")).await?;
    let parameters = json!({"spec": {"parameters": {"replicasWhenLeftOut": 2}}});
    admin.edit((Kind::MODULE, "", "podroute"), &parameters).await?;
    admin.until("the Deployment has two pods", SOON, at, has(2)).await?;
    let podroute = admin.must_get(Kind::PODROUTE, ns, NAME).await?;
    assert!(podroute["spec"]["replicas"].is_null(), "{podroute:#}");
    Ok(())
}

/// A name that is no value of a label.
async fn long_name_is_refused(stage: &Stage, ns: &str) -> Result<()> {
    let name = "a".repeat(64);
    let mut podroute: Value = serde_json::from_str(&podroute(ns, &json!({"image": IMAGE})))?;
    podroute["metadata"]["name"] = name.as_str().into();
    stage.admin.apply(&podroute.to_string()).await?;
    stage.says((Kind::PODROUTE, ns, &name), ("Ready", "False", "NameTooLong")).await?;
    Ok(())
}

/// One namespace with the original running, one whose objects were left by
/// `kubectl delete --cascade=orphan`, and one whose manifest leaves both fields out.
#[tokio::test(flavor = "multi_thread")]
async fn podroutes_are_handed_over_with_their_objects_and_no_write_is_undone() -> Result<()> {
    let takeover = Takeover::new(&[("podroute", &BLOCKS)], &[definition()]).await?;
    let (stage, admin) = (&takeover.stage, takeover.admin());
    let routes = admin.apply(ROUTES).await?;
    admin.until_established(&routes[0]).await?;
    let (running, orphaned) =
        (takeover.namespace("running").await?, takeover.namespace("left").await?);
    let empty = takeover.namespace("empty").await?;
    let spec = json!({"image": IMAGE, "replicas": 3});
    let owner = admin.apply(&podroute(&running, &spec)).await?.remove(0);
    admin.apply(&podroute(&orphaned, &spec)).await?;
    admin.apply(&podroute(&empty, &json!({}))).await?;
    for object in objects(&orphaned, 3) {
        admin.create(&object.to_string()).await?;
    }
    let of_running =
        |replicas| objects(&running, replicas).map(|object| controlled_by(object, &owner));
    let original = Original::start(admin, "podroute", original_objects(of_running(3))).await?;
    let before = [uids(admin, &at(&running)).await?, uids(admin, &at(&orphaned)).await?];

    // The module next to the original: the objects that the original controls are the guest's too.
    takeover.run_block("podroute", INSTALL).await?;
    stage.synced((Kind::PODROUTE, &running, NAME)).await?;
    let left = (Kind::PODROUTE, &*orphaned, NAME);
    let message = stage.says(left, ("Synced", "False", "Conflict")).await?;
    assert!(message.contains("innkeeper.dev/adopt"), "{message}");
    let scaled = json!({"spec": {"replicas": 5}});
    original.set_objects(original_objects(of_running(5)));
    admin.edit((Kind::PODROUTE, &running, NAME), &scaled).await?;
    kubelet::runs_all(admin, &running, ("podroute_cr", NAME), 5).await?;
    stage.synced((Kind::PODROUTE, &running, NAME)).await?;

    takeover.run_block("podroute", STOP).await?;
    let writes = original.writes().await?;
    assert!(writes.len() <= 2, "the two undo each other's writes: {writes:#?}");

    takeover.run_block("podroute", ADOPT).await?;
    for (ns, before) in [&running, &orphaned].into_iter().zip(before) {
        stage.synced((Kind::PODROUTE, ns, NAME)).await?;
        assert_eq!(uids(admin, &at(ns)).await?, before, "the same objects");
        takeover.has_no_consent((Kind::PODROUTE, ns, NAME)).await?;
    }
    stage.says((Kind::PODROUTE, &empty, NAME), ("Ready", "False", "ImageMissing")).await?;
    assert!(admin.list(Kind::DEPLOYMENT, &empty).await?.is_empty());
    parameter_sets_the_replicas_that_are_left_out(stage, &empty).await?;
    long_name_is_refused(stage, &empty).await?;

    // The objects go with their Podroute.
    admin.delete(Kind::PODROUTE, &orphaned, NAME).await?;
    for object in at(&orphaned) {
        admin.until_gone(SOON, object).await?;
    }

    // The way back: the objects stay.
    let before = uids(admin, &at(&running)).await?;
    takeover.run_block("podroute", RETURN).await?;
    assert_eq!(uids(admin, &at(&running)).await?, before, "the same objects");
    Ok(())
}
