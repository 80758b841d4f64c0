//! A backup of etcd, restored with and without a greater revision.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail by it")]

mod cluster;

use bytes::Bytes;
use cluster::Cluster;
use http::Request;
use innkeeper_simulator::Body;
use serde_json::{Value, json};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

fn map(cluster: &Cluster, name: &str, value: &str) {
    cluster.apply(&json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name},
        "data": {"key": value}}));
}

fn value(cluster: &Cluster, name: &str) -> Option<Value> {
    cluster.get(&format!("{MAPS}/{name}")).map(|object| object["data"]["key"].clone())
}

fn watch(cluster: &Cluster, version: u64) -> Body {
    let uri = format!("{MAPS}?watch=true&resourceVersion={version}");
    cluster.simulator.request(Request::get(uri).body(Bytes::new()).unwrap()).into_body()
}

fn next(body: &mut Body) -> Option<Value> {
    body.try_next().map(|line| serde_json::from_slice(&line).unwrap())
}

#[test]
fn restored_cluster_has_the_objects_of_the_backup_and_no_open_watches() {
    let cluster = Cluster::new();
    map(&cluster, "kept", "early");
    map(&cluster, "deleted", "early");
    let uid = cluster.get(&format!("{MAPS}/kept")).unwrap()["metadata"]["uid"].clone();
    let backup = cluster.simulator.backup();
    map(&cluster, "kept", "late");
    map(&cluster, "later", "late");
    cluster.send("DELETE", &format!("{MAPS}/deleted"), &Value::Null);
    let _watch = watch(&cluster, 0);
    assert_eq!(cluster.simulator.watchers(), 1);

    cluster.simulator.restore(&backup, true);

    assert_eq!(cluster.simulator.watchers(), 0);
    assert_eq!(value(&cluster, "kept"), Some(json!("early")));
    assert_eq!(value(&cluster, "deleted"), Some(json!("early")));
    assert_eq!(value(&cluster, "later"), None);
    assert_eq!(cluster.get(&format!("{MAPS}/kept")).unwrap()["metadata"]["uid"], uid);
}

#[test]
fn bumped_restore_refuses_watches_from_before_and_keeps_the_versions_of_objects() {
    let cluster = Cluster::new();
    map(&cluster, "a", "early");
    let version = |object: &Value| -> u64 {
        object["metadata"]["resourceVersion"].as_str().unwrap().parse().unwrap()
    };
    let early = version(&cluster.get(&format!("{MAPS}/a")).unwrap());
    let backup = cluster.simulator.backup();
    map(&cluster, "a", "late");
    let before = cluster.simulator.version();

    cluster.simulator.restore(&backup, true);

    assert_eq!(version(&cluster.get(&format!("{MAPS}/a")).unwrap()), early);
    let restored = cluster.simulator.version();
    assert!(restored > before + 1_000_000, "{restored}");
    assert_eq!(next(&mut watch(&cluster, before)).unwrap()["object"]["code"], 410);
    let mut since = watch(&cluster, restored);
    map(&cluster, "a", "new");
    assert_eq!(next(&mut since).unwrap()["object"]["data"]["key"], "new");
}

#[test]
fn restore_without_a_bump_gives_versions_again_and_a_watch_from_before_sees_nothing_until_then() {
    let cluster = Cluster::new();
    map(&cluster, "a", "0");
    let backup = cluster.simulator.backup();
    let at_backup = cluster.simulator.version();
    map(&cluster, "a", "1");
    map(&cluster, "a", "2");
    let before = cluster.simulator.version();

    cluster.simulator.restore(&backup, false);

    assert_eq!(cluster.simulator.version(), at_backup);
    let mut watch = watch(&cluster, before);
    map(&cluster, "a", "3");
    map(&cluster, "a", "4");
    assert_eq!(cluster.simulator.version(), before);
    assert_eq!(next(&mut watch), None);
    map(&cluster, "a", "5");
    assert_eq!(next(&mut watch).unwrap()["object"]["data"]["key"], "5");
}

#[test]
fn time_goes_on_after_a_restored_backup() {
    let cluster = Cluster::new();
    let backup = cluster.simulator.backup();
    cluster.pass(60);
    cluster.simulator.restore(&backup, true);
    let passed = cluster.simulator.now().duration_since(Cluster::start());
    assert_eq!(passed.as_secs(), 60);
}

#[test]
fn kinds_and_controllers_go_back_with_the_objects() {
    let cluster = Cluster::new();
    let backup = cluster.simulator.backup();
    let definition = json!({"apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition", "metadata": {"name": "foos.x.dev"},
        "spec": {"group": "x.dev", "scope": "Namespaced",
            "names": {"plural": "foos", "kind": "Foo"},
            "versions": [{"name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object"}}}]}});
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    assert_eq!(cluster.send("POST", definitions, &definition).0, 201);
    let deployment = json!({"apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "web"},
        "spec": {"replicas": 2, "selector": {"matchLabels": {"app": "web"}},
            "template": {"metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [{"name": "web", "image": "web:1"}]}}}});
    cluster.apply(&deployment);
    cluster.pass(30);
    let with_both = cluster.simulator.backup();
    let foos = || cluster.send("GET", "/apis/x.dev/v1/foos", &Value::Null).0;
    let pods = || cluster.list("/api/v1/namespaces/default/pods").len();
    assert_eq!((foos(), pods()), (200, 2));

    cluster.simulator.restore(&backup, true);
    cluster.pass(5);
    assert_eq!((foos(), pods()), (404, 0));

    cluster.simulator.restore(&with_both, true);
    cluster.pass(5);
    assert_eq!((foos(), pods()), (200, 2));
    cluster.is_quiet();
    let path = "/apis/apps/v1/namespaces/default/deployments/web";
    cluster.send("DELETE", path, &Value::Null);
    cluster.pass(60);
    assert_eq!(pods(), 0);
}
