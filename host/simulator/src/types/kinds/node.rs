//! The taint that admission gives to new Nodes.

use serde_json::{Value, json};

use crate::types::kind::Kind;

/// What the server's admission plugins do.
pub(crate) fn admit(kind: &Kind, object: &mut Value) {
    if kind.is("", "Node") {
        node(&mut object["spec"]);
    }
}

/// A new node is not ready, whatever its object has.
fn node(spec: &mut Value) {
    let key = "node.kubernetes.io/not-ready";
    let mut taints = spec["taints"].as_array().cloned().unwrap_or_default();
    if !taints.iter().any(|taint| taint["key"] == key && taint["effect"] == "NoSchedule") {
        taints.push(json!({"key": key, "effect": "NoSchedule"}));
        spec["taints"] = taints.into();
    }
}
