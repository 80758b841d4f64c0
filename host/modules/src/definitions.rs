//! CustomResourceDefinitions as guests describe them: what is refused, and what is taken of them.
//!
//! Of a definition the host takes the name, some labels and the spec. All else would act on what
//! the definition is to others: an owner or a finalizer decides when it is deleted with all its
//! objects, and annotations and other labels steer controllers.

use std::collections::BTreeSet;

use innkeeper_contract::Manifest;
use innkeeper_core::{foreign, host_names};
use serde_json::{Map, Value, json};

use crate::ValidatedSpec;

/// The group of CustomResourceDefinitions.
pub const GROUP: &str = "apiextensions.k8s.io";

/// The label of a definition that names the module which installed it: only that module changes it.
pub const MODULE_LABEL: &str = "innkeeper.dev/module";

/// The longest definition, in bytes of JSON; etcd takes 1.5 MiB.
const DEFINITION_BYTES_MAX: usize = 1 << 20;

/// The longest text in a definition, in bytes.
const TEXT_BYTES_MAX: usize = 64 << 10;

/// The longest pattern in a definition, in bytes.
const PATTERN_BYTES_MAX: usize = 4 << 10;

/// How deep a definition is, in JSON.
const DEPTH_MAX: usize = 100;

/// The most versions of one definition.
const VERSIONS_MAX: usize = 20;

/// The most members that were left out which are named.
const DROPPED_MAX: usize = 10;

/// The longest part of a name in a message, in bytes.
const NAME_BYTES_MAX: usize = 100;

/// Labels that a guest may give its definition. They describe; `instance` and `managed-by` are left
/// out, by which deployment tools find what they may delete.
const LABELS: [&str; 4] = [
    "app.kubernetes.io/name",
    "app.kubernetes.io/version",
    "app.kubernetes.io/component",
    "app.kubernetes.io/part-of",
];

/// The annotation by which Kubernetes' own groups are approved.
const API_APPROVED: &str = "api-approved.kubernetes.io";

/// Names by which kubectl finds kinds of Kubernetes, apart from those in [`SHORT_NAMES`].
const BUILT_IN: [&str; 39] = [
    "all",
    "binding",
    "clusterrole",
    "clusterrolebinding",
    "componentstatus",
    "configmap",
    "controllerrevision",
    "cronjob",
    "customresourcedefinition",
    "daemonset",
    "deployment",
    "endpoint",
    "endpoints",
    "endpointslice",
    "event",
    "horizontalpodautoscaler",
    "ingress",
    "ingressclass",
    "job",
    "lease",
    "limitrange",
    "namespace",
    "networkpolicy",
    "node",
    "persistentvolume",
    "persistentvolumeclaim",
    "pod",
    "poddisruptionbudget",
    "priorityclass",
    "replicaset",
    "replicationcontroller",
    "resourcequota",
    "role",
    "rolebinding",
    "secret",
    "service",
    "serviceaccount",
    "statefulset",
    "storageclass",
];

/// Short names of kinds of Kubernetes.
const SHORT_NAMES: [&str; 29] = [
    "cj", "cm", "crd", "crds", "cs", "csr", "deploy", "ds", "ep", "ev", "hpa", "ing", "limits",
    "netpol", "no", "ns", "pc", "pdb", "po", "pv", "pvc", "quota", "rc", "rs", "sa", "sc", "sts",
    "svc", "vac",
];

/// A CustomResourceDefinition that a guest describes, without what is not taken of it.
#[derive(Clone, Debug, PartialEq)]
pub struct CrdRequest {
    /// Its name: plural and group.
    pub name: String,
    /// Its group.
    pub group: String,
    /// Whether the Module's `allowedCRDGroups` allows to install it. If not, it is used if it is
    /// there and serves the versions, and is a reason to refuse if not.
    pub granted: bool,
    /// The definition: name, allowed labels, spec.
    pub definition: Value,
    /// Other members that the guest gave, as `metadata.annotations[x]`; only a part of many.
    pub dropped: Vec<String>,
}

/// The definitions of a guest, as a Module allows to install them.
pub fn crd_requests(manifest: &Manifest, spec: &ValidatedSpec) -> Vec<CrdRequest> {
    manifest.definitions().map(|definition| crd_request(&definition, spec)).collect()
}

/// The names of the definitions that a guest describes.
pub(crate) fn described_names(manifest: &Manifest) -> Vec<String> {
    let name = |definition: Value| Some(definition.pointer("/metadata/name")?.as_str()?.to_owned());
    manifest.definitions().filter_map(name).collect()
}

