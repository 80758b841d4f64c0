//! The one table of known churners: values that the API server takes as a change
//! on every apply, although nothing changes.
//!
//! Elsewhere an empty list, an empty object, an empty string and null carry meaning
//! (`emptyDir: {}`, a null that takes a field away), so nothing else is ever dropped.

use serde_json::Value;

/// Whether a value in a given place churns.
struct KnownNoop {
    /// Group, without version; empty for the core group.
    group: &'static str,
    kind: &'static str,
    drop: fn(&mut Value),
}

const KNOWN_NOOPS: &[KnownNoop] = &[
    // The server stores no `ingress` and finds it missing at each apply. Without it the
    // policy means the same: `policyTypes` names Ingress by default, and no rule allows.
    KnownNoop { group: "networking.k8s.io", kind: "NetworkPolicy", drop: empty_ingress },
    // A null is kept out of the stored map and so looks new at each apply.
    KnownNoop { group: "", kind: "Secret", drop: null_data },
];

/// Drops from a desired object what would make the server write it anew on every apply.
/// To be called before [`crate::in_sync::set_digest`], so that the digest is of what is sent.
pub fn drop_known_noops(desired: &mut Value) {
    let text = |name| desired.get(name).and_then(Value::as_str).unwrap_or_default();
    let (api_version, kind) = (text("apiVersion"), text("kind"));
    let group = api_version.split_once('/').map_or("", |(group, _)| group);
    let churner = KNOWN_NOOPS.iter().find(|churner| churner.group == group && churner.kind == kind);
    if let Some(churner) = churner {
        (churner.drop)(desired);
    }
}

fn empty_ingress(desired: &mut Value) {
    if let Some(spec) = desired.get_mut("spec").and_then(Value::as_object_mut)
        && spec.get("ingress").and_then(Value::as_array).is_some_and(Vec::is_empty)
    {
        spec.remove("ingress");
    }
}

fn null_data(desired: &mut Value) {
    if let Some(data) = desired.get_mut("data").and_then(Value::as_object_mut) {
        data.retain(|_, value| !value.is_null());
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(mut before: Value, after: &Value) {
        drop_known_noops(&mut before);
        assert_eq!(before, *after);
    }

    #[test]
    fn an_empty_ingress_and_null_data_go() {
        check(
            json!({"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "spec": {"podSelector": {}, "ingress": [], "egress": []}}),
            &json!({"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "spec": {"podSelector": {}, "egress": []}}),
        );
        check(
            json!({"apiVersion": "v1", "kind": "Secret", "data": {"a": null, "b": ""}}),
            &json!({"apiVersion": "v1", "kind": "Secret", "data": {"b": ""}}),
        );
    }

    #[test]
    fn everything_else_stays() {
        for object in [
            json!({"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "spec": {"ingress": [{}]}}),
            json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": null}}),
            json!({"apiVersion": "example.com/v1", "kind": "NetworkPolicy", "spec": {"ingress": []}}),
            json!({"apiVersion": "example.com/v1", "kind": "Secret", "data": {"a": null}}),
            json!({"apiVersion": "v1", "kind": "Pod", "spec": {"volumes": [{"name": "v", "emptyDir": {}}], "tolerations": []}}),
            json!({"apiVersion": "v1", "kind": "Secret", "data": null}),
            json!("not an object"),
        ] {
            check(object.clone(), &object);
        }
    }
}
