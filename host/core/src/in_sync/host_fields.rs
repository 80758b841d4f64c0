//! Whether two versions of an object differ in more than what every apply of the host sets.

use serde_json::Value;

use super::owner_version::group_of;
use crate::Object;
use crate::well_known::APPLIED_ANNOTATION;

/// Members of `metadata` that the server changes with each write.
const VERSIONS: [&str; 2] = ["generation", "resourceVersion"];

/// Whether an apply with this answer changes nothing of the live object but its version, the
/// annotation with the digest, and the versions in which it names its owners.
///
/// A digest may differ although no value does: the object was applied by another version of the
/// host, or somebody removed the annotation.
pub fn same_but_for_host_fields(live: &Object, answer: &Object) -> bool {
    live.uid == answer.uid
        && match (without_host_fields(live), without_host_fields(answer)) {
            (Some(live), Some(answer)) => live == answer,
            _ => false,
        }
}

fn without_host_fields(object: &Object) -> Option<Value> {
    let mut value: Value = serde_json::from_str(&object.text.read()).ok()?;
    let metadata = value.get_mut("metadata")?.as_object_mut()?;
    metadata.retain(|name, _| !VERSIONS.contains(&name.as_str()));
    if let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut) {
        annotations.remove(APPLIED_ANNOTATION);
        if annotations.is_empty() {
            metadata.remove("annotations");
        }
    }
    let owners = metadata.get_mut("ownerReferences").and_then(Value::as_array_mut);
    for owner in owners.into_iter().flatten() {
        if let Some(version) = owner.get_mut("apiVersion") {
            *version = group_of(version.as_str()?).into();
        }
    }
    Some(value)
}

#[cfg(test)]
mod tests {
    use innkeeper_contract::Kind;
    use serde_json::json;

    use super::*;

    fn object(value: &Value) -> Object {
        let kind = Kind::namespaced("v1", "ConfigMap", "configmaps");
        Object::decode(&kind, &value.to_string(), None).unwrap()
    }

    #[test]
    fn objects_that_differ_in_versions_and_digest_are_the_same() {
        let live = json!({"metadata": {"name": "a", "uid": "u", "resourceVersion": "1", "generation": 1,
            "ownerReferences": [{"apiVersion": "example.com/v1", "kind": "A", "name": "a", "uid": "o"}],
            "managedFields": [{"manager": "x", "operation": "Update"}]}, "data": {"a": "1"}});
        let mut answer = live.clone();
        answer["metadata"]["resourceVersion"] = "2".into();
        answer["metadata"]["generation"] = 2.into();
        answer["metadata"]["managedFields"] = json!([]);
        answer["metadata"]["annotations"][APPLIED_ANNOTATION] = "digest".into();
        answer["metadata"]["ownerReferences"][0]["apiVersion"] = "example.com/v2".into();
        assert!(same_but_for_host_fields(&object(&live), &object(&answer)));
    }

    #[test]
    fn objects_that_differ_in_anything_else_are_not_the_same() {
        let live = json!({"metadata": {"name": "a", "uid": "u", "annotations": {"b": "c"},
            "ownerReferences": [{"apiVersion": "example.com/v1", "kind": "A", "name": "a", "uid": "o"}]},
            "data": {"a": "1"}});
        for (pointer, value) in [
            ("/data/a", json!("2")),
            ("/metadata/uid", json!("v")),
            ("/metadata/ownerReferences/0/apiVersion", json!("example.org/v1")),
            ("/metadata/ownerReferences/0/uid", json!("p")),
            ("/metadata/ownerReferences", json!([])),
            ("/metadata/annotations/b", json!("d")),
            ("/metadata/annotations", json!({"b": "c", "innkeeper.dev/allow-deletion": "true"})),
            ("/data", json!({"a": "1", "b": "1"})),
        ] {
            let mut answer = live.clone();
            *answer.pointer_mut(pointer).unwrap() = value;
            assert!(!same_but_for_host_fields(&object(&live), &object(&answer)), "{pointer}");
        }
    }
}
