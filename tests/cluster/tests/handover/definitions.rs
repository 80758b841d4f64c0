//! The definitions of the originals, as they are in etcd of a cluster that has been upgraded since.

use serde_json::{Value, json};

/// A definition that was created by `apiextensions.k8s.io/v1beta1`: all versions share one schema,
/// or have none, and unknown fields are kept.
///
/// `names` are kind, plural and singular. `schema` is null if there is none.
pub(crate) fn v1beta1(
    (group, version): (&str, &str),
    (kind, plural, singular): (&str, &str, &str),
    schema: &Value,
    has_status: bool,
) -> Value {
    let mut definition = stored("apiextensions.k8s.io/v1beta1", group, plural);
    definition["spec"] = json!({
        "group": group,
        "names": names(kind, plural, singular),
        "scope": "Namespaced",
        "version": version,
        "versions": [{"name": version, "served": true, "storage": true}],
        "preserveUnknownFields": true,
    });
    if !schema.is_null() {
        definition["spec"]["validation"] = json!({ "openAPIV3Schema": schema });
    }
    if has_status {
        definition["spec"]["subresources"] = json!({"status": {}});
    }
    definition["status"]["storedVersions"] = json!([version]);
    definition
}

/// As Ansible operators have them: nothing is described, all is kept.
pub(crate) fn ansible(group: &str, (kind, plural, singular): (&str, &str, &str)) -> Value {
    let open = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let schema = json!({"type": "object", "properties": {
        "apiVersion": {"type": "string"}, "kind": {"type": "string"},
        "metadata": {"type": "object"}, "spec": open, "status": open}});
    let mut definition = stored("apiextensions.k8s.io/v1", group, plural);
    definition["spec"] = json!({
        "group": group,
        "names": names(kind, plural, singular),
        "scope": "Namespaced",
        "versions": [{"name": "v1alpha1", "served": true, "storage": true,
            "schema": {"openAPIV3Schema": schema}, "subresources": {"status": {}}}],
    });
    definition["status"]["storedVersions"] = json!(["v1alpha1"]);
    definition
}

fn names(kind: &str, plural: &str, singular: &str) -> Value {
    json!({"kind": kind, "listKind": format!("{kind}List"), "plural": plural, "singular": singular})
}

/// The API server keeps what it knows of definitions by uid.
fn uid(group: &str) -> String {
    format!("6f1c9a52-8a6e-4d8e-9d3b-{:012x}", group.bytes().map(u64::from).sum::<u64>())
}

/// What the API server itself has written at the creation. The status is the empty one that
/// kubebuilder's manifests have: the API server fills it when it reads the definition.
fn stored(api_version: &str, group: &str, plural: &str) -> Value {
    json!({
        "apiVersion": api_version,
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": format!("{plural}.{group}"),
            "uid": uid(group),
            "generation": 1,
            "creationTimestamp": "2020-03-01T12:00:00Z",
        },
        "status": {"acceptedNames": {"kind": "", "plural": ""}, "conditions": []},
    })
}
