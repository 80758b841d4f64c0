//! Behaviour of a real API server that the differential test cannot cause: compaction, large
//! documents, Nodes, Events of the collector.

#![allow(clippy::unwrap_used, reason = "a test may fail by it")]

use bytes::Bytes;
use http::Request;
use innkeeper_simulator::Simulator;
use jiff::SignedDuration;
use serde_json::{Value, json};

const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";
const SECRETS: &str = "/api/v1/namespaces/default/secrets";

fn simulator() -> Simulator {
    Simulator::new(1, "2026-11-22T00:00:00Z".parse().unwrap())
}

fn send(simulator: &Simulator, method: &str, path: &str, body: &Value) -> (u16, Value) {
    let request =
        Request::builder().method(method).uri(path).header("content-type", "application/json");
    let body = if body.is_null() { Bytes::new() } else { Bytes::from(body.to_string()) };
    let response = simulator.request(request.body(body).unwrap());
    let code = response.status().as_u16();
    let text = response.into_body().try_next().unwrap_or_default();
    (code, serde_json::from_slice(&text).unwrap_or_default())
}

fn get(simulator: &Simulator, path: &str) -> (u16, Value) {
    send(simulator, "GET", path, &Value::Null)
}

fn make(simulator: &Simulator, path: &str, metadata: &Value) -> Value {
    let (code, made) = send(simulator, "POST", path, &json!({ "metadata": metadata }));
    assert_eq!(code, 201, "{made}");
    made
}

fn names(list: &Value) -> Vec<&str> {
    let items = list["items"].as_array().unwrap();
    items.iter().map(|item| item["metadata"]["name"].as_str().unwrap()).collect()
}

#[test]
fn expired_continue_token_offers_a_token_for_the_current_version() {
    let simulator = simulator();
    for name in ["a", "b", "c"] {
        make(&simulator, CONFIG_MAPS, &json!({ "name": name }));
    }
    let (_, first) = get(&simulator, &format!("{CONFIG_MAPS}?limit=1"));
    assert_eq!(names(&first), ["a"]);
    let version = first["metadata"]["resourceVersion"].as_str().unwrap();
    let next = first["metadata"]["continue"].as_str().unwrap();
    send(&simulator, "DELETE", &format!("{CONFIG_MAPS}/b"), &Value::Null);
    simulator.compact();
    let (code, gone) = get(&simulator, &format!("{CONFIG_MAPS}?limit=1&continue={next}"));
    assert_eq!((code, &gone["reason"]), (410, &json!("Expired")));
    assert!(gone["message"].as_str().unwrap().contains("use the continue token"), "{gone}");
    let next = gone["metadata"]["continue"].as_str().unwrap();
    let (code, rest) = get(&simulator, &format!("{CONFIG_MAPS}?limit=1&continue={next}"));
    assert_eq!((code, names(&rest)), (200, vec!["c"]));
    let exact = format!("{CONFIG_MAPS}?resourceVersion={version}&resourceVersionMatch=Exact");
    let (code, gone) = get(&simulator, &exact);
    assert_eq!(code, 410);
    assert_eq!(gone["message"], "The resourceVersion for the provided list is too old.");
}

#[test]
fn annotations_over_256_kib_in_total_are_refused() {
    let simulator = simulator();
    let most = "x".repeat(256 * 1024 - 2);
    make(&simulator, CONFIG_MAPS, &json!({"name": "a", "annotations": {"a": most, "b": ""}}));
    let more = json!({"metadata": {"name": "b", "annotations": {"a": most, "b": "x"}}});
    let (code, refused) = send(&simulator, "POST", CONFIG_MAPS, &more);
    assert_eq!(code, 422);
    let cause = &refused["details"]["causes"][0];
    assert_eq!(cause["field"], "metadata.annotations");
    assert_eq!(cause["message"], "Too long: may not be more than 262144 bytes");
}

#[test]
fn schedulable_node_is_selected_by_its_field() {
    let simulator = simulator();
    make(&simulator, "/api/v1/nodes", &json!({"name": "one"}));
    let (_, found) = get(&simulator, "/api/v1/nodes?fieldSelector=spec.unschedulable%3Dfalse");
    assert_eq!(names(&found), ["one"]);
    let (_, found) = get(&simulator, "/api/v1/nodes?fieldSelector=spec.unschedulable%3Dtrue");
    assert!(names(&found).is_empty());
}

#[test]
fn watch_with_timeout_zero_lasts_as_long_as_one_without_a_timeout() {
    let simulator = simulator();
    let request = Request::builder().uri(format!("{CONFIG_MAPS}?watch=true&timeoutSeconds=0"));
    let _body = simulator.request(request.body(Bytes::new()).unwrap()).into_body();
    simulator.advance(SignedDuration::from_secs(1799));
    assert_eq!(simulator.watchers(), 1);
    simulator.advance(SignedDuration::from_secs(1));
    assert_eq!(simulator.watchers(), 0);
}

#[test]
fn dependent_of_an_unserved_kind_is_collected_when_the_kind_is_served() {
    let simulator = simulator();
    let owner = json!({"apiVersion": "x.dev/v1", "kind": "Thing", "name": "a", "uid": "11111111-1111-4111-8111-111111111111"});
    make(&simulator, SECRETS, &json!({"name": "one", "ownerReferences": [owner]}));
    simulator.settle();
    assert_eq!(get(&simulator, &format!("{SECRETS}/one")).0, 200);
    let version = json!({"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object"}}});
    let definition = json!({
        "metadata": {"name": "things.x.dev"},
        "spec": {
            "group": "x.dev", "scope": "Namespaced", "versions": [version],
            "names": {"plural": "things", "singular": "thing", "kind": "Thing", "listKind": "ThingList"},
        },
    });
    let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    assert_eq!(send(&simulator, "POST", path, &definition).0, 201);
    simulator.settle();
    assert_eq!(get(&simulator, &format!("{SECRETS}/one")).0, 404);
}

#[test]
fn owner_in_another_namespace_is_reported_by_an_event() {
    let controllers = innkeeper_simulator::Controllers::all();
    let simulator = Simulator::with(1, "2026-11-22T00:00:00Z".parse().unwrap(), controllers);
    make(&simulator, "/api/v1/namespaces", &json!({"name": "other"}));
    let owner = make(&simulator, "/api/v1/namespaces/other/configmaps", &json!({"name": "a"}));
    let uid = owner["metadata"]["uid"].as_str().unwrap();
    let owner = json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "a", "uid": uid});
    make(&simulator, SECRETS, &json!({"name": "one", "ownerReferences": [owner]}));
    simulator.settle();
    assert_eq!(get(&simulator, &format!("{SECRETS}/one")).0, 404);
    let (_, events) = get(&simulator, "/api/v1/namespaces/default/events");
    let event = &events["items"][0];
    assert_eq!(event["reason"], "OwnerRefInvalidNamespace");
    assert_eq!(
        event["message"],
        format!(
            "ownerRef [v1/ConfigMap, namespace: default, name: a, uid: {uid}] does not exist in namespace \"default\""
        )
    );
    assert_eq!(event["source"]["component"], "garbage-collector-controller");
}
