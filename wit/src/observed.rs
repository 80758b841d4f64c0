use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Kind, Reference};

/// What is: the argument of `reconcile`.
///
/// `P` is the type that the primary is read as, `O` the type of the owned objects. The host
/// joins this document from cached texts (see `innkeeper-core`); guests read it.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", bound(deserialize = "P: Deserialize<'de>, O: Deserialize<'de>"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Observed<P = Value, O = Value> {
    /// The primary, without `metadata.managedFields`.
    pub object: P,
    /// The objects that this primary has made, ordered by kind, namespace and name.
    #[serde(default)]
    pub owned: Vec<ObservedObject<O>>,
    /// What could not be applied in the round before, and why.
    #[serde(default)]
    pub unapplied: Vec<Unapplied>,
    /// Declared kinds that the API server does not serve now.
    #[serde(default)]
    pub unserved: Vec<Kind>,
    /// The Module's parameters, checked against the manifest's schema.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub parameters: Value,
    /// The primary is being deleted, and this guest's finalizer is on it.
    #[serde(default)]
    pub deleting: bool,
}

/// An object and how ready it is.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ObservedObject<O = Value> {
    /// The object, without `metadata.managedFields`; a Secret's values are digests, unless the
    /// Module grants its bytes (`secretNames`).
    pub object: O,
    /// How ready it is, by the rules of kstatus.
    pub readiness: Readiness,
}

/// The answer of `cluster.list`, ordered by namespace and name.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", bound(deserialize = "O: Deserialize<'de>"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ObservedList<O = Value> {
    /// The objects.
    #[serde(default)]
    pub items: Vec<ObservedObject<O>>,
}

/// How ready an object is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Readiness {
    /// The state.
    pub state: ReadinessState,
    /// Why, for people: empty when ready.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
}

/// The states of kstatus (`sigs.k8s.io/cli-utils/pkg/kstatus`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum ReadinessState {
    /// It is as its spec wants it (kstatus: Current).
    Ready,
    /// It is on the way.
    InProgress,
    /// It failed, and does not get better by itself.
    Failed,
    /// It is being deleted.
    Terminating,
    /// It cannot be told (also: a state that this version of the SDK does not know).
    #[default]
    #[serde(other)]
    Unknown,
}

/// A desired object that could not be applied.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Unapplied {
    /// Which.
    #[serde(flatten)]
    pub reference: Reference,
    /// One CamelCase word: `Conflict`, `Forbidden`, `Invalid`, `NotServed`, `Contested`, ...
    pub reason: String,
    /// Why, for people.
    pub message: String,
}
