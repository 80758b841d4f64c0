//! The forms in which clients accept objects: tables, and metadata alone.

#![allow(clippy::unwrap_used, reason = "a test may fail by it")]

use bytes::Bytes;
use http::Request;
use innkeeper_simulator::Simulator;
use serde_json::{Value, json};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const REVIEWS: &str = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";

fn simulator() -> Simulator {
    Simulator::new(1, "2026-11-22T00:00:00Z".parse().unwrap())
}

/// The media type of a form of objects in a version of `meta.k8s.io`.
fn form(name: &str, version: &str) -> String {
    format!("application/json;as={name};v={version};g=meta.k8s.io")
}

fn send(
    simulator: &Simulator,
    method: &str,
    path: &str,
    accept: &str,
    body: &Value,
) -> (u16, Value) {
    let body = if body.is_null() { Bytes::new() } else { Bytes::from(body.to_string()) };
    let request = Request::builder().method(method).uri(path).header("accept", accept);
    let request = request.header("content-type", "application/json").body(body).unwrap();
    let response = simulator.request(request);
    let code = response.status().as_u16();
    let text = response.into_body().try_next().unwrap_or_default();
    (code, serde_json::from_slice(&text).unwrap_or_default())
}

fn get(simulator: &Simulator, path: &str, accept: &str) -> Value {
    let (code, body) = send(simulator, "GET", path, accept, &Value::Null);
    assert_eq!(code, 200, "{body}");
    body
}

#[test]
fn table_and_metadata_have_the_version_that_the_client_accepts() {
    let simulator = simulator();
    send(&simulator, "POST", MAPS, "", &json!({"metadata": {"name": "a"}}));
    for version in ["v1", "v1beta1"] {
        let id = format!("meta.k8s.io/{version}");
        let table = form("Table", version);
        let one = get(&simulator, &format!("{MAPS}/a"), &table);
        let watched = get(&simulator, &format!("{MAPS}?watch=true"), &table);
        for table in [&one, &get(&simulator, MAPS, &table), &watched["object"]] {
            assert_eq!(table["kind"], "Table", "{table}");
            assert_eq!(table["apiVersion"], *id, "{table}");
            assert_eq!(table["rows"][0]["object"]["apiVersion"], *id, "{table}");
        }
        let one = get(&simulator, &format!("{MAPS}/a"), &form("PartialObjectMetadata", version));
        assert_eq!(one["apiVersion"], *id, "{one}");
        let list = get(&simulator, MAPS, &form("PartialObjectMetadataList", version));
        assert_eq!(list["apiVersion"], *id, "{list}");
        assert_eq!(list["items"][0]["apiVersion"], *id, "{list}");
    }
    let (code, _) = send(&simulator, "GET", MAPS, &form("Table", "v1beta2"), &Value::Null);
    assert_eq!(code, 406);
    for (path, kind) in [
        (MAPS.to_owned(), "PartialObjectMetadata"),
        (format!("{MAPS}/a"), "PartialObjectMetadataList"),
    ] {
        let (code, body) = send(&simulator, "GET", &path, &form(kind, "v1"), &Value::Null);
        assert_eq!((code, &body["reason"]), (406, &json!("NotAcceptable")), "{body}");
    }
}

#[test]
fn bookmark_of_a_table_has_its_annotation_in_the_row() {
    let simulator = simulator();
    let query = "watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
    for (accept, pointer) in [
        (form("Table", "v1"), "/object/rows/0/object/metadata/annotations"),
        (form("PartialObjectMetadata", "v1"), "/object/metadata/annotations"),
    ] {
        let event = get(&simulator, &format!("{MAPS}?{query}"), &accept);
        assert_eq!(event["type"], "BOOKMARK", "{event}");
        let annotations = event.pointer(pointer).unwrap_or(&Value::Null);
        assert_eq!(annotations["k8s.io/initial-events-end"], "true", "{event}");
    }
}

#[test]
fn written_object_is_shown_in_the_form_that_the_client_accepts() {
    let simulator = simulator();
    let object = json!({"metadata": {"name": "a"}, "data": {"k": "v"}});
    let (code, table) = send(&simulator, "POST", MAPS, &form("Table", "v1"), &object);
    assert_eq!((code, &table["kind"]), (201, &json!("Table")));
    assert_eq!(table["rows"][0]["cells"][0], "a", "{table}");
    let path = format!("{MAPS}/a");
    let metadata = form("PartialObjectMetadata", "v1");
    let (code, shown) = send(&simulator, "PUT", &path, &metadata, &object);
    assert_eq!((code, &shown["kind"]), (200, &json!("PartialObjectMetadata")));
    assert_eq!(shown.get("data"), None, "{shown}");
    let (code, status) = send(&simulator, "DELETE", &path, &metadata, &Value::Null);
    assert_eq!((code, &status["kind"]), (200, &json!("Status")));
}

#[test]
fn review_has_no_table() {
    let simulator = simulator();
    let review = json!({"spec": {"nonResourceAttributes": {"path": "/", "verb": "get"}}});
    let table = form("Table", "v1");
    let (code, status) = send(&simulator, "POST", REVIEWS, &table, &review);
    assert_eq!((code, &status["reason"]), (406, &json!("NotAcceptable")), "{status}");
    let otherwise = format!("{table},application/json");
    let (code, shown) = send(&simulator, "POST", REVIEWS, &otherwise, &review);
    assert_eq!((code, &shown["status"]["allowed"]), (201, &json!(true)), "{shown}");
    let metadata = form("PartialObjectMetadata", "v1");
    let (code, shown) = send(&simulator, "POST", REVIEWS, &metadata, &review);
    assert_eq!((code, &shown["kind"]), (201, &json!("PartialObjectMetadata")), "{shown}");
}