/// The definitions of a guest as the host would install them, for an administrator who installs
/// them.
pub fn installable_definitions(manifest: &Manifest) -> Vec<Value> {
    manifest.definitions().map(|definition| installable(&definition).0).collect()
}

fn crd_request(definition: &Value, spec: &ValidatedSpec) -> CrdRequest {
    let text = |pointer: &str| {
        definition.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned()
    };
    let (name, group) = (text("/metadata/name"), text("/spec/group"));
    let granted = spec.allowed_crd_groups.contains(&group);
    let (definition, dropped) = installable(definition);
    CrdRequest { name, group, granted, definition, dropped }
}

/// What is taken of a definition, and the names of other members.
fn installable(definition: &Value) -> (Value, Vec<String>) {
    let mut dropped = Vec::new();
    let name = definition.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
    let mut metadata = json!({ "name": name });
    let labels = labels(definition, &mut dropped);
    if !labels.is_empty() {
        metadata["labels"] = Value::Object(labels);
    }
    for name in members(definition.pointer("/metadata/annotations")) {
        dropped.push(named("metadata.annotations", name));
    }
    let top = definition.as_object().into_iter().flatten();
    let others =
        top.filter(|(name, value)| !ALLOWED_MEMBERS.contains(&name.as_str()) && !is_empty(value));
    dropped.extend(others.map(|(name, _)| foreign::one_line(name, NAME_BYTES_MAX)));
    dropped.truncate(DROPPED_MAX);
    let taken = json!({
        "apiVersion": format!("{GROUP}/v1"),
        "kind": "CustomResourceDefinition",
        "metadata": metadata,
        "spec": definition["spec"],
    });
    (taken, dropped)
}

/// Members of a definition that are taken, at least in part.
const ALLOWED_MEMBERS: [&str; 4] = ["apiVersion", "kind", "metadata", "spec"];

/// The labels that are taken.
fn labels(definition: &Value, dropped: &mut Vec<String>) -> Map<String, Value> {
    let given = definition.pointer("/metadata/labels").and_then(Value::as_object);
    let mut taken = Map::new();
    for (name, value) in given.into_iter().flatten() {
        if LABELS.contains(&name.as_str()) && value.is_string() {
            taken.insert(name.clone(), value.clone());
        } else {
            dropped.push(named("metadata.labels", name));
        }
    }
    taken
}

fn named(place: &str, name: &str) -> String {
    format!("{place}[{}]", foreign::one_line(name, NAME_BYTES_MAX))
}

fn members(value: Option<&Value>) -> impl Iterator<Item = &String> {
    value.and_then(Value::as_object).into_iter().flat_map(Map::keys)
}

/// Whether it is as good as left out: tools write such members for nothing.
fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.values().all(is_empty),
        Value::Bool(_) | Value::Number(_) => false,
    }
}

/// Checks what a definition carries, beyond the names that it must agree with.
pub(crate) fn check(place: &str, definition: &Value, errors: &mut Vec<String>) {
    if let Err(error) = within_bounds(definition) {
        errors.push(format!("{place}: {error}"));
        return;
    }
    metadata(place, definition, errors);
    names(place, definition, errors);
    let versions = definition.pointer("/spec/versions").and_then(Value::as_array);
    let versions = versions.map(Vec::as_slice).unwrap_or_default();
    if versions.len() > VERSIONS_MAX {
        errors.push(format!(
            "{place}.spec.versions: {} are more than the {VERSIONS_MAX} that a definition may have",
            versions.len()
        ));
    }
    if versions.iter().filter(|version| version["storage"] == true).count() > 1 {
        errors.push(format!("{place}.spec.versions: more than one is the storage version"));
    }
    let distinct: BTreeSet<&str> =
        versions.iter().filter_map(|version| version["name"].as_str()).collect();
    if distinct.len() < versions.len() {
        errors.push(format!("{place}.spec.versions: each needs a name of its own"));
    }
}

fn metadata(place: &str, definition: &Value, errors: &mut Vec<String>) {
    let given = definition["metadata"].as_object();
    let given = given.into_iter().flatten().filter(|(_, value)| !is_empty(value));
    for (name, _) in given {
        if !matches!(name.as_str(), "name" | "labels" | "annotations") {
            errors.push(format!("{place}.metadata.{name}: is not the guest's to give"));
        }
    }
    for kind in ["labels", "annotations"] {
        for name in members(definition["metadata"].get(kind)) {
            if host_names::is_reserved(name) || name == API_APPROVED {
                errors.push(format!("{place}.metadata.{kind}[{name}]: is reserved"));
            }
        }
    }
}

