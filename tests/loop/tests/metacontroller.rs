//! What the guests of guests/examples/metacontroller cost: the requests by which the host writes
//! objects and statuses for a new primary and for a change. Their README says the same.

#![allow(clippy::unwrap_used, reason = "a test may fail by it")]

mod running;

use std::time::Duration;

use innkeeper_lab::{Guests, Lab, Modules, Setup};
use running::{block_on, component};
use serde_json::{Value, json};

/// The guests of the example of Vitess.
const VITESS: [&str; 4] = ["vitess-cluster", "vitess-cell", "vitess-keyspace", "vitess-shard"];

/// A guest, or the guests of Vitess, and what happens.
struct Example {
    guest: &'static str,
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

/// The module of the guest's scenarios, with its component, and with the account of the host, by
/// which [`requests`] knows its deletes.
fn module(guest: &str) -> Value {
    let mut module: Value =
        serde_yaml_ng::from_str(&read(&format!("tests/scenarios/modules/{guest}.yaml"))).unwrap();
    module["spec"]["source"] = json!({ "file": component(guest) });
    module["spec"].as_object_mut().unwrap().remove("serviceAccountName");
    module
}

/// Reads a file of the examples.
fn read(path: &str) -> String {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../guests/examples/metacontroller");
    std::fs::read_to_string(format!("{folder}/{path}")).unwrap()
}

async fn measure(guests: &Guests, example: &Example) -> (usize, usize) {
    let mut setup = Setup::new(1);
    let names = if example.guest == "vitess" { &VITESS[..] } else { &[example.guest] };
    setup.modules = Modules::Given(names.iter().map(|name| module(name)).collect());
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

/// A change of an annotation.
fn annotated(key: &str, value: &Value) -> Value {
    json!({ "metadata": { "annotations": { key: value } } })
}

/// A template of pods.
fn template() -> Value {
    json!({ "metadata": { "labels": { "app": "web" } },
        "spec": { "containers": [{ "name": "main", "image": "example.com/web:1" }] } })
}

/// Guests whose primaries belong to others.
fn decorators() -> Vec<Example> {
    let set = json!({ "apiVersion": "apps/v1", "kind": "StatefulSet",
        "metadata": { "name": "web", "annotations": {
            "service-per-pod-label": "statefulset.kubernetes.io/pod-name",
            "service-per-pod-ports": "80:80" } },
        "spec": { "replicas": 3, "serviceName": "web", "template": template(),
            "selector": { "matchLabels": { "app": "web" } } } });
    let pod = json!({ "apiVersion": "v1", "kind": "Pod",
        "metadata": { "name": "web", "annotations": { "pod-name-label": "who" } },
        "spec": template()["spec"] });
    let definition = json!({ "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": { "name": "my-tests.ctl.rlg.io",
            "annotations": { "enable-default-roles": "yes" } },
        "spec": { "group": "ctl.rlg.io", "scope": "Cluster",
            "names": { "plural": "my-tests", "singular": "my-test", "kind": "MyTest" },
            "versions": [{ "name": "v1", "served": true, "storage": true, "schema": {
                "openAPIV3Schema": { "type": "object" } } }] } });
    let role = json!({ "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": { "name": "example", "annotations": { "default-service-account-binding": "" } },
        "rules": [] });
    let example =
        |guest, given, change, requests| Example { guest, given: vec![given], change, requests };
    let opt_out = |annotation| annotated(annotation, &Value::Null);
    vec![
        example("service-per-pod", set, json!({ "spec": { "replicas": 4 } }), (3, 1)),
        example("pod-name-label", pod, annotated("pod-name-label", &"name".into()), (1, 1)),
        example("crd-roles", definition, opt_out("enable-default-roles"), (1, 1)),
        example("clustered-parent", role, opt_out("default-service-account-binding"), (1, 1)),
    ]
}

/// Guests that read ConfigMaps and Namespaces.
fn readers() -> Vec<Example> {
    let primary = |kind: &str, spec: Value| {
        json!({ "apiVersion": "examples.metacontroller.io/v1alpha1", "kind": kind,
            "metadata": { "name": "example" }, "spec": spec })
    };
    let namespace =
        json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": "shop" } });
    let source = json!({ "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": { "name": "settings", "namespace": "default" }, "data": { "some": "value" } });
    let spec = json!({ "sourceName": "settings", "sourceNamespace": "default" });
    let global = primary("GlobalConfigMap", spec);
    let shared = primary("SharedConfigMap", json!({ "sourceName": "settings" }));
    let spec = json!({ "sourceNamespace": "default", "sourceLabels": { "app": "a" } });
    let maps = primary("ConfigMapList", spec);
    let spec = json!({ "sourceName": "settings", "sourceNamespace": "default",
        "targetNamespaces": ["shop", "kube-public"] });
    let mut propagation = primary("ConfigMapPropagation", spec);
    propagation["metadata"]["labels"] = json!({ "version": "v1" });
    let namespaces = primary("NamespaceList", json!({}));
    let example = |guest, given, change, requests| Example { guest, given, change, requests };
    let given = |primary| vec![namespace.clone(), primary, source.clone()];
    let data = json!({ "data": { "some": "other" } });
    let labels = json!({ "spec": { "sourceLabels": { "app": "b" } } });
    let secret = json!({ "apiVersion": "v1", "kind": "Secret",
        "metadata": { "name": "shareable", "namespace": "omega" },
        "data": { "some": "dmFsdWUK" } });
    let mut target = namespace.clone();
    target["metadata"]["labels"] = json!({ "propagate": "true" });
    let spec = json!({ "sourceName": "shareable", "sourceNamespace": "omega",
        "targetNamespaceLabelSelector": { "matchLabels": { "propagate": "true" } } });
    let omega = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": "omega" } });
    let secrets = vec![omega, target, primary("SecretPropagation", spec), secret];
    let rotated = json!({ "data": { "some": "b3RoZXIK" } });
    let selector = json!({ "spec": { "labelSelector": { "matchLabels": { "a": "b" } } } });
    vec![
        example("global-config-map", given(global), data.clone(), (5, 4)),
        example("shared-config-map", given(shared), data.clone(), (6, 4)),
        example("config-map-propagation", given(propagation), data, (3, 2)),
        example("secret-propagation", secrets, rotated, (2, 1)),
        example("config-map-list", vec![maps], labels, (2, 1)),
        example("namespace-list", vec![namespaces], selector, (2, 2)),
    ]
}

/// Guests that run pods.
fn workloads() -> Vec<Example> {
    let primary = |kind: &str, group: &str, spec: Value| {
        json!({ "apiVersion": format!("{group}/v1"), "kind": kind,
            "metadata": { "name": "example" }, "spec": spec })
    };
    let mut template = template();
    let daemon = json!({ "template": template });
    template["spec"]["restartPolicy"] = "Never".into();
    let indexed = json!({ "completions": 3, "template": template });
    let web = json!({ "replicas": 2, "selector": { "matchLabels": { "app": "web" } },
        "template": self::template(),
        "service": { "metadata": { "name": "site" }, "spec": { "ports": [{ "port": 80 }] } } });
    let cats = json!({ "replicas": 2, "serviceName": "web", "template": self::template(),
        "selector": { "matchLabels": { "app": "web" } } });
    let new_label =
        json!({ "spec": { "template": { "metadata": { "labels": { "new": "label" } } } } });
    vec![
        Example {
            guest: "cat-set",
            given: vec![primary("CatSet", "ctl.enisoc.com", cats)],
            change: new_label.clone(),
            requests: (7, 14),
        },
        Example {
            guest: "update-strategy",
            given: vec![primary(
                "UpdateStrategyDemo",
                "ctl.example.com",
                json!({ "method": "Recreate", "configData": "v1" }),
            )],
            change: json!({ "spec": { "configData": "v2" } }),
            requests: (2, 4),
        },
        Example {
            guest: "blue-green",
            given: vec![primary("BlueGreenDeployment", "ctl.enisoc.com", web)],
            change: new_label,
            requests: (4, 5),
        },
        Example {
            guest: "daemon-job",
            given: vec![primary("DaemonJob", "ctl.example.com", daemon)],
            change: json!({ "spec": { "pauseImage": "example.com/pause:1" } }),
            requests: (4, 1),
        },
        Example {
            guest: "indexed-job",
            given: vec![primary("IndexedJob", "ctl.enisoc.com", indexed)],
            change: json!({ "spec": { "parallelism": 2 } }),
            requests: (3, 3),
        },
    ]
}

/// The guests of Vitess, with two cells and two shards of two tablets.
fn vitess() -> Example {
    let keyspaces = |image: &str| {
        let claim = json!({ "accessModes": ["ReadWriteOnce"],
            "resources": { "requests": { "storage": "1Gi" } } });
        json!([{ "name": "main", "cells": ["zone1"],
            "shards": [{ "keyRange": { "end": "80" } }, { "keyRange": { "start": "80" } }],
            "tablets": { "defaults": { "image": image, "volumeClaim": claim },
                "masterEligible": { "replicas": 2 } } }])
    };
    let server = json!({ "image": "example.com/vitess:1" });
    let cluster = json!({ "apiVersion": "vitess.io/v1alpha1", "kind": "VitessCluster",
        "metadata": { "name": "example" }, "spec": {
            "selector": { "matchLabels": { "app": "vitess" } },
            "template": { "metadata": { "labels": { "app": "vitess" } } },
            "cells": [{ "name": "global", "vtctld": server }, { "name": "zone1", "vtgate": server }],
            "keyspaces": keyspaces("example.com/vitess:1") } });
    Example {
        guest: "vitess",
        given: vec![cluster],
        change: json!({ "spec": { "keyspaces": keyspaces("example.com/vitess:2") } }),
        requests: (35, 41),
    }
}

#[test]
fn examples_cost_so_many_requests_for_a_new_object_and_a_change() {
    let guests = Guests::new().unwrap();
    let mut measured = Vec::new();
    for example in decorators().into_iter().chain(readers()).chain(workloads()).chain([vitess()]) {
        let requests = block_on(measure(&guests, &example));
        measured.push((example.guest, requests, example.requests));
    }
    let differs = |(_, requests, expected): &&(_, _, _)| requests != expected;
    let different: Vec<_> = measured.iter().filter(differs).collect();
    assert!(different.is_empty(), "guest, measured, expected: {different:#?}");

    let readme = read("README.md");
    for (guest, (new, change), _) in measured {
        let row = readme.lines().find(|line| line.starts_with(&format!("| [`{guest}`]")));
        let row = row.unwrap_or_default();
        assert!(row.ends_with(&format!("| {new} | {change} |")), "{new} and {change}: {row}");
    }
}
