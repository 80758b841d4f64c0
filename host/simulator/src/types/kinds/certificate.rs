//! CertificateSigningRequests: who requests a certificate, and who may write which conditions.

use serde_json::Value;

use crate::types::kind::Kind;
use crate::types::object::copy;

/// The conditions that only the subresource `approval` adds and changes.
const DECISIONS: [&str; 2] = ["Approved", "Denied"];

fn is_request(kind: &Kind) -> bool {
    kind.is("certificates.k8s.io", "CertificateSigningRequest")
}

/// Notes down in a new request which user sends it: these members of the spec, of which those are
/// left out that say nothing.
pub(crate) fn note_user(kind: &Kind, object: &mut Value, members: &[(&str, Value)]) {
    if !is_request(kind) {
        return;
    }
    let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut) else { return };
    for (name, value) in members {
        let says_nothing = match value {
            Value::String(text) => text.is_empty(),
            Value::Array(items) => items.is_empty(),
            Value::Object(map) => map.is_empty(),
            _ => false,
        };
        if says_nothing {
            spec.remove(*name);
        } else {
            spec.insert((*name).to_owned(), value.clone());
        }
    }
}

/// Resets what an update of the request or of a subresource may not change.
pub(crate) fn prepare_update(kind: &Kind, subresource: &str, new: &mut Value, old: &Value) {
    if !is_request(kind) {
        return;
    }
    copy(old, new, "spec");
    let conditions = new["status"]["conditions"].clone();
    match subresource {
        "approval" => {
            copy(old, new, "status");
            if !conditions.is_null() {
                new["status"]["conditions"] = conditions;
            }
        }
        "status" => {
            let before = old["status"]["conditions"].as_array().into_iter().flatten();
            let before: Vec<&Value> = before.filter(|one| is_decision(one)).collect();
            let conditions = new["status"]["conditions"].as_array_mut().into_iter().flatten();
            for (new, old) in conditions.filter(|one| is_decision(one)).zip(before) {
                *new = old.clone();
            }
        }
        _ => {}
    }
}

fn is_decision(condition: &Value) -> bool {
    DECISIONS.iter().any(|name| condition["type"] == *name)
}

/// Fills in the times of conditions.
pub(crate) fn note_times(kind: &Kind, new: &mut Value, old: &Value, now: &str) {
    if !is_request(kind) {
        return;
    }
    let before = old["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let conditions = new["status"].get_mut("conditions").and_then(Value::as_array_mut);
    for condition in conditions.into_iter().flatten() {
        if condition["lastUpdateTime"].is_null() {
            condition["lastUpdateTime"] = now.into();
        }
        if condition["lastTransitionTime"].is_null() {
            let same = before.iter().find(|one| {
                one["type"] == condition["type"] && one["status"] == condition["status"]
            });
            let then = same.and_then(|one| one["lastTransitionTime"].as_str()).unwrap_or(now);
            condition["lastTransitionTime"] = then.into();
        }
    }
}
