//! Primaries of the guests that most tests use.

use serde_json::json;

use crate::Kind;

/// A Bench, of which the guest `bench` makes a Deployment with these replicas and a Service.
pub fn bench(namespace: &str, name: &str, replicas: u32) -> String {
    json!({"apiVersion": Kind::BENCH.api_version, "kind": Kind::BENCH.kind,
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"image": "example.com/app:1", "replicas": replicas}})
    .to_string()
}

/// Settings, of which the guest `settings` makes a `ConfigMap` with this text for each name.
pub fn settings(namespace: &str, name: &str, names: &[&str], text: &str) -> String {
    json!({"apiVersion": Kind::SETTINGS.api_version, "kind": Kind::SETTINGS.kind,
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"names": names, "text": text}})
    .to_string()
}
