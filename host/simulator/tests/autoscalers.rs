//! HorizontalPodAutoscalers, in virtual time.

#![allow(clippy::unwrap_used, reason = "a test may fail by it")]

// Each test file uses a part of it.
#[allow(dead_code)]
mod cluster;

use cluster::Cluster;
use innkeeper_simulator::{PodRule, PodScript};
use serde_json::{Value, json};

const DEPLOYMENT: &str = "/apis/apps/v1/namespaces/default/deployments/web";
const NEW: &str = "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers";
const OLD: &str = "/apis/autoscaling/v1/namespaces/default/horizontalpodautoscalers";

/// A cluster with a Deployment of one Pod and an autoscaler of up to six, for half of the load.
fn cluster() -> Cluster {
    let cluster = Cluster::new();
    cluster.apply(&json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"},
        "spec": {"selector": {"matchLabels": {"app": "web"}}, "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "web", "image": "web:1"}]}}},
    }));
    let scaler = json!({"metadata": {"name": "web"}, "spec": {
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
        "maxReplicas": 6, "targetCPUUtilizationPercentage": 50}});
    let (code, answer) = cluster.send("POST", OLD, &scaler);
    assert_eq!(code, 201, "{answer:#}");
    cluster
}

fn load(cluster: &Cluster, percent: i64) {
    let mut rule = PodRule::new("web:*");
    rule.cpu_utilization = Some(percent);
    cluster.simulator.script_pods(PodScript { rules: vec![rule], ..PodScript::default() });
}

fn replicas(cluster: &Cluster) -> Value {
    cluster.get(DEPLOYMENT).unwrap()["spec"]["replicas"].clone()
}

fn conditions(cluster: &Cluster) -> Vec<(String, String)> {
    let scaler = cluster.get(&format!("{NEW}/web")).unwrap();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let conditions = scaler["status"]["conditions"].as_array().unwrap().iter();
    conditions.map(|one| (text(&one["type"]), text(&one["reason"]))).collect()
}

#[test]
fn deployment_follows_the_load_within_the_bounds_and_shrinks_later() {
    let cluster = cluster();
    cluster.pass(60);
    assert_eq!(replicas(&cluster), 1, "an unknown load changed the Deployment");
    let unknown = ("ScalingActive".to_owned(), "FailedGetResourceMetric".to_owned());
    assert!(conditions(&cluster).contains(&unknown));
    load(&cluster, 100);
    cluster.pass(20);
    assert_eq!(replicas(&cluster), 2);
    cluster.pass(60);
    assert_eq!(replicas(&cluster), 6);
    let limited = ("ScalingLimited".to_owned(), "TooManyReplicas".to_owned());
    assert!(conditions(&cluster).contains(&limited));
    load(&cluster, 20);
    cluster.pass(120);
    assert_eq!(replicas(&cluster), 6, "the Deployment shrank before the load was stable");
    cluster.pass(1000);
    assert_eq!(replicas(&cluster), 1);
    let status = cluster.get(&format!("{OLD}/web")).unwrap()["status"].clone();
    assert_eq!(
        (&status["currentReplicas"], &status["currentCPUUtilizationPercentage"]),
        (&json!(1), &json!(20))
    );
}

#[test]
fn huge_load_scales_to_the_maximum() {
    let cluster = cluster();
    load(&cluster, i64::MAX);
    cluster.pass(100);
    assert_eq!(replicas(&cluster), 6);
    load(&cluster, i64::MIN);
    cluster.pass(1000);
    assert_eq!(replicas(&cluster), 1);
}

#[test]
fn autoscaler_is_served_in_both_versions() {
    let cluster = cluster();
    let new = cluster.get(&format!("{NEW}/web")).unwrap();
    assert_eq!(new["apiVersion"], "autoscaling/v2");
    let target = &new["spec"]["metrics"][0]["resource"]["target"];
    assert_eq!(target["averageUtilization"], 50, "{new:#}");
    let old = json!({"apiVersion": "autoscaling/v1", "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "web"}, "spec": {"targetCPUUtilizationPercentage": 70}});
    let path = format!("{OLD}/web?fieldManager=test&force=true");
    let (code, answer) = cluster.send("PATCH", &path, &old);
    assert_eq!((code, &answer["apiVersion"]), (200, &json!("autoscaling/v1")), "{answer:#}");
    assert_eq!(answer["spec"]["targetCPUUtilizationPercentage"], 70);
    let new = cluster.get(&format!("{NEW}/web")).unwrap();
    assert_eq!(new["spec"]["metrics"][0]["resource"]["target"]["averageUtilization"], 70);
    let list = cluster.list(OLD);
    assert_eq!(list.len(), 1);
    assert_eq!(list[0]["spec"]["targetCPUUtilizationPercentage"], 70, "{:#}", list[0]);
    cluster.send("DELETE", &format!("{OLD}/web"), &Value::Null);
    assert_eq!(cluster.list(NEW).len(), 0);
}
