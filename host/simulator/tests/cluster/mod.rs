//! A simulated cluster, and requests to it.

use bytes::Bytes;
use http::Request;
use innkeeper_simulator::{Controllers, Simulator};
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

const START: &str = "2026-11-22T00:00:00Z";

pub(crate) struct Cluster {
    pub(crate) simulator: Simulator,
}

impl Cluster {
    pub(crate) fn new() -> Self {
        Self::with(Controllers::all())
    }

    pub(crate) fn with(controllers: Controllers) -> Self {
        Self::seeded(1, controllers)
    }

    pub(crate) fn seeded(seed: u64, controllers: Controllers) -> Self {
        Self { simulator: Simulator::with(seed, START.parse().unwrap(), controllers) }
    }

    pub(crate) fn start() -> Timestamp {
        START.parse().unwrap()
    }

    pub(crate) fn send(&self, method: &str, path: &str, body: &Value) -> (u16, Value) {
        let kind =
            if method == "PATCH" { "application/apply-patch+yaml" } else { "application/json" };
        let body = if body.is_null() { Bytes::new() } else { Bytes::from(body.to_string()) };
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("content-type", kind)
            .header("user-agent", "test/1");
        let response = self.simulator.request(request.body(body).unwrap());
        let code = response.status().as_u16();
        let text = response.into_body().try_next().unwrap_or_default();
        (code, serde_json::from_slice(&text).unwrap_or_default())
    }

    pub(crate) fn get(&self, path: &str) -> Option<Value> {
        let (code, object) = self.send("GET", path, &Value::Null);
        (code == 200).then_some(object)
    }

    pub(crate) fn list(&self, path: &str) -> Vec<Value> {
        let (code, list) = self.send("GET", path, &Value::Null);
        assert_eq!(code, 200, "{list}");
        list["items"].as_array().unwrap().clone()
    }

    /// Applies an object in the namespace `default`.
    pub(crate) fn apply(&self, object: &Value) {
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let version = text(&object["apiVersion"]);
        let root = if version.contains('/') { "apis" } else { "api" };
        let kind = text(&object["kind"]).to_lowercase();
        let name = text(&object["metadata"]["name"]);
        let path = format!(
            "/{root}/{version}/namespaces/default/{kind}s/{name}?fieldManager=test&force=true"
        );
        let (code, answer) = self.send("PATCH", &path, object);
        assert!(code == 200 || code == 201, "{code} {answer}");
    }

    /// Lets so many seconds pass, one by one.
    pub(crate) fn pass(&self, seconds: i64) {
        for _ in 0..seconds {
            self.simulator.advance(SignedDuration::from_secs(1));
        }
    }

    /// Fails if anything is written without a cause.
    pub(crate) fn is_quiet(&self) {
        let version = || {
            let (_, list) = self.send("GET", "/api/v1/namespaces", &Value::Null);
            list["metadata"]["resourceVersion"].clone()
        };
        let before = version();
        self.pass(20);
        assert_eq!(version(), before, "nothing is written without a cause");
    }
}
