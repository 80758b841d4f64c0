//! The rules in CEL of a definition, which `innkeeper render` evaluates for any component.

use bytes::Bytes;
use http::Request;
use innkeeper_simulator::Simulator;
use serde_json::{Value, json};

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const THINGS: &str = "/apis/example.com/v1/things";

/// The longest error of an object. It quotes the rule and the value, also escaped.
const ANSWER_MAX: usize = 1 << 20;

/// Reads a rule, or a JSON document with `rule`, `messageExpression` and the `value` that they are
/// about. The API server with that rule answers, says the same twice, and then still works.
pub fn fuzz_entry(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let document = match serde_json::from_str::<Value>(text) {
        Ok(document @ Value::Object(_)) => document,
        _ => json!({"rule": text}),
    };
    let simulator = Simulator::new(1, jiff::Timestamp::UNIX_EPOCH);
    let mut rule = json!({"rule": document["rule"].as_str().unwrap_or_default()});
    if let Some(text) = document["messageExpression"].as_str() {
        rule["messageExpression"] = text.into();
    }
    let any = json!({"x-kubernetes-preserve-unknown-fields": true});
    let mut ruled = any.clone();
    ruled["x-kubernetes-validations"] = json!([rule]);
    let schema = json!({"type": "object", "properties": {"value": ruled, "other": any}});
    let definition = json!({"apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition", "metadata": {"name": "things.example.com"},
        "spec": {"group": "example.com", "scope": "Cluster",
            "names": {"kind": "Thing", "plural": "things"},
            "versions": [{"name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": schema}}]}});
    let (code, answer) = post(&simulator, DEFINITIONS, &definition);
    assert!(code < 500, "{answer}");
    if code >= 300 {
        return;
    }
    simulator.settle();
    let thing = |member: &str| {
        json!({"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "a"},
            member: document.get("value").unwrap_or(&json!({"a": [1, "b"]}))})
    };
    let dry = format!("{THINGS}?dryRun=All");
    let first = post(&simulator, &dry, &thing("value"));
    assert!(first.0 < 500, "{}", first.1);
    assert!(first.1.len() < ANSWER_MAX, "{} bytes", first.1.len());
    if first.0 >= 300 {
        // Of what is created, the uid differs.
        assert_eq!(first, post(&simulator, &dry, &thing("value")), "another answer");
    }
    let (code, answer) = post(&simulator, THINGS, &thing("other"));
    assert_eq!(code, 201, "an object without the value is refused: {answer}");
}

fn post(simulator: &Simulator, path: &str, body: &Value) -> (u16, String) {
    let request = Request::post(path)
        .header("content-type", "application/json")
        .header("accept", "application/json")
        .body(Bytes::from(body.to_string()))
        .expect("the path is constant");
    let response = simulator.request(request);
    let code = response.status().as_u16();
    let answer = response.into_body().try_next().unwrap_or_default();
    (code, String::from_utf8_lossy(&answer).into_owned())
}
