//! DaemonSets, and what a new namespace has, in virtual time.

#![allow(clippy::unwrap_used, reason = "a test may fail by it")]

// Each test file uses a part of it.
#[allow(dead_code)]
mod cluster;

use cluster::Cluster;
use serde_json::{Value, json};

const SET: &str = "/apis/apps/v1/namespaces/default/daemonsets/agent";
const PODS: &str = "/api/v1/namespaces/default/pods";

fn daemon_set(image: &str, strategy: &Value) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "agent"},
        "spec": {
            "selector": {"matchLabels": {"app": "agent"}}, "updateStrategy": strategy,
            "template": {
                "metadata": {"labels": {"app": "agent"}},
                "spec": {"containers": [{"name": "agent", "image": image}]},
            },
        },
    })
}

fn add_node(cluster: &Cluster, name: &str, taints: &Value) {
    let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name},
        "spec": {"taints": taints}});
    let (code, answer) = cluster.send("POST", "/api/v1/nodes", &node);
    assert_eq!(code, 201, "{answer}");
}

/// Node and image of each Pod, and whether it is being deleted.
fn pods(cluster: &Cluster) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let mut pods: Vec<_> = cluster
        .list(PODS)
        .iter()
        .map(|pod| (text(&pod["spec"]["nodeName"]), text(&pod["spec"]["containers"][0]["image"])))
        .collect();
    pods.sort();
    pods
}

fn status(cluster: &Cluster) -> Value {
    cluster.get(SET).unwrap()["status"].clone()
}

#[test]
fn daemon_set_runs_a_pod_on_each_node_that_it_fits() {
    let cluster = Cluster::new();
    let taint = json!([{"key": "gpu", "value": "yes", "effect": "NoSchedule"}]);
    for (name, taints) in [("a", json!([])), ("b", json!([])), ("c", taint)] {
        add_node(&cluster, name, &taints);
    }
    cluster.apply(&daemon_set("agent:1", &json!({})));
    cluster.pass(5);
    let image = || "agent:1".to_owned();
    assert_eq!(pods(&cluster), [("a".to_owned(), image()), ("b".to_owned(), image())]);
    assert_eq!(
        status(&cluster),
        json!({"currentNumberScheduled": 2, "desiredNumberScheduled": 2, "numberAvailable": 2,
            "numberMisscheduled": 0, "numberReady": 2, "observedGeneration": 1,
            "updatedNumberScheduled": 2})
    );
    add_node(&cluster, "d", &json!([]));
    cluster.send("DELETE", "/api/v1/nodes/a", &Value::Null);
    cluster.pass(5);
    assert_eq!(pods(&cluster), [("b".to_owned(), image()), ("d".to_owned(), image())]);
    let pod = &cluster.list(PODS)[0];
    assert_eq!(pod["metadata"]["labels"]["pod-template-generation"], "1");
    cluster.is_quiet();
}

#[test]
fn pod_stays_on_a_node_with_a_new_taint_until_it_has_no_execute() {
    let cluster = Cluster::new();
    for name in ["a", "b"] {
        add_node(&cluster, name, &json!([]));
    }
    cluster.apply(&daemon_set("agent:1", &json!({})));
    cluster.pass(5);
    let taint = |effect: &str| {
        let taints = json!([{"key": "gpu", "value": "yes", "effect": effect}]);
        let mut node = cluster.get("/api/v1/nodes/a").unwrap();
        node["spec"]["taints"] = taints;
        let (code, answer) = cluster.send("PUT", "/api/v1/nodes/a", &node);
        assert_eq!(code, 200, "{answer}");
        cluster.pass(5);
    };
    taint("NoSchedule");
    assert_eq!(pods(&cluster).len(), 2);
    assert_eq!(status(&cluster)["numberMisscheduled"], 1);
    assert_eq!(status(&cluster)["desiredNumberScheduled"], 1);
    taint("NoExecute");
    assert_eq!(pods(&cluster), [("b".to_owned(), "agent:1".to_owned())]);
}

#[test]
fn huge_percentage_of_a_rolling_update_replaces_all_pods() {
    let cluster = Cluster::new();
    for name in ["a", "b"] {
        add_node(&cluster, name, &json!([]));
    }
    let huge = json!({"rollingUpdate": {"maxUnavailable": "9223372036854775807%"}});
    for image in ["agent:1", "agent:2"] {
        cluster.apply(&daemon_set(image, &huge));
        cluster.pass(10);
    }
    assert!(pods(&cluster).iter().all(|(_, image)| image == "agent:2"));
}

