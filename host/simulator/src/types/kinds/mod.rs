//! Built-in kinds: decoding, defaults, what a write may change, validation.

pub(crate) mod autoscaler;
pub(crate) mod canonical;
pub(crate) mod certificate;
pub(crate) mod claim;
pub(crate) mod controller_revision;
pub(crate) mod daemon_set;
pub(crate) mod defaults;
pub(crate) mod enums;
pub(crate) mod event_names;
pub(crate) mod job;
pub(crate) mod node;
pub(crate) mod pod;
pub(crate) mod prepare;
pub mod quantity;
pub(crate) mod validation;

use serde_json::Value;

use crate::mutation::{Mutation, is_active};
use crate::types::crd;
use crate::types::kind::Kind;
use crate::types::status_error::StatusError;

pub(crate) use crate::types::kinds::prepare::{
    ignored, note_phase, prepare_create, prepare_update,
};
pub(crate) use crate::types::kinds::validation::{
    LABEL_VALUE, is_account, is_label_value, label_key_problem, validate_create, validate_update,
};

/// Brings an object into the form in which the server has it, with defaults. Gives the paths of
/// unknown fields, which are dropped.
pub(crate) fn decode(kind: &Kind, object: &mut Value) -> Result<Vec<String>, StatusError> {
    let forgets = object["metadata"].get("managedFields").and_then(Value::as_array);
    let forgets = forgets.is_some_and(Vec::is_empty);
    let unknown = read(kind, object)?;
    if forgets {
        // An empty list means something else than an absent one.
        object["metadata"]["managedFields"] = Value::Array(Vec::new());
    }
    Ok(unknown)
}

fn read(kind: &Kind, object: &mut Value) -> Result<Vec<String>, StatusError> {
    if kind.custom.is_none() {
        let unknown = canonical::canonical(kind, object)?;
        if defaults::apply(kind, object) {
            // Defaults may have made structs that have empty ones in them.
            canonical::canonical(kind, object)?;
        }
        return Ok(unknown);
    }
    let unknown = if is_active(Mutation::NoPruning) {
        Vec::new()
    } else {
        crd::prune::prune(kind.schema(), object)
    };
    canonical::metadata(kind, object)?;
    if !is_active(Mutation::NoDefaulting) {
        crd::default::default(kind.schema(), object);
    }
    Ok(unknown)
}

/// As [`decode`], of what an apply has made: a custom resource is pruned, is given its defaults and
/// stays as it is otherwise, nulls too, until it has been checked.
pub(crate) fn decode_applied(kind: &Kind, object: &mut Value) -> Result<(), StatusError> {
    if kind.custom.is_none() {
        return decode(kind, object).map(|_| ());
    }
    if !is_active(Mutation::NoPruning) {
        // An apply may not set unknown fields, except under `additionalProperties: true`.
        crd::prune::prune(kind.schema(), object);
    }
    if !is_active(Mutation::NoDefaulting) {
        crd::default::fill(kind.schema(), object);
    }
    Ok(())
}

/// Gives an empty object the structs that it has all the same.
pub(crate) fn fill_structs(kind: &Kind, object: &mut Value) {
    if kind.custom.is_none() {
        // Nothing in it can be of a wrong type.
        let _ = canonical::canonical(kind, object);
    }
}

/// Brings an object into the form in which it is read. Returns whether a custom resource was in
/// another one: that counts as a change, although no reader sees it.
pub(crate) fn settle(kind: &Kind, object: &mut Value) -> Result<bool, StatusError> {
    if kind.custom.is_none() {
        canonical::forget_empty(kind.schema(), object);
        return Ok(false);
    }
    if crate::types::object::meta(object, "resourceVersion").is_empty() {
        // It is not stored with the object.
        crate::types::object::unset(object, "resourceVersion");
    }
    let before = object["metadata"].clone();
    canonical::metadata(kind, object)?;
    crd::default::drop_nulls(kind.schema(), object);
    Ok(before != object["metadata"])
}

