//! The real operator with the real guest podroute on the simulated API server: one thread, virtual
//! time.

#![allow(clippy::unwrap_used, reason = "a test may fail by it")]

mod running;

use std::time::Duration;

use bytes::Bytes;
use http::Request;
use innkeeper_lab::{Guests, Lab, Modules, Setup};
use innkeeper_simulator::Simulator;
use running::{block_on, component};
use serde_json::{Value, json};

const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";
const PODROUTES: &str = "/apis/quay.io/v1alpha1/namespaces/default/podroutes";
const DEPLOYMENT: &str = "/apis/apps/v1/namespaces/default/deployments/pod-route";
const SERVICE: &str = "/api/v1/namespaces/default/services/podroute-service";

fn send(simulator: &Simulator, method: &str, path: &str, kind: &str, body: &Value) -> (u16, Value) {
    let body = if body.is_null() { Bytes::new() } else { Bytes::from(body.to_string()) };
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header("content-type", kind)
        .header("user-agent", "somebody/1")
        .body(body)
        .unwrap();
    let response = simulator.request(request);
    let code = response.status().as_u16();
    let text = response.into_body().try_next().unwrap_or_default();
    (code, serde_json::from_slice(&text).unwrap_or_default())
}

fn post(simulator: &Simulator, path: &str, body: &Value) {
    let (code, answer) = send(simulator, "POST", path, "application/json", body);
    assert_eq!(code, 201, "{answer}");
}

fn get(simulator: &Simulator, path: &str) -> Option<Value> {
    let (code, object) = send(simulator, "GET", path, "", &Value::Null);
    (code == 200).then_some(object)
}

fn merge(simulator: &Simulator, path: &str, change: &Value) {
    let kind = "application/merge-patch+json";
    let (code, answer) = send(simulator, "PATCH", path, kind, change);
    assert_eq!(code, 200, "{answer}");
}

/// The rights of the module, as `innkeeper rbac` prints them.
fn rights() -> Vec<Value> {
    let may = |groups: &[&str], resources: &[&str], verbs: &[&str]| json!({"apiGroups": groups, "resources": resources, "verbs": verbs});
    let all = ["get", "list", "watch", "create", "patch", "delete"];
    let rules = json!([
        may(&["quay.io"], &["podroutes"], &["get", "list", "watch"]),
        may(&["quay.io"], &["podroutes/status"], &["get", "patch"]),
        may(&["quay.io"], &["podroutes/finalizers"], &["update"]),
        may(&["apps"], &["deployments"], &all),
        may(&[""], &["services"], &all),
        may(&["route.openshift.io"], &["routes"], &all),
        may(&["", "events.k8s.io"], &["events"], &["create", "patch"]),
        may(&["apiextensions.k8s.io"], &["customresourcedefinitions"], &["get", "create", "patch"]),
    ]);
    let rbac = "rbac.authorization.k8s.io/v1";
    vec![
        json!({"apiVersion": "v1", "kind": "ServiceAccount",
            "metadata": {"name": "podroute", "namespace": "innkeeper-modules",
                "annotations": {"innkeeper.dev/allowed-modules": "podroute"}}}),
        json!({"apiVersion": rbac, "kind": "ClusterRole", "metadata": {"name": "podroute"}, "rules": rules}),
        json!({"apiVersion": rbac, "kind": "ClusterRoleBinding", "metadata": {"name": "podroute"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "podroute"},
            "subjects": [{"kind": "ServiceAccount", "name": "podroute", "namespace": "innkeeper-modules"}]}),
    ]
}

async fn lab(seed: u64) -> Lab {
    let module = json!({"apiVersion": "innkeeper.dev/v1alpha1", "kind": "Module", "metadata": {"name": "podroute"},
        "spec": {"source": {"file": component("podroute")}, "serviceAccountName": "podroute", "allowedCRDGroups": ["quay.io"]}});
    let mut setup = Setup::new(seed);
    setup.modules = Modules::Given(vec![module]);
    setup.objects = rights();
    setup.keep_log = true;
    let lab = Lab::start(&Guests::new().unwrap(), setup).await.unwrap();
    lab.serves(Duration::from_mins(1)).await.unwrap();
    lab
}

/// Plays the life of one Podroute; gives everything that the simulator logged.
async fn play(seed: u64) -> Vec<String> {
    let lab = lab(seed).await;
    let simulator = lab.simulator().clone();
    let pass = async |seconds| lab.pass(Duration::from_secs(seconds)).await;

    // It installed its definition itself, as its ServiceAccount.
    let podroute = json!({"apiVersion": "quay.io/v1alpha1", "kind": "Podroute", "metadata": {"name": "test"},
        "spec": {"image": "quay.io/austincunningham/always200:latest", "replicas": 3}});
    post(&simulator, PODROUTES, &podroute);
    pass(30).await;
    let deployment = get(&simulator, DEPLOYMENT).unwrap();
    assert_eq!(deployment["spec"]["replicas"], 3);
    assert_eq!(deployment["metadata"]["ownerReferences"][0]["name"], "test");
    assert!(get(&simulator, SERVICE).is_some(), "the Service is made");
    let primary = get(&simulator, &format!("{PODROUTES}/test")).unwrap();
    let synced = primary["status"]["conditions"].as_array().unwrap();
    let is_synced = |one: &Value| one["type"] == "Synced" && one["status"] == "True";
    assert!(synced.iter().any(is_synced), "{primary:#}");
    assert_eq!(primary["status"]["readyReplicas"], 3, "its pods run: {primary:#}");

    // A change, drift, and what somebody deletes.
    merge(&simulator, &format!("{PODROUTES}/test"), &json!({"spec": {"replicas": 5}}));
    pass(10).await;
    assert_eq!(get(&simulator, DEPLOYMENT).unwrap()["spec"]["replicas"], 5);
    merge(&simulator, DEPLOYMENT, &json!({"spec": {"replicas": 1}}));
    pass(10).await;
    assert_eq!(get(&simulator, DEPLOYMENT).unwrap()["spec"]["replicas"], 5, "drift is repaired");
    send(&simulator, "DELETE", SERVICE, "", &Value::Null);
    pass(10).await;
    assert!(get(&simulator, SERVICE).is_some(), "the Service is made again");

    // Quiet: in ten minutes nothing is written.
    pass(120).await;
    assert!(lab.running().operator().is_quiet());
    let version = || get(&simulator, CONFIG_MAPS).unwrap()["metadata"]["resourceVersion"].clone();
    let before = version();
    pass(600).await;
    assert_eq!(version(), before, "a converged loop writes nothing");

    send(&simulator, "DELETE", &format!("{PODROUTES}/test"), "", &Value::Null);
    pass(10).await;
    assert!(get(&simulator, DEPLOYMENT).is_none(), "what it owned is collected");
    assert!(get(&simulator, SERVICE).is_none());

    assert!(lab.end().await, "the operator ends on request");
    simulator.log()
}

#[test]
fn the_operator_takes_the_simulator_for_a_cluster_and_the_same_seed_gives_the_same_bytes() {
    let first = block_on(play(42));
    let second = block_on(play(42));
    let differing = first.iter().zip(&second).position(|(one, other)| one != other);
    if let Some(index) = differing {
        panic!("line {index} differs:\n{}\n{}", first[index], second[index]);
    }
    assert_eq!(first.len(), second.len());
}
