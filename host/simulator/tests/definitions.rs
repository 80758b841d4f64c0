//! Definitions, and tokens of ServiceAccounts: behaviour that no differential case covers.

#![allow(clippy::unwrap_used, reason = "a test may fail by it")]

use bytes::Bytes;
use http::Request;
use innkeeper_simulator::{Simulator, User};
use jiff::SignedDuration;
use serde_json::{Value, json};

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const THINGS: &str = "/apis/x.dev/v1/namespaces/default/things";

fn simulator() -> Simulator {
    Simulator::new(1, "2026-11-22T00:00:00Z".parse().unwrap())
}

fn send(simulator: &Simulator, method: &str, path: &str, body: &Value) -> (u16, Value) {
    let kind = if method == "PATCH" { "application/merge-patch+json" } else { "application/json" };
    let body = if body.is_null() { Bytes::new() } else { Bytes::from(body.to_string()) };
    let request =
        Request::builder().method(method).uri(path).header("content-type", kind).body(body);
    let response = simulator.request(request.unwrap());
    let code = response.status().as_u16();
    let text = response.into_body().try_next().unwrap_or_default();
    (code, serde_json::from_slice(&text).unwrap_or_default())
}

fn define(simulator: &Simulator) {
    let definition = json!({"metadata": {"name": "things.x.dev"},
        "spec": {"group": "x.dev", "scope": "Namespaced", "names": {"plural": "things", "kind": "Thing"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object"}}}]}});
    let (code, answer) = send(simulator, "POST", DEFINITIONS, &definition);
    assert_eq!(code, 201, "{answer}");
}

fn make(simulator: &Simulator, name: &str, finalizers: &[&str]) {
    let thing = json!({"apiVersion": "x.dev/v1", "kind": "Thing", "metadata": {"name": name, "finalizers": finalizers}});
    let (code, answer) = send(simulator, "POST", THINGS, &thing);
    assert_eq!(code, 201, "{answer}");
}

/// A watch of everything from the beginning.
struct Watch(http_body_util::combinators::BoxBody<Bytes, std::convert::Infallible>);

impl Watch {
    fn begin(simulator: &Simulator) -> Self {
        use http_body_util::BodyExt as _;
        let request = Request::builder().uri(format!("{THINGS}?watch=true")).body(Bytes::new());
        Self(simulator.request(request.unwrap()).into_body().boxed())
    }

    /// The events so far, and whether the watch has ended.
    fn take(&mut self) -> (Vec<String>, bool) {
        use http_body::Body as _;
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        let mut kinds = Vec::new();
        loop {
            match std::pin::Pin::new(&mut self.0).poll_frame(&mut context) {
                std::task::Poll::Ready(Some(frame)) => {
                    let line = frame.unwrap().into_data().unwrap();
                    let event: Value = serde_json::from_slice(&line).unwrap();
                    let name = event["object"]["metadata"]["name"].as_str().unwrap().to_owned();
                    kinds.push(format!("{} {name}", event["type"].as_str().unwrap()));
                }
                std::task::Poll::Ready(None) => return (kinds, true),
                std::task::Poll::Pending => return (kinds, false),
            }
        }
    }
}

#[test]
fn watches_end_after_the_last_object_of_a_deleted_definition() {
    let simulator = simulator();
    define(&simulator);
    make(&simulator, "a", &["x.dev/a"]);
    make(&simulator, "b", &[]);
    let mut watch = Watch::begin(&simulator);
    assert_eq!(watch.take(), (vec!["ADDED a".to_owned(), "ADDED b".to_owned()], false));
    let path = format!("{DEFINITIONS}/things.x.dev");
    let (code, answer) = send(&simulator, "DELETE", &path, &Value::Null);
    assert_eq!((code, answer["kind"].as_str().unwrap()), (200, "CustomResourceDefinition"));
    simulator.advance(SignedDuration::from_secs(1));
    assert_eq!(watch.take(), (vec!["MODIFIED a".to_owned(), "DELETED b".to_owned()], false));
    let (code, _) = send(&simulator, "GET", &path, &Value::Null);
    assert_eq!(code, 200, "it waits for a");
    let free = json!({"metadata": {"finalizers": null}});
    assert_eq!(send(&simulator, "PATCH", &format!("{THINGS}/a"), &free).0, 200);
    simulator.advance(SignedDuration::from_secs(1));
    assert_eq!(watch.take(), (vec!["DELETED a".to_owned()], true));
    assert_eq!(send(&simulator, "GET", &path, &Value::Null).0, 404);
    assert_eq!(send(&simulator, "GET", THINGS, &Value::Null).0, 404);
}

#[test]
fn watches_end_when_a_definition_changes() {
    let simulator = simulator();
    define(&simulator);
    let mut watch = Watch::begin(&simulator);
    let path = format!("{DEFINITIONS}/things.x.dev");
    let labels = json!({"metadata": {"labels": {"a": "b"}}});
    assert_eq!(send(&simulator, "PATCH", &path, &labels).0, 200);
    assert_eq!(watch.take(), (vec![], false));
    let names = json!({"spec": {"names": {"shortNames": ["tt"]}}});
    assert_eq!(send(&simulator, "PATCH", &path, &names).0, 200);
    assert_eq!(watch.take(), (vec![], true));
}

#[test]
fn token_of_a_service_account_is_valid_until_it_expires() {
    let simulator = simulator();
    let base = "/api/v1/namespaces/default";
    let account = json!({"metadata": {"name": "robot"}});
    assert_eq!(send(&simulator, "POST", &format!("{base}/serviceaccounts"), &account).0, 201);
    let path = format!("{base}/serviceaccounts/robot/token");
    let short = json!({"spec": {"expirationSeconds": 60}});
    assert_eq!(send(&simulator, "POST", &path, &short).0, 422);
    let (code, answer) =
        send(&simulator, "POST", &path, &json!({"spec": {"expirationSeconds": 600}}));
    assert_eq!(code, 201, "{answer}");
    let token = answer["status"]["token"].as_str().unwrap().to_owned();
    let name = "system:serviceaccount:default:robot";
    let review = |simulator: &Simulator, token: &str| {
        let body = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": token}});
        let (code, answer) =
            send(simulator, "POST", "/apis/authentication.k8s.io/v1/tokenreviews", &body);
        assert_eq!(code, 201, "{answer}");
        answer["status"].clone()
    };
    let status = review(&simulator, &token);
    assert_eq!(
        (&status["authenticated"], &status["user"]["username"]),
        (&json!(true), &json!(name))
    );
    assert!(
        status["user"]["groups"]
            .as_array()
            .unwrap()
            .contains(&json!("system:serviceaccounts:default"))
    );
    assert!(simulator.user_of(&token).is_some_and(|user| user != User::anonymous()));
    assert!(review(&simulator, "another")["authenticated"].is_null());
    let (_, other) = send(&simulator, "POST", &path, &json!({"spec": {"audiences": ["vault"]}}));
    let other = other["status"]["token"].as_str().unwrap();
    assert!(simulator.user_of(other).is_none(), "it is for another");
    simulator.advance(SignedDuration::from_secs(601));
    assert!(review(&simulator, &token)["authenticated"].is_null(), "its time is over");
    let (_, answer) = send(&simulator, "POST", &path, &json!({}));
    let token = answer["status"]["token"].as_str().unwrap();
    assert!(simulator.user_of(token).is_some());
    send(&simulator, "DELETE", &format!("{base}/serviceaccounts/robot"), &Value::Null);
    assert!(simulator.user_of(token).is_none(), "the account is gone");
}

#[test]
fn discovery_has_the_hash_of_the_storage_version() {
    let simulator = simulator();
    define(&simulator);
    let (_, list) = send(&simulator, "GET", "/apis/x.dev/v1", &Value::Null);
    // The first eight bytes of SHA-256 of `x.dev/v1/Thing`.
    assert_eq!(list["resources"][0]["storageVersionHash"], "TGFgK92zyH4=", "{list}");
}
