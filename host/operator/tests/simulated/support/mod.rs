//! What the tests share: a guest that follows a script, a simulated cluster with the real operator
//! on it, and a proxy between them.

mod guard;
pub(crate) mod policy_cluster;
pub(crate) mod policy_leading;
mod proxy;
pub(crate) mod reviewing;
mod script;
mod stage;
mod stage_objects;

pub(crate) use guard::Guard;
pub(crate) use proxy::{Proxy, Reply, Sent, refusal};
pub(crate) use script::{GROUP, Script};
pub(crate) use stage::{Setup, Stage, condition, config_map_path, primary_path};
pub(crate) use stage_objects::{NAMESPACE, component, definition};

use std::collections::BTreeMap;

use serde_json::{Value, json};

/// Runs a test on one thread and virtual time.
pub(crate) fn block_on<T>(future: impl Future<Output = T>) -> T {
    innkeeper_lab::block_on(future).unwrap()
}

/// A ConfigMap of this name whose key `value` holds this text.
pub(crate) fn config_map(name: &str, value: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name},
        "data": {"value": value}})
}

/// A `desired` document with these objects.
pub(crate) fn desired(objects: &[Value]) -> Value {
    let objects: Vec<Value> = objects.iter().map(|object| json!({ "object": object })).collect();
    json!({ "objects": objects })
}

/// A `desired` document with one object that has these policies.
pub(crate) fn desired_with(object: &Value, policies: &[&str]) -> Value {
    json!({"objects": [{"object": object, "policy": policies}]})
}

/// The spec of a primary whose guest desires exactly this.
pub(crate) fn complete(desired: &Value) -> Value {
    json!({ "complete": desired })
}

/// How often each line is among these.
pub(crate) fn count<'a>(lines: impl IntoIterator<Item = &'a String>) -> BTreeMap<&'a str, usize> {
    lines.into_iter().fold(BTreeMap::new(), |mut counts, line| {
        *counts.entry(line.as_str()).or_default() += 1;
        counts
    })
}