/// A name by which people mean a kind of Kubernetes must not mean another.
fn names(place: &str, definition: &Value, errors: &mut Vec<String>) {
    let names = &definition["spec"]["names"];
    let kind = names["kind"].as_str().unwrap_or_default();
    let short = names["shortNames"].as_array().into_iter().flatten().filter_map(Value::as_str);
    for name in short.filter(|name| is_built_in(name)) {
        errors.push(format!("{place}.spec.names.shortNames: {name} is a name of Kubernetes' own"));
    }
    let singular = names["singular"].as_str().unwrap_or_default();
    if singular != kind.to_lowercase() && is_built_in(singular) {
        errors
            .push(format!("{place}.spec.names.singular: {singular} is a name of Kubernetes' own"));
    }
}

fn is_built_in(name: &str) -> bool {
    let is_known = |name: &str| BUILT_IN.contains(&name) || SHORT_NAMES.contains(&name);
    let plural_of = |suffix: &str| name.strip_suffix(suffix).is_some_and(is_known);
    is_known(name)
        || plural_of("s")
        || plural_of("es")
        || name.strip_suffix("ies").is_some_and(|stem| is_known(&format!("{stem}y")))
}

fn within_bounds(definition: &Value) -> Result<(), String> {
    let bytes = definition.to_string().len();
    if bytes > DEFINITION_BYTES_MAX {
        return Err(format!("has {bytes} bytes, at most {DEFINITION_BYTES_MAX} are allowed"));
    }
    texts(definition, 0)
}

