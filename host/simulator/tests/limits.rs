//! What a hostile client sends costs the simulator little.

#![allow(clippy::unwrap_used, reason = "a test may fail by it")]

use bytes::Bytes;
use http::Request;
use innkeeper_simulator::{Body, Simulator};
use serde_json::{Value, json};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

fn simulator() -> Simulator {
    let simulator = Simulator::new(1, "2026-01-01T00:00:00Z".parse().unwrap());
    let (code, _) = send(&simulator, ("POST", MAPS), "application/json", &map("a").to_string());
    assert_eq!(code, 201);
    simulator
}

fn map(name: &str) -> Value {
    json!({"metadata": {"name": name}, "data": {"a": "x"}})
}

fn open(
    simulator: &Simulator,
    (method, path): (&str, &str),
    kind: &str,
    body: &str,
) -> (u16, Body) {
    let request = Request::builder().method(method).uri(path).header("content-type", kind);
    let response = simulator.request(request.body(Bytes::from(body.to_owned())).unwrap());
    (response.status().as_u16(), response.into_body())
}

fn send(simulator: &Simulator, to: (&str, &str), kind: &str, body: &str) -> (u16, Value) {
    let (code, mut body) = open(simulator, to, kind, body);
    (code, serde_json::from_slice(&body.try_next().unwrap_or_default()).unwrap_or_default())
}

#[test]
fn json_patch_that_copies_again_and_again_is_refused() {
    let simulator = simulator();
    let copies =
        (0..40).map(|n| json!({"op": "copy", "from": "/data", "path": format!("/data/k{n}")}));
    let start = json!({"op": "add", "path": "/data", "value": {"a": "x"}});
    let patch: Vec<Value> = [start].into_iter().chain(copies).collect();
    let to = format!("{MAPS}/a");
    let kind = "application/json-patch+json";
    let (code, body) = send(&simulator, ("PATCH", &to), kind, &json!(patch).to_string());
    assert_eq!(code, 422, "{body}");
    assert!(body["message"].as_str().unwrap().contains("size increase of copy"), "{body}");
    let many = vec![json!({"op": "test", "path": "/data/a", "value": "x"}); 10_001];
    let (code, body) = send(&simulator, ("PATCH", &to), kind, &json!(many).to_string());
    assert_eq!(code, 413, "{body}");
}

#[test]
fn yaml_with_many_brackets_is_refused_and_json_with_as_many_is_not() {
    let simulator = simulator();
    let to = format!("{MAPS}/a?fieldManager=m&force=true");
    let to = ("PATCH", to.as_str());
    let kind = "application/apply-patch+yaml";
    for text in ["[".repeat(100_000), "[\"]\",".repeat(40_000)] {
        let (code, body) = send(&simulator, to, kind, &format!("data: {text}"));
        assert_eq!(code, 400, "{body}");
    }
    let texts: serde_json::Map<String, Value> =
        (0..20_000).map(|n| (format!("k{n}"), json!("[{"))).collect();
    let whole = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"},
        "data": texts});
    let (code, body) = send(&simulator, to, kind, &whole.to_string());
    assert_eq!(code, 200, "{}", body["message"]);
}

#[test]
fn watch_from_the_greatest_version_has_no_event_of_the_past() {
    let simulator = simulator();
    let path = format!("{MAPS}?watch=true&resourceVersion={}", u64::MAX);
    let (_, mut body) = open(&simulator, ("GET", &path), "", "");
    let first = body.try_next().map(|line| serde_json::from_slice::<Value>(&line).unwrap());
    assert!(first.is_none_or(|event| event["type"] != "ADDED"));
}

#[test]
fn watch_whose_client_does_not_read_ends() {
    let simulator = simulator();
    let (_, mut body) = open(&simulator, ("GET", &format!("{MAPS}?watch=true")), "", "");
    let large = "x".repeat(900_000);
    for number in 0..40 {
        let whole = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"},
            "data": {"text": large, "number": number.to_string()}});
        let (code, _) =
            send(&simulator, ("PUT", &format!("{MAPS}/a")), "application/json", &whole.to_string());
        assert_eq!(code, 200);
    }
    let mut events = 0;
    while body.try_next().is_some() {
        events += 1;
    }
    assert!(events < 40, "{events} events waited");
}

#[test]
fn user_with_letters_beyond_ascii_is_that_user() {
    let simulator = simulator();
    let request = Request::builder().uri(MAPS).header("impersonate-user", "josé".as_bytes());
    let response = simulator.request(request.body(Bytes::new()).unwrap());
    assert_eq!(response.status().as_u16(), 403, "the user may not list");
}