#[test]
fn cluster_without_nodes_has_one_for_a_daemon_set() {
    let cluster = Cluster::new();
    cluster.apply(&daemon_set("agent:1", &json!({})));
    cluster.pass(5);
    assert_eq!(pods(&cluster), [("node-1".to_owned(), "agent:1".to_owned())]);
    assert_eq!(status(&cluster)["numberReady"], 1);
}

#[test]
fn rolling_update_keeps_all_but_one_pod_available() {
    let cluster = Cluster::new();
    for name in ["a", "b", "c"] {
        add_node(&cluster, name, &json!([]));
    }
    cluster.apply(&daemon_set("agent:1", &json!({})));
    cluster.pass(5);
    cluster.apply(&daemon_set("agent:2", &json!({})));
    for _ in 0..30 {
        cluster.pass(1);
        let unavailable = status(&cluster)["numberUnavailable"].as_i64().unwrap_or(0);
        assert!(unavailable <= 1, "{unavailable} Pods are unavailable");
    }
    let images: Vec<String> = pods(&cluster).into_iter().map(|(_, image)| image).collect();
    assert_eq!(images, ["agent:2"; 3]);
    assert_eq!(status(&cluster)["updatedNumberScheduled"], 3);
    let revisions = cluster.list("/apis/apps/v1/namespaces/default/controllerrevisions");
    let mut numbers: Vec<_> = revisions.iter().map(|one| one["revision"].as_i64()).collect();
    numbers.sort_unstable();
    assert_eq!(numbers, [Some(1), Some(2)]);
}

#[test]
fn rolling_update_with_surge_keeps_all_pods_available() {
    let cluster = Cluster::new();
    for name in ["a", "b"] {
        add_node(&cluster, name, &json!([]));
    }
    let surge = json!({"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}});
    cluster.apply(&daemon_set("agent:1", &surge));
    cluster.pass(5);
    cluster.apply(&daemon_set("agent:2", &surge));
    for _ in 0..30 {
        cluster.pass(1);
        let pods = cluster.list(PODS);
        assert!((2..=3).contains(&pods.len()), "{} Pods", pods.len());
    }
    let images: Vec<String> = pods(&cluster).into_iter().map(|(_, image)| image).collect();
    assert_eq!(images, ["agent:2"; 2]);
    cluster.is_quiet();
}

#[test]
fn pod_is_replaced_when_it_is_deleted_with_the_strategy_on_delete() {
    let cluster = Cluster::new();
    let strategy = json!({"type": "OnDelete"});
    cluster.apply(&daemon_set("agent:1", &strategy));
    cluster.pass(5);
    cluster.apply(&daemon_set("agent:2", &strategy));
    cluster.pass(10);
    assert_eq!(pods(&cluster)[0].1, "agent:1");
    assert_eq!(status(&cluster)["updatedNumberScheduled"], Value::Null);
    let name = cluster.list(PODS)[0]["metadata"]["name"].as_str().unwrap().to_owned();
    cluster.send("DELETE", &format!("{PODS}/{name}"), &Value::Null);
    cluster.pass(10);
    assert_eq!(pods(&cluster)[0].1, "agent:2");
    assert_eq!(status(&cluster)["updatedNumberScheduled"], 1);
}

#[test]
fn namespace_has_its_account_and_certificates_and_gets_them_again() {
    let cluster = Cluster::new();
    let namespace = json!({"metadata": {"name": "new"}});
    cluster.send("POST", "/api/v1/namespaces", &namespace);
    cluster.pass(1);
    let account = "/api/v1/namespaces/new/serviceaccounts/default";
    let certificates = "/api/v1/namespaces/new/configmaps/kube-root-ca.crt";
    let uid = |path: &str| cluster.get(path).map(|one| one["metadata"]["uid"].clone());
    let pem = cluster.get(certificates).unwrap()["data"]["ca.crt"].clone();
    assert!(pem.as_str().unwrap().starts_with("-----BEGIN CERTIFICATE-----\n"), "{pem}");
    for path in [account, certificates] {
        let before = uid(path).unwrap();
        cluster.send("DELETE", path, &Value::Null);
        cluster.pass(1);
        assert!(uid(path).is_some_and(|after| after != before), "{path} is not there again");
    }
    cluster.simulator.set_root_ca("other");
    cluster.pass(1);
    assert_eq!(cluster.get(certificates).unwrap()["data"]["ca.crt"], "other");
    cluster.send("DELETE", "/api/v1/namespaces/new", &Value::Null);
    cluster.pass(1);
    assert_eq!(cluster.get("/api/v1/namespaces/new"), None);
    assert_eq!(uid(account), None);
    assert!(uid("/api/v1/namespaces/default/serviceaccounts/default").is_some());
}
