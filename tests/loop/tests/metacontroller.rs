//! What the guests of guests/examples/metacontroller cost: the requests by which the host writes
//! objects and statuses for a new primary and for a change. Their README says the same.

#![allow(clippy::unwrap_used, reason = "a test may fail by it")]

mod running;

use std::time::Duration;

use innkeeper_lab::{Guests, Lab, Modules, Setup};
use running::{block_on, component};
use serde_json::{Value, json};

/// A guest, the group of the definition that it installs, and what happens.
struct Example {
    guest: &'static str,
    group: &'static str,
    given: Vec<Value>,
    /// Merged into the last of them.
    change: Value,
    /// The expected requests for the given objects and for the change.
    requests: (usize, usize),
}

/// Returns the number of requests in a part of the log by which the host wrote objects.
fn requests(log: &[String]) -> usize {
    let is_of_the_host = |line: &&String| {
        let is_apply = line.contains("(\"fieldManager\", \"innkeeper");
        // Nobody else deletes as the admin, who the host is here.
        let is_delete = line.starts_with("DELETE") && line.contains(" admin ");
        (is_apply || is_delete) && !line.contains("/apis/innkeeper.dev/")
    };
    log.iter().filter(is_of_the_host).count()
}

async fn measure(guests: &Guests, example: &Example) -> (usize, usize) {
    let name = example.guest;
    let mut spec = json!({ "source": { "file": component(name) } });
    if !example.group.is_empty() {
        spec["allowedCRDGroups"] = json!([example.group]);
    }
    let module = json!({ "apiVersion": "innkeeper.dev/v1alpha1", "kind": "Module",
        "metadata": { "name": name }, "spec": spec });
    let mut setup = Setup::new(1);
    setup.modules = Modules::Given(vec![module]);
    setup.keep_log = true;
    let lab = Lab::start(guests, setup).await.unwrap();
    lab.serves(Duration::from_mins(1)).await.unwrap();
    lab.pass(Duration::from_mins(1)).await;

    let start = lab.simulator().log().len();
    for object in &example.given {
        lab.api().apply(object, "default").await.unwrap();
    }
    lab.pass(Duration::from_mins(2)).await;
    let settled = lab.simulator().log().len();
    let mut changed = example.given.last().unwrap().clone();
    merge(&mut changed, &example.change);
    lab.api().apply(&changed, "default").await.unwrap();
    lab.pass(Duration::from_mins(2)).await;
    let log = lab.simulator().log();
    assert!(lab.end().await, "the operator ends on request");
    (requests(&log[start..settled]), requests(&log[settled..]))
}

/// Merges a JSON merge patch (RFC 7396), and keeps null for the API server.
fn merge(into: &mut Value, change: &Value) {
    match change {
        Value::Object(members) => {
            for (key, value) in members {
                merge(&mut into[key], value);
            }
        }
        other => *into = other.clone(),
    }
}

fn pod(name: &str) -> Value {
    json!({ "apiVersion": "v1", "kind": "Pod", "metadata": { "name": name },
        "spec": { "containers": [{ "name": "main", "image": "example.com/web:1" }] } })
}

