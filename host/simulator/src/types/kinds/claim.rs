//! Rules of PersistentVolumeClaims.

use serde_json::Value;

use crate::types::kinds::quantity::billionths;
use crate::types::status_error::FieldError;

/// The storage that a claim requests, in billionths of a byte, if it has a request.
pub(crate) fn asked(claim: &Value) -> i128 {
    size(&claim["spec"]["resources"]["requests"]["storage"])
}

fn size(quantity: &Value) -> i128 {
    quantity.as_str().and_then(billionths).unwrap_or_default()
}

/// What a claim must have.
pub(crate) fn rules(spec: &Value, errors: &mut Vec<FieldError>) {
    if spec["accessModes"].as_array().is_none_or(Vec::is_empty) {
        let why = "at least 1 access mode is required";
        errors.push(FieldError::required("spec.accessModes", why));
    }
    if spec["resources"]["requests"]["storage"].is_null() {
        errors.push(FieldError::required("spec.resources[storage]", ""));
    }
}

/// The immutable members of a claim: all but its first class and volume, and, once it is bound, its
/// request.
pub(crate) fn immutable(new: &Value, old: &Value, errors: &mut Vec<FieldError>) {
    let is_bound = new["status"]["phase"] == "Bound";
    let rest = |object: &Value| {
        let mut spec = object["spec"].as_object().cloned().unwrap_or_default();
        for given in ["volumeName", "storageClassName"] {
            if old["spec"][given].is_null() {
                spec.remove(given);
            }
        }
        spec.remove("volumeAttributesClassName");
        if is_bound && let Some(requests) = spec.get_mut("resources") {
            requests["requests"]["storage"] = Value::Null;
        }
        spec
    };
    if rest(new) != rest(old) {
        let why = "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims";
        errors.push(FieldError::forbidden("spec", why));
    }
    let (now, was) = (asked(new), asked(old));
    // A request may shrink again, down to the capacity.
    if now < was && now <= size(&old["status"]["capacity"]["storage"]) {
        let why = "field can not be less than status.capacity";
        errors.push(FieldError::forbidden("spec.resources.requests.storage", why));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn pending_claim_may_get_a_volume_and_a_bound_claim_may_grow() {
        let claim = |phase: &str, change: Value| {
            let mut claim = json!({"spec": {"accessModes": ["ReadWriteOnce"],
                "resources": {"requests": {"storage": "2Gi"}}}, "status": {"phase": phase}});
            if phase == "Bound" {
                claim["status"]["capacity"] = json!({"storage": "1Gi"});
            }
            for (name, value) in change.as_object().into_iter().flatten() {
                claim["spec"][name] = value.clone();
            }
            claim
        };
        let of = |size: &str| json!({"resources": {"requests": {"storage": size}}});
        let refusals = |phase: &str, change: Value| {
            let mut errors = Vec::new();
            immutable(&claim(phase, change), &claim(phase, json!({})), &mut errors);
            errors.len()
        };
        for (phase, change) in [
            ("Pending", json!({})),
            ("Pending", json!({"volumeName": "v"})),
            ("Pending", json!({"storageClassName": "c"})),
            ("Bound", of("3Gi")),
            ("Bound", of("1536Mi")),
        ] {
            assert_eq!(refusals(phase, change.clone()), 0, "{phase} {change}");
        }
        for (phase, change) in [
            ("Pending", of("3Gi")),
            ("Pending", json!({"accessModes": ["ReadOnlyMany"]})),
            ("Bound", json!({"volumeMode": "Block"})),
            ("Bound", of("1Gi")),
        ] {
            assert_eq!(refusals(phase, change.clone()), 1, "{phase} {change}");
        }
    }
}
