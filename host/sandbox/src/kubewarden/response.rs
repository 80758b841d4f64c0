//! The responses of a Kubewarden policy.

use std::collections::BTreeMap;

use innkeeper_contract::Verdict;
use serde::Deserialize;
use serde_json::Value;

use crate::output::Document;

/// The response to `validate`. Unknown members are ignored, as Kubewarden does.
#[derive(Deserialize)]
pub(crate) struct ValidationResponse {
    accepted: bool,
    message: Option<String>,
    code: Option<i64>,
    mutated_object: Option<Value>,
    audit_annotations: Option<BTreeMap<String, String>>,
    warnings: Option<Vec<String>>,
}

impl Document for ValidationResponse {
    const NAME: &'static str = "validation response";

    fn values(&self) -> impl Iterator<Item = &Value> {
        self.mutated_object.iter()
    }
}

impl From<ValidationResponse> for Verdict {
    fn from(response: ValidationResponse) -> Self {
        Self {
            allowed: response.accepted,
            message: response.message.unwrap_or_default(),
            reason: String::new(),
            code: response.code,
            causes: Vec::new(),
            warnings: response.warnings.unwrap_or_default(),
            audit_annotations: response.audit_annotations.unwrap_or_default(),
            object: response.mutated_object,
        }
    }
}

/// The response to `validate_settings`.
#[derive(Deserialize)]
pub(crate) struct SettingsResponse {
    pub(crate) valid: bool,
    pub(crate) message: Option<String>,
}

impl Document for SettingsResponse {
    const NAME: &'static str = "settings validation response";
}

/// The response to `protocol_version`.
#[derive(Deserialize)]
pub(crate) struct ProtocolVersion(pub(crate) String);

impl Document for ProtocolVersion {
    const NAME: &'static str = "protocol version";
}
