//! The resource `Module` (`innkeeper.dev/v1alpha1`), as users write it.
//!
//! These types are the one source of `deploy/crds/modules.innkeeper.dev.yaml` (see
//! [`crd`](crate::crd())). A field is here only if it works: what a later version brings is
//! refused until then, so that nobody relies on a setting that does nothing.
//!
//! What users write as text (durations, quantities) is text here;
//! [`ValidatedSpec`](crate::ValidatedSpec) is what the host works with.

mod policy;
mod policy_preview_status;
mod policy_status;
mod spec;
mod status;
mod value_source;

use std::collections::BTreeMap;

use innkeeper_contract::Kind;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::renamed;

pub use policy::{FailurePolicy, LabelSelector, ModeOverride, PolicyMode, PolicySpec};
pub use policy_preview_status::{HeldSettings, PolicyPreviewStatus, ReviewExampleStatus};
pub use policy_status::{PolicyAuditStatus, PolicyStatus};
pub use spec::{
    ConfigMapSource, CrdPolicy, Limits, ModuleSpec, Quantity, Rollout, RunResultRenewal, Source,
    Strategy,
};
pub use status::{
    CandidateStatus, EarlierRevision, ExampleStatus, GuestName, KindName, KindStatus,
    ModuleCondition, ModuleStatus, PreviewStatus, RejectedVersion,
};
pub use value_source::ValueSource;

/// The group of our resources.
pub const GROUP: &str = innkeeper_core::host_objects::GROUP;

/// The version of [`Module`].
pub const VERSION: &str = "v1alpha1";

/// `apiVersion` of a [`Module`].
pub const API_VERSION: &str = "innkeeper.dev/v1alpha1";

/// `kind` of a [`Module`].
pub const KIND: &str = "Module";

/// The plural of [`Module`], as in URLs and RBAC.
pub const PLURAL: &str = "modules";

/// The kind of a [`Module`], as requests name it.
pub fn kind() -> Kind {
    Kind::cluster(API_VERSION, KIND, PLURAL)
}

/// The namespace of the modules' ServiceAccounts and source ConfigMaps.
pub const NAMESPACE: &str = innkeeper_core::host_objects::MODULES_NAMESPACE;

/// The key of the guest in its ConfigMap's `binaryData`, unless the Module names one.
pub const SOURCE_KEY: &str = "guest.wasm";

/// The annotation by which a user approves a candidate: all 64 hex digits of its digest.
pub const APPROVE_ANNOTATION: &str = "innkeeper.dev/approve";

/// The annotation by which a user rejects a candidate, in the same form.
pub const REJECT_ANNOTATION: &str = "innkeeper.dev/reject";

/// The finalizer on a Module whose guest has one on its primaries: the host removes those before
/// the Module is deleted. A Module without it can be deleted also while no host runs.
pub const FINALIZER: &str = "innkeeper.dev/module";

/// Reconcile logic: a WebAssembly component, and how the host runs it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Module {
    /// `innkeeper.dev/v1alpha1`.
    pub api_version: String,
    /// `Module`.
    pub kind: String,
    /// Name, uid, generation and so on; the host reads those of [`Metadata`] only.
    pub metadata: Metadata,
    /// The desired state.
    pub spec: ModuleSpec,
    /// The observed state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<ModuleStatus>,
}

/// The members of a Module's `metadata` that the host reads.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Metadata {
    /// The name.
    pub name: String,
    /// The uid; empty in a file.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub uid: String,
    /// Counts changes of the spec; 0 in a file.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub generation: i64,
    /// The finalizers; the host's own is [`FINALIZER`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub finalizers: Vec<String>,
    /// When deletion was asked for, if it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deletion_timestamp: Option<String>,
    /// Annotations; the host reads [`APPROVE_ANNOTATION`] and [`REJECT_ANNOTATION`] only.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde gives a reference")]
fn is_zero(generation: &i64) -> bool {
    *generation == 0
}

/// Why a document is not a Module.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ModuleError {
    /// It is another kind of resource.
    #[error(
        "expected apiVersion: {API_VERSION}, kind: {KIND}, found apiVersion: {api_version}, kind: {kind}"
    )]
    Kind {
        /// The value, or `(none)`.
        api_version: String,
        /// The value, or `(none)`.
        kind: String,
    },
    /// A field is missing, unknown, or of another type.
    #[error("{path}: {message}")]
    Field {
        /// The field, as `spec.limits.memory`; `Module` for the whole.
        path: String,
        /// What is wrong.
        message: String,
    },
}

impl Module {
    /// Reads a Module from a parsed document.
    ///
    /// Only the shape is checked; [`ValidatedSpec::new`](crate::ValidatedSpec::new) checks the
    /// values.
    ///
    /// # Errors
    /// If the document is of another kind, or a field is unknown, renamed or of another type.
    pub fn from_value(value: &Value) -> Result<Self, ModuleError> {
        let text = |member: &str| match value.get(member) {
            Some(Value::String(value)) => value.clone(),
            Some(other) => other.to_string(),
            None => "(none)".to_owned(),
        };
        let (api_version, kind) = (text("apiVersion"), text("kind"));
        if api_version != API_VERSION || kind != KIND {
            return Err(ModuleError::Kind { api_version, kind });
        }
        if let Some((path, message)) = renamed::find(value) {
            return Err(ModuleError::Field { path, message });
        }
        serde_path_to_error::deserialize(value).map_err(|error| {
            let path = error.path().to_string();
            ModuleError::Field {
                path: if path == "." { KIND.to_owned() } else { path },
                message: error.inner().to_string(),
            }
        })
    }
}