/// What reading gives a new built-in object that is stored without it. Returns whether there was
/// anything: then the first write stores it, even if it changes nothing else.
pub(crate) fn complete(kind: &Kind, object: &mut Value) -> bool {
    kind.is("batch", "Job") && defaults::workload::label_job(object)
}

/// Whether an update may leave out its resourceVersion.
pub(crate) fn updates_unconditionally(kind: &Kind) -> bool {
    kind.custom.is_none()
        && !matches!(
            (kind.group.as_str(), kind.name.as_str()),
            (
                "apiextensions.k8s.io"
                    | "apiregistration.k8s.io"
                    | "coordination.k8s.io"
                    | "node.k8s.io"
                    | "policy",
                _
            )
        )
}

/// Whether an update makes what is not there.
pub(crate) fn creates_on_update(kind: &Kind) -> bool {
    kind.custom.is_none()
        && matches!(
            (kind.group.as_str(), kind.name.as_str()),
            ("coordination.k8s.io", "Lease")
                | ("rbac.authorization.k8s.io", _)
                | ("", "Event" | "Endpoints" | "LimitRange" | "Service")
                | ("events.k8s.io", "Event")
        )
}

/// Whether a delete is answered by the object.
pub(crate) fn returns_deleted(kind: &Kind) -> bool {
    kind.custom.is_none()
        && matches!(
            (kind.group.as_str(), kind.name.as_str()),
            (
                "",
                "Pod"
                    | "Service"
                    | "PersistentVolumeClaim"
                    | "PersistentVolume"
                    | "ServiceAccount"
                    | "ResourceQuota"
                    | "PodTemplate"
                    | "Namespace"
            ) | ("storage.k8s.io", "StorageClass")
                | ("resource.k8s.io", _)
        )
}

/// Whether what an object of the kind owns stays, unless a delete says otherwise.
pub(crate) fn orphans_by_default(kind: &Kind) -> bool {
    kind.is("batch", "Job") || kind.is("", "ReplicationController")
}

/// Whether the kind takes part in garbage collection.
pub(crate) fn is_collected(kind: &Kind) -> bool {
    !(kind.is("", "Event") || kind.is("events.k8s.io", "Event"))
}

/// How long an object is given when it is deleted; `None` if the kind knows no such time.
pub(crate) fn grace(kind: &Kind, object: &Value, wanted: Option<i64>) -> Option<i64> {
    if !kind.is("", "Pod") {
        return None;
    }
    let phase = object["status"]["phase"].as_str().unwrap_or_default();
    let unscheduled = object["spec"]["nodeName"].as_str().unwrap_or_default().is_empty();
    if unscheduled || matches!(phase, "Failed" | "Succeeded") {
        return Some(0);
    }
    Some(wanted.or_else(|| object["spec"]["terminationGracePeriodSeconds"].as_i64()).unwrap_or(30))
}

/// Whether an object whose finalizers are gone may go too.
pub(crate) fn may_go(kind: &Kind, object: &Value) -> bool {
    !kind.is("", "Namespace") || object["spec"]["finalizers"].as_array().is_none_or(Vec::is_empty)
}

/// Where the server keeps an object.
pub(crate) fn storage_key(kind: &Kind, namespace: &str, name: &str) -> String {
    let place = match (kind.group.as_str(), kind.plural.as_str()) {
        ("", "services") => "services/specs".to_owned(),
        ("", "nodes") => "minions".to_owned(),
        ("networking.k8s.io", "ingresses") => "ingress".to_owned(),
        (_, plural) if kind.custom.is_some() => format!("{}/{plural}", kind.group),
        (group @ ("apiextensions.k8s.io" | "apiregistration.k8s.io"), plural) => {
            format!("{group}/{plural}")
        }
        (_, plural) => plural.to_owned(),
    };
    match namespace {
        "" => format!("/{place}/{name}"),
        namespace => format!("/{place}/{namespace}/{name}"),
    }
}
