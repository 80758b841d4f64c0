//! What an installation does with one definition.

use innkeeper_core::{Object, crd_compat};
use innkeeper_modules::CrdRequest;
use serde_json::Value;

/// The decision about one definition.
pub(super) enum Decision {
    /// The installed one is used as it is.
    Keep,
    /// The installed one is used, and nobody may read it.
    KeepUnreadable,
    /// It is written.
    Write(Box<Write>),
}

/// A definition to be written.
pub(super) struct Write {
    /// What is sent.
    pub(super) body: Value,
    /// Whether it is there.
    pub(super) exists: bool,
    /// Fields of its spec that change; none if it is not there yet.
    pub(super) fields: Vec<String>,
    /// The foreign definition that becomes the module's.
    pub(super) foreign: Option<ForeignDefinition>,
}

/// An installed definition that the host did not install.
pub(super) struct ForeignDefinition {
    /// Its spec.
    pub(super) spec: Value,
    /// What the module's definition takes away from it.
    pub(super) narrowing: Vec<String>,
    /// New constraints of the module's definition that stored objects are not checked against.
    pub(super) unchecked: Vec<String>,
    /// What users of kubectl lose.
    pub(super) display_losses: Vec<String>,
}

impl Write {
    /// Creates a definition that is not there; if one appears meanwhile, the write fails.
    pub(super) fn new(body: Value) -> Box<Self> {
        let body = guarded_by(body, "resourceVersion", "1");
        Box::new(Self { body, exists: false, fields: Vec::new(), foreign: None })
    }

    /// Replaces an installed definition; if it changes meanwhile, the write fails, since the change
    /// has not been compared.
    pub(super) fn over(
        live: &Object,
        body: Value,
        fields: Vec<String>,
        foreign: Option<ForeignDefinition>,
    ) -> Box<Self> {
        let body = guarded_by(body, "uid", &live.uid);
        let body = guarded_by(body, "resourceVersion", &live.resource_version);
        Box::new(Self { body, exists: true, fields, foreign })
    }
}

impl ForeignDefinition {
    /// Compares a foreign definition with that of the module.
    pub(super) fn new(installed: &Value, request: &CrdRequest) -> Self {
        Self {
            spec: installed["spec"].clone(),
            narrowing: crd_compat::incompatible_changes(installed, &request.definition),
            unchecked: crd_compat::unchecked_changes(installed, &request.definition),
            display_losses: crd_compat::display_losses(installed, &request.definition),
        }
    }

    /// Whether the module's definition takes something away from it.
    pub(super) fn is_narrowed(&self) -> bool {
        !self.narrowing.is_empty()
    }
}

fn guarded_by(mut body: Value, name: &str, value: &str) -> Value {
    body["metadata"][name] = value.into();
    body
}
