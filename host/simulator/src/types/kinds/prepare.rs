//! The members that a write may change, and the generation.

use std::sync::OnceLock;

use serde_json::Value;

use crate::apply::fieldset::FieldSet;
use crate::mutation::{Mutation, is_active};
use crate::types::kind::Kind;
use crate::types::kinds::certificate;
use crate::types::object::{copy, copy_meta, generation};

/// How the generation of a kind counts.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Counts {
    /// Not at all.
    Nothing,
    /// Changes of the spec.
    Spec,
    /// Changes of spec or annotations.
    SpecAndAnnotations,
    /// Changes of anything but the metadata.
    Content,
}

fn counts(kind: &Kind) -> Counts {
    match (kind.group.as_str(), kind.name.as_str()) {
        _ if kind.custom.is_some() => Counts::Content,
        ("apps", "Deployment") => Counts::SpecAndAnnotations,
        ("apps", "DaemonSet" | "ReplicaSet" | "StatefulSet")
        | ("batch" | "apiextensions.k8s.io" | "flowcontrol.apiserver.k8s.io", _)
        | ("", "Pod" | "ReplicationController")
        | ("networking.k8s.io", "Ingress" | "NetworkPolicy" | "IngressClass")
        | ("policy", "PodDisruptionBudget")
        | ("scheduling.k8s.io", "PriorityClass")
        | ("resource.k8s.io", "DeviceClass" | "ResourceSlice") => Counts::Spec,
        ("discovery.k8s.io", "EndpointSlice") | ("admissionregistration.k8s.io", _) => {
            Counts::Content
        }
        _ => Counts::Nothing,
    }
}

/// Whether status is written by itself only.
fn has_status(kind: &Kind) -> bool {
    kind.subresources.contains("status")
}

/// The fields that a write to this (sub)resource cannot change, and so does not own.
pub(crate) fn ignored(kind: &Kind, subresource: &str) -> &'static FieldSet {
    static NOTHING: OnceLock<FieldSet> = OnceLock::new();
    static STATUS: OnceLock<FieldSet> = OnceLock::new();
    static SPEC: OnceLock<FieldSet> = OnceLock::new();
    static OF_DEFINITION: OnceLock<FieldSet> = OnceLock::new();
    static OF_DEPLOYMENT: OnceLock<FieldSet> = OnceLock::new();
    static OF_APPROVAL: OnceLock<FieldSet> = OnceLock::new();
    static OF_CERTIFICATE: OnceLock<FieldSet> = OnceLock::new();
    static OF_REQUEST: OnceLock<FieldSet> = OnceLock::new();
    static OF_POD: OnceLock<FieldSet> = OnceLock::new();
    let (set, paths): (_, &[&[&str]]) = match subresource {
        "status" if kind.group == "apiextensions.k8s.io" => {
            (&OF_DEFINITION, &[&["metadata"], &["spec"]])
        }
        "approval" => (&OF_APPROVAL, &[&["spec"], &["status", "certificate"]]),
        "status" if kind.group == "certificates.k8s.io" => {
            (&OF_CERTIFICATE, &[&["spec"], &["status", "conditions"]])
        }
        "status" => match kind.name.as_str() {
            "Deployment" => (&OF_DEPLOYMENT, &[&["spec"], &["metadata", "labels"]]),
            "Pod" => (
                &OF_POD,
                &[&["spec"], &["metadata", "deletionTimestamp"], &["metadata", "ownerReferences"]],
            ),
            _ => (&SPEC, &[&["spec"]]),
        },
        _ if kind.group == "certificates.k8s.io" => (&OF_REQUEST, &[&["spec"], &["status"]]),
        _ if has_status(kind) => (&STATUS, &[&["status"]]),
        _ => (&NOTHING, &[]),
    };
    set.get_or_init(|| FieldSet::of(paths))
}

