//! Webhooks in process: their URLs and their reviews. `tests/differential` compares them with those
//! of a real server.

#![allow(clippy::unwrap_used, reason = "a test may fail by it")]

use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http::Request;
use innkeeper_simulator::{Simulator, WebhookReply};
use serde_json::{Value, json};

const CORE: &str = "/api/v1/namespaces/default";
const HOOKS: &str = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";

fn send(simulator: &Simulator, method: &str, path: &str, kind: &str, body: &Value) -> (u16, Value) {
    let body = if body.is_null() { Bytes::new() } else { Bytes::from(body.to_string()) };
    let request =
        Request::builder().method(method).uri(path).header("content-type", kind).body(body);
    let response = simulator.request(request.unwrap());
    let code = response.status().as_u16();
    let text = response.into_body().try_next().unwrap();
    (code, serde_json::from_slice(&text).unwrap())
}

fn post(simulator: &Simulator, path: &str, body: &Value) -> (u16, Value) {
    send(simulator, "POST", path, "application/json", body)
}

/// A simulator with a webhook behind a Service that allows all requests, and its calls: operation,
/// resource, subresource, version, name.
fn asked(resources: &[&str]) -> (Simulator, Arc<Mutex<Vec<String>>>) {
    let simulator = Simulator::new(1, "2026-11-22T00:00:00Z".parse().unwrap());
    let asked = Arc::new(Mutex::new(Vec::new()));
    let notes = asked.clone();
    simulator.webhook("https://judge.default.svc:8443/judge", move |review| {
        let request = &review["request"];
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        notes.lock().unwrap().push(format!(
            "{} {}/{} {} {}",
            text(&request["operation"]),
            text(&request["resource"]["resource"]),
            text(&request["subResource"]),
            text(&request["resource"]["version"]),
            text(&request["name"])
        ));
        Some(json!({"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1",
            "response": {"uid": request["uid"], "allowed": true}}))
    });
    let hook = json!({"name": "judge.x.dev", "admissionReviewVersions": ["v1"], "sideEffects": "None",
        "clientConfig": {"service": {"namespace": "default", "name": "judge", "port": 8443, "path": "/judge"}},
        "rules": [{"operations": ["*"], "apiGroups": ["*"], "apiVersions": ["v1"], "resources": resources}]});
    let (code, answer) =
        post(&simulator, HOOKS, &json!({"metadata": {"name": "judge"}, "webhooks": [hook]}));
    assert_eq!(code, 201, "{answer}");
    (simulator, asked)
}

#[test]
fn webhook_of_a_service_is_called_for_each_object_of_a_deletecollection() {
    let (simulator, asked) = asked(&["configmaps"]);
    for name in ["a", "b"] {
        post(&simulator, &format!("{CORE}/configmaps"), &json!({"metadata": {"name": name}}));
    }
    let (code, _) =
        send(&simulator, "DELETE", &format!("{CORE}/configmaps"), "application/json", &Value::Null);
    assert_eq!(code, 200);
    let asked = asked.lock().unwrap();
    assert_eq!(
        *asked,
        [
            "CREATE configmaps/ v1 a",
            "CREATE configmaps/ v1 b",
            "DELETE configmaps/ v1 a",
            "DELETE configmaps/ v1 b"
        ]
    );
}

#[test]
fn object_of_another_version_is_sent_to_a_webhook_in_the_version_of_its_rules() {
    let (simulator, asked) = asked(&["things", "things/status"]);
    let version = |name: &str| {
        json!({"name": name, "served": true, "storage": name == "v1", "subresources": {"status": {}},
            "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}})
    };
    let definition = json!({"metadata": {"name": "things.x.dev"}, "spec": {"group": "x.dev", "scope": "Namespaced",
        "names": {"plural": "things", "kind": "Thing"}, "versions": [version("v1"), version("v2")]}});
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    assert_eq!(post(&simulator, definitions, &definition).0, 201);
    let things = "/apis/x.dev/v2/namespaces/default/things";
    let thing = json!({"apiVersion": "x.dev/v2", "kind": "Thing", "metadata": {"name": "a"}});
    assert_eq!(post(&simulator, things, &thing).0, 201);
    let status = json!({"status": {"ready": true}});
    let merge = "application/merge-patch+json";
    let (code, answer) = send(&simulator, "PATCH", &format!("{things}/a/status"), merge, &status);
    assert_eq!((code, &answer["status"]["ready"]), (200, &json!(true)), "{answer}");
    assert_eq!(*asked.lock().unwrap(), ["CREATE things/ v1 a", "UPDATE things/status v1 a"]);
}

#[test]
fn webhook_configurations_are_not_sent_to_webhooks() {
    let (simulator, asked) = asked(&["*"]);
    let (code, _) = send(&simulator, "DELETE", &format!("{HOOKS}/judge"), "", &Value::Null);
    assert_eq!(code, 200);
    assert!(asked.lock().unwrap().is_empty());
}

#[test]
fn webhook_below_a_url_gets_path_and_time_and_its_errors_have_the_words_of_a_real_server() {
    let simulator = Simulator::new(1, "2026-11-22T00:00:00Z".parse().unwrap());
    simulator.webhooks_below("https://host.test/", |path, review| match path {
        "/allows?timeout=7s" => WebhookReply::Review(json!({"kind": "AdmissionReview",
            "apiVersion": "admission.k8s.io/v1",
            "response": {"uid": review["request"]["uid"], "allowed": true}})),
        "/silent?timeout=7s" => WebhookReply::Timeout,
        _ => WebhookReply::Error { code: 500, body: format!("no \"{path}\"\n") },
    });
    let create = |name: &str, failure: &str| {
        let hook = json!({"name": format!("{name}.x.dev"), "admissionReviewVersions": ["v1"],
            "sideEffects": "None", "timeoutSeconds": 7, "failurePolicy": failure,
            "clientConfig": {"url": format!("https://host.test/{name}")},
            "rules": [{"operations": ["*"], "apiGroups": [""], "apiVersions": ["v1"],
                "resources": ["configmaps"]}]});
        let configuration = json!({"metadata": {"name": name}, "webhooks": [hook]});
        assert_eq!(post(&simulator, HOOKS, &configuration).0, 201);
        let map = json!({"metadata": {"generateName": "a-"}});
        let (code, answer) = post(&simulator, &format!("{CORE}/configmaps"), &map);
        let path = format!("{HOOKS}/{name}");
        assert_eq!(send(&simulator, "DELETE", &path, "application/json", &Value::Null).0, 200);
        (code, answer["message"].as_str().unwrap_or_default().to_owned())
    };
    assert_eq!(create("allows", "Fail"), (201, String::new()));
    assert_eq!(create("broken", "Ignore").0, 201);
    let failed = "Internal error occurred: failed calling webhook";
    assert_eq!(
        create("broken", "Fail"),
        (
            500,
            format!(
                "{failed} \"broken.x.dev\": failed to call webhook: an error on the server (\"no \\\"/broken?timeout=7s\\\"\") has prevented the request from succeeding"
            )
        )
    );
    assert_eq!(
        create("silent", "Fail"),
        (
            500,
            format!(
                "{failed} \"silent.x.dev\": failed to call webhook: Post \"https://host.test/silent?timeout=7s\": context deadline exceeded"
            )
        )
    );
}
