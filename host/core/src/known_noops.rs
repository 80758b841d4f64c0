//! Known no-ops: values that the API server treats as a change on every apply, although the stored
//! object stays the same.
//!
//! The host drops only the values in this table. Elsewhere an empty list, an empty object, an empty
//! string and null have a meaning (`emptyDir: {}`, a null that removes a field).

use serde_json::Value;

/// A kind with a known no-op, and the function that drops it.
struct KnownNoop {
    /// Group, without version; empty for the core group.
    group: &'static str,
    kind: &'static str,
    drop: fn(&mut Value),
}

const KNOWN_NOOPS: &[KnownNoop] = &[
    // The server stores no empty `ingress`, so it is missing at each apply. Without it the policy
    // means the same: `policyTypes` has Ingress by default, and no rule allows anything.
    KnownNoop { group: "networking.k8s.io", kind: "NetworkPolicy", drop: drop_empty_ingress },
    // The server stores no null in the map, so it looks new at each apply.
    KnownNoop { group: "", kind: "Secret", drop: drop_null_data },
];

/// Drops the known no-op from a desired object.
///
/// Call it before [`crate::in_sync::set_digest`], so that the digest is that of the body that the
/// host sends.
pub fn drop_known_noops(desired: &mut Value) {
    let text = |name| desired.get(name).and_then(Value::as_str).unwrap_or_default();
    let (api_version, kind) = (text("apiVersion"), text("kind"));
    let group = api_version.split_once('/').map_or("", |(group, _)| group);
    let known = KNOWN_NOOPS.iter().find(|known| known.group == group && known.kind == kind);
    if let Some(known) = known {
        (known.drop)(desired);
    }
}

fn drop_empty_ingress(desired: &mut Value) {
    if let Some(spec) = desired.get_mut("spec").and_then(Value::as_object_mut)
        && spec.get("ingress").and_then(Value::as_array).is_some_and(Vec::is_empty)
    {
        spec.remove("ingress");
    }
}

fn drop_null_data(desired: &mut Value) {
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
    fn empty_ingress_and_null_data_are_dropped() {
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
    fn other_empty_and_null_values_are_kept() {
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