fn texts(value: &Value, depth: usize) -> Result<(), String> {
    if depth > DEPTH_MAX {
        return Err(format!("is nested deeper than {DEPTH_MAX}"));
    }
    let within = |what: &str, text: &str, max: usize| {
        if text.len() > max {
            Err(format!("{what} has {} bytes, at most {max} are allowed", text.len()))
        } else {
            Ok(())
        }
    };
    match value {
        Value::String(text) => within("a text", text, TEXT_BYTES_MAX),
        Value::Array(items) => items.iter().try_for_each(|item| texts(item, depth + 1)),
        Value::Object(members) => members.iter().try_for_each(|(name, member)| {
            within("a name", name, TEXT_BYTES_MAX)?;
            if let ("pattern", Value::String(pattern)) = (name.as_str(), member) {
                within("a pattern", pattern, PATTERN_BYTES_MAX)?;
            }
            texts(member, depth + 1)
        }),
        Value::Null | Value::Bool(_) | Value::Number(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::module;

    fn definition() -> Value {
        json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": "podroutes.quay.io"},
            "spec": {
                "group": "quay.io", "scope": "Namespaced",
                "names": {"kind": "Podroute", "plural": "podroutes"},
                "versions": [{"name": "v1alpha1", "served": true, "storage": true}],
            },
        })
    }

    fn spec() -> ValidatedSpec {
        let module = json!({"apiVersion": module::API_VERSION, "kind": module::KIND, "metadata": {"name": "m"},
            "spec": {"source": {"file": "x"}, "allowedCRDGroups": ["quay.io"]}});
        ValidatedSpec::new(
            &serde_json::from_value(module).unwrap(),
            crate::SourceKind::Directory,
            innkeeper_sandbox::Limits::default(),
            None,
        )
        .unwrap()
    }

    fn refused(pointer: &str, name: &str, value: Value) -> Vec<String> {
        let mut definition = definition();
        definition.pointer_mut(pointer).unwrap()[name] = value;
        let mut errors = Vec::new();
        check("crds[0]", &definition, &mut errors);
        errors
    }

    #[test]
    fn metadata_that_decides_over_the_definition_is_refused_by_name() {
        for (name, value) in [
            (
                "ownerReferences",
                json!([{"apiVersion": "v1", "kind": "ConfigMap", "name": "a", "uid": "b"}]),
            ),
            ("finalizers", json!(["example.com/a"])),
            ("deletionTimestamp", json!("2026-01-01T00:00:00Z")),
            ("deletionGracePeriodSeconds", json!(0)),
            ("uid", json!("a")),
            ("resourceVersion", json!("1")),
            ("generation", json!(7)),
            ("managedFields", json!([{"manager": "innkeeper"}])),
            ("generateName", json!("a-")),
            ("namespace", json!("default")),
            ("anything", json!("a")),
        ] {
            assert_eq!(
                refused("/metadata", name, value),
                [format!("crds[0].metadata.{name}: is not the guest's to give")]
            );
        }
        // What controller-gen writes says nothing.
        assert_eq!(refused("/metadata", "creationTimestamp", Value::Null), [""; 0]);
        assert_eq!(refused("/metadata", "ownerReferences", json!([])), [""; 0]);
    }

    #[test]
    fn labels_and_annotations_of_the_host_are_refused() {
        for (kind, name) in [
            ("labels", "innkeeper.dev/module"),
            ("annotations", "innkeeper.dev/applied"),
            ("annotations", "sub.innkeeper.dev/a"),
            ("annotations", "api-approved.kubernetes.io"),
        ] {
            assert_eq!(
                refused("/metadata", kind, json!({ name: "a" })),
                [format!("crds[0].metadata.{kind}[{name}]: is reserved")]
            );
        }
    }

    #[test]
    fn short_names_of_kubernetes_are_refused_and_own_ones_are_not() {
        for name in ["po", "secrets", "secret", "svc", "all", "ingresses", "networkpolicies", "ns"]
        {
            assert_eq!(
                refused("/spec/names", "shortNames", json!(["pr", name])),
                [format!("crds[0].spec.names.shortNames: {name} is a name of Kubernetes' own")]
            );
        }
        assert_eq!(refused("/spec/names", "shortNames", json!(["pr", "podr", "s"])), [""; 0]);
        assert_eq!(
            refused("/spec/names", "singular", json!("pod")),
            ["crds[0].spec.names.singular: pod is a name of Kubernetes' own"]
        );
        assert_eq!(refused("/spec/names", "singular", json!("podroute")), [""; 0]);
    }

    #[test]
    fn a_definition_is_bounded() {
        let errors = refused("/spec", "description", json!("x".repeat(TEXT_BYTES_MAX + 1)));
        assert_eq!(errors, ["crds[0]: a text has 65537 bytes, at most 65536 are allowed"]);
        let many = vec![json!("x".repeat(TEXT_BYTES_MAX)); 17];
        let errors = refused("/spec", "description", json!(many));
        assert!(errors[0].ends_with("at most 1048576 are allowed"), "{errors:?}");
        let errors = refused("/spec", "pattern", json!("x".repeat(PATTERN_BYTES_MAX + 1)));
        assert_eq!(errors, ["crds[0]: a pattern has 4097 bytes, at most 4096 are allowed"]);
        let deep = (0..=DEPTH_MAX).fold(json!({}), |inner, _| json!([inner]));
        assert_eq!(refused("/spec", "deep", deep), ["crds[0]: is nested deeper than 100"]);
    }

    #[test]
    fn versions_are_counted_and_one_is_stored() {
        let version = |name: &str| json!({"name": name, "served": true, "storage": true});
        assert_eq!(
            refused("/spec", "versions", json!([version("v1"), version("v1")])),
            [
                "crds[0].spec.versions: more than one is the storage version",
                "crds[0].spec.versions: each needs a name of its own"
            ]
        );
        let many: Vec<_> = (0..21).map(|index| json!({"name": format!("v{index}")})).collect();
        assert_eq!(
            refused("/spec", "versions", json!(many)),
            ["crds[0].spec.versions: 21 are more than the 20 that a definition may have"]
        );
    }

    #[test]
    fn name_labels_that_describe_and_spec_are_taken_and_dropped_members_are_named() {
        let mut given = definition();
        given["metadata"]["labels"] = json!({"app.kubernetes.io/name": "a",
            "app.kubernetes.io/instance": "argo", "app.kubernetes.io/managed-by": "Helm", "x": "y"});
        given["metadata"]["annotations"] = json!({"helm.sh/hook": "pre-delete"});
        given["metadata"]["creationTimestamp"] = Value::Null;
        given["status"] = json!({"storedVersions": ["v9"], "conditions": []});
        given["other"] = json!(1);
        let spec = spec();
        let crd_request = crd_request(&given, &spec);
        assert!(crd_request.granted);
        assert_eq!(
            crd_request.definition["metadata"],
            json!({"name": "podroutes.quay.io", "labels": {"app.kubernetes.io/name": "a"}})
        );
        assert_eq!(crd_request.definition["spec"], given["spec"]);
        assert_eq!(crd_request.definition.as_object().unwrap().len(), 4);
        assert_eq!(
            crd_request.dropped,
            [
                "metadata.labels[app.kubernetes.io/instance]",
                "metadata.labels[app.kubernetes.io/managed-by]",
                "metadata.labels[x]",
                "metadata.annotations[helm.sh/hook]",
                "other",
                "status",
            ]
        );
        // What controller-gen writes is nothing.
        given["status"] = json!({"acceptedNames": {"kind": ""}, "storedVersions": []});
        assert!(!super::crd_request(&given, &spec).dropped.contains(&"status".to_owned()));
    }

    #[test]
    fn a_group_below_a_granted_one_is_not_granted() {
        let mut below = definition();
        below["spec"]["group"] = json!("sub.quay.io");
        let spec = spec();
        assert!(!crd_request(&below, &spec).granted);
    }
}