fn examples() -> Vec<Example> {
    let annotated =
        |key: &str, value: &Value| json!({ "metadata": { "annotations": { key: value } } });
    let mut labelled = pod("web");
    merge(&mut labelled, &annotated("pod-name-label", &"who".into()));
    let template = json!({ "metadata": { "labels": { "app": "web" } },
        "spec": { "containers": [{ "name": "main", "image": "example.com/web:1" }] } });
    let set = json!({ "apiVersion": "apps/v1", "kind": "StatefulSet",
        "metadata": { "name": "web", "annotations": {
            "service-per-pod-label": "statefulset.kubernetes.io/pod-name",
            "service-per-pod-ports": "80:80" } },
        "spec": { "replicas": 3, "serviceName": "web", "template": template,
            "selector": { "matchLabels": { "app": "web" } } } });
    let examples = "examples.metacontroller.io";
    let listed = json!({ "apiVersion": format!("{examples}/v1alpha1"), "kind": "NamespaceList",
        "metadata": { "name": "all" }, "spec": {} });
    let maps = json!({ "apiVersion": format!("{examples}/v1alpha1"), "kind": "ConfigMapList",
        "metadata": { "name": "listed" },
        "spec": { "sourceNamespace": "default", "sourceLabels": { "app": "a" } } });
    let source = json!({ "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": { "name": "settings", "namespace": "default" }, "data": { "some": "value" } });
    let global = json!({ "apiVersion": format!("{examples}/v1alpha1"), "kind": "GlobalConfigMap",
        "metadata": { "name": "settings" },
        "spec": { "sourceName": "settings", "sourceNamespace": "default" } });
    let namespace =
        json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": "shop" } });
    let role = json!({ "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": { "name": "example", "annotations": { "default-service-account-binding": "" } },
        "rules": [] });
    let definition = json!({ "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": { "name": "my-tests.ctl.rlg.io",
            "annotations": { "enable-default-roles": "yes" } },
        "spec": { "group": "ctl.rlg.io", "scope": "Cluster",
            "names": { "plural": "my-tests", "singular": "my-test", "kind": "MyTest" },
            "versions": [{ "name": "v1", "served": true, "storage": true, "schema": {
                "openAPIV3Schema": { "type": "object" } } }] } });
    let daemon = json!({ "apiVersion": "ctl.example.com/v1", "kind": "DaemonJob",
        "metadata": { "name": "once" }, "spec": { "template": template } });
    let mut indexed = json!({ "apiVersion": "ctl.enisoc.com/v1", "kind": "IndexedJob",
        "metadata": { "name": "count" }, "spec": { "completions": 3, "template": template } });
    indexed["spec"]["template"]["spec"]["restartPolicy"] = "Never".into();
    let example =
        |guest, group, given, change, requests| Example { guest, group, given, change, requests };
    vec![
        example("service-per-pod", "", vec![set], json!({ "spec": { "replicas": 4 } }), (3, 1)),
        example(
            "pod-name-label",
            "",
            vec![labelled],
            annotated("pod-name-label", &"name".into()),
            (1, 1),
        ),
        example(
            "global-config-map",
            examples,
            vec![namespace, global, source],
            json!({ "data": { "some": "other" } }),
            (5, 4),
        ),
        example(
            "config-map-list",
            examples,
            vec![maps],
            json!({ "spec": { "sourceLabels": { "app": "b" } } }),
            (2, 1),
        ),
        example(
            "namespace-list",
            examples,
            vec![listed],
            json!({ "spec": { "labelSelector": { "matchLabels": { "a": "b" } } } }),
            (2, 2),
        ),
        example(
            "crd-roles",
            "",
            vec![definition],
            annotated("enable-default-roles", &Value::Null),
            (1, 1),
        ),
        example(
            "clustered-parent",
            "",
            vec![role],
            annotated("default-service-account-binding", &Value::Null),
            (1, 1),
        ),
        example(
            "daemon-job",
            "ctl.example.com",
            vec![daemon],
            json!({ "spec": { "pauseImage": "example.com/pause:1" } }),
            (4, 1),
        ),
        example(
            "indexed-job",
            "ctl.enisoc.com",
            vec![indexed],
            json!({ "spec": { "parallelism": 2 } }),
            (3, 3),
        ),
    ]
}

#[test]
fn examples_cost_so_many_requests_for_a_new_object_and_a_change() {
    let guests = Guests::new().unwrap();
    let mut measured = Vec::new();
    for example in examples() {
        let requests = block_on(measure(&guests, &example));
        measured.push((example.guest, requests, example.requests));
    }
    let differs = |(_, requests, expected): &&(_, _, _)| requests != expected;
    let different: Vec<_> = measured.iter().filter(differs).collect();
    assert!(different.is_empty(), "guest, measured, expected: {different:#?}");

    let path = "../../guests/examples/metacontroller/README.md";
    let readme = std::fs::read_to_string(format!("{}/{path}", env!("CARGO_MANIFEST_DIR"))).unwrap();
    for (guest, (new, change), _) in measured {
        let row = readme.lines().find(|line| line.starts_with(&format!("| [`{guest}`]")));
        let row = row.unwrap_or_default();
        assert!(row.ends_with(&format!("| {new} | {change} |")), "{new} and {change}: {row}");
    }
}
