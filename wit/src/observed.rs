use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Kind, Reference};

/// The observed state: the argument of `reconcile`.
///
/// `P` is the type of the primary, `O` that of the owned objects. The host writes this document
/// from cached JSON texts; guests read it.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", bound(deserialize = "P: Deserialize<'de>, O: Deserialize<'de>"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
// Without what is about Rust.
#[cfg_attr(
    feature = "schema",
    schemars(description = "The observed state: the argument of `reconcile`.")
)]
pub struct Observed<P = Value, O = Value> {
    /// The primary, without `metadata.managedFields`.
    pub object: P,
    /// Objects of the kinds in `owned` of the manifest that belong to this primary, ordered by
    /// kind, namespace and name.
    #[serde(default)]
    pub owned: Vec<ObservedObject<O>>,
    /// Desired objects that the host could not apply after the previous run, each with the reason.
    #[serde(default)]
    pub unapplied: Vec<Unapplied>,
    /// Kinds of the manifest that the API server does not serve.
    #[serde(default)]
    pub unserved: Vec<Kind>,
    /// `parameters` of the Module, validated against `parametersSchema` of the manifest.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub parameters: Value,
    /// Whether the primary is being deleted and still has this guest's finalizer. The guest then
    /// returns the objects that must remain for now, and `finalized` when it is done.
    #[serde(default)]
    pub deleting: bool,
    /// Whether the host takes `readFields` in the answer. Earlier hosts refuse that member.
    #[serde(default)]
    pub report_read_fields: bool,
}

/// An object and its readiness.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ObservedObject<O = Value> {
    /// The object, without `metadata.managedFields`. Values of a Secret are digests, unless
    /// `secretNames` of the Module has its name.
    pub object: O,
    /// Whether the object is ready, by the rules of kstatus.
    pub readiness: Readiness,
}

/// The result of `cluster.list`, ordered by namespace and name.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", bound(deserialize = "O: Deserialize<'de>"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ObservedList<O = Value> {
    /// The objects of the kind that match.
    #[serde(default)]
    pub items: Vec<ObservedObject<O>>,
}

/// The readiness of an object.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Readiness {
    /// The state of the object.
    pub state: ReadinessState,
    /// Message for people: the reason of the state; empty if ready.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
}

/// The states of kstatus (`sigs.k8s.io/cli-utils/pkg/kstatus`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum ReadinessState {
    /// The object is reconciled with its spec (kstatus: Current).
    Ready,
    /// The object is being reconciled.
    InProgress,
    /// The object has failed and will not recover without a change.
    Failed,
    /// The object is being deleted.
    Terminating,
    /// The state is unknown, or this version of the SDK does not know it.
    #[default]
    #[serde(other)]
    Unknown,
}

/// A desired object that the host could not apply.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Unapplied {
    /// The object.
    #[serde(flatten)]
    pub reference: Reference,
    /// Reason for programs, one CamelCase word: `Conflict` (the object belongs to another owner),
    /// `Forbidden`, `Invalid`, `Contested` (another client keeps changing the same fields),
    /// `NotServed`, `MergeTargetMissing` and others.
    pub reason: String,
    /// Message for people: why, and what to do.
    pub message: String,
}