/// Prepares a new object. A Job may share its labels with its template.
pub(crate) fn prepare_create(kind: &Kind, object: &mut Value, shares_labels: bool) {
    if has_status(kind)
        && let Some(map) = object.as_object_mut()
    {
        map.remove("status");
        crate::types::kinds::defaults::create::status(kind, object);
    }
    crate::types::kinds::defaults::create::created(kind, object, shares_labels);
    crate::types::kinds::node::admit(kind, object);
    name_secrets(kind, object);
    if kind.is("apps", "DaemonSet") {
        crate::types::kinds::daemon_set::created(object);
    }
    if counts(kind) == Counts::Nothing {
        crate::types::object::unset(object, "generation");
    } else {
        object["metadata"]["generation"] = 1.into();
    }
}

/// Of the secrets of an account nothing but the names is kept.
fn name_secrets(kind: &Kind, object: &mut Value) {
    if !kind.is("", "ServiceAccount") {
        return;
    }
    for secret in object.get_mut("secrets").and_then(Value::as_array_mut).into_iter().flatten() {
        if let Some(secret) = secret.as_object_mut() {
            secret.retain(|name, _| name == "name");
        }
    }
}

fn same(new: &Value, old: &Value, names: &[&str]) -> bool {
    names.iter().all(|name| new.get(name) == old.get(name))
}

/// Resets members that an update may not change, and counts the generation.
pub(crate) fn prepare_update(kind: &Kind, subresource: &str, new: &mut Value, old: &Value) {
    if subresource == "status" {
        if is_active(Mutation::StatusWritesSpec) {
            return;
        }
        status_update(kind, new, old);
        certificate::prepare_update(kind, subresource, new, old);
        return;
    }
    if subresource == "approval" {
        certificate::prepare_update(kind, subresource, new, old);
        return;
    }
    if has_status(kind) && !is_active(Mutation::StatusIsWrittenWithSpec) {
        copy(old, new, "status");
        crate::types::kinds::defaults::create::store_version(kind, new);
    }
    certificate::prepare_update(kind, subresource, new, old);
    name_secrets(kind, new);
    if kind.is("apps", "DaemonSet") {
        crate::types::kinds::daemon_set::updated(new, old);
    }
    if is_active(Mutation::GenerationNeverGrows) {
        return;
    }
    let changed = match counts(kind) {
        Counts::Nothing => false,
        Counts::Spec => !same(new, old, &["spec"]),
        Counts::SpecAndAnnotations => {
            !same(new, old, &["spec"])
                || new["metadata"]["annotations"] != old["metadata"]["annotations"]
        }
        Counts::Content => {
            let content = |object: &Value| {
                let mut map = object.as_object().cloned().unwrap_or_default();
                map.remove("metadata");
                map
            };
            content(new) != content(old)
        }
    };
    let metadata = is_active(Mutation::MetadataGrowsGeneration)
        && new["metadata"]["labels"] != old["metadata"]["labels"];
    if changed || metadata {
        new["metadata"]["generation"] = (generation(old) + 1).into();
    }
}

fn status_update(kind: &Kind, new: &mut Value, old: &Value) {
    if kind.custom.is_some() {
        // Of a custom resource nothing but its status can be written here.
        crate::types::object::only_status(new, old);
        return;
    }
    copy(old, new, "spec");
    if kind.is("apps", "Deployment") {
        copy_meta(old, new, "labels");
    }
    if kind.is("", "Pod") {
        copy_meta(old, new, "ownerReferences");
        if new["status"]["qosClass"].as_str().unwrap_or_default().is_empty() {
            let class = old["status"]["qosClass"].clone();
            new["status"]["qosClass"] = class;
        }
    }
}

/// Notes down when the phase of a volume last changed, unless a writer of its status does that, and
/// when the conditions of a request for a certificate did.
pub(crate) fn note_phase(kind: &Kind, new: &mut Value, old: &Value, now: &str) {
    const NAME: &str = "lastPhaseTransitionTime";
    certificate::note_times(kind, new, old, now);
    if !kind.is("", "PersistentVolume") || !new["status"].is_object() {
        return;
    }
    let (then, given) = (old["status"][NAME].clone(), new["status"][NAME].clone());
    if old["status"]["phase"] == new["status"]["phase"] {
        if given.is_null() && !then.is_null() {
            new["status"][NAME] = then;
        }
    } else if given.is_null() || given == then {
        new["status"][NAME] = now.into();
    }
}
