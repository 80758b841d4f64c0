use std::collections::BTreeMap;

use innkeeper_sdk::Verdict;
use innkeeper_sdk::serde_json::{Value, json};
use serde::Deserialize;

use crate::quantity::Quantity;

/// The parameters of the Module, written as in the spec of a container.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Parameters {
    /// Resources of containers that name none.
    pub resources: Resources,
    /// Security context of containers.
    pub security_context: SecurityContext,
}

/// Default resources: quantities by the name of the resource.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Resources {
    /// Requests.
    pub requests: BTreeMap<String, String>,
    /// Limits.
    pub limits: BTreeMap<String, String>,
}

/// A default security context. A field that is left out gets no default.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct SecurityContext {
    /// Only `true` has a meaning.
    pub run_as_non_root: Option<bool>,
    /// Only `false` has a meaning.
    pub allow_privilege_escalation: Option<bool>,
    /// Capabilities.
    pub capabilities: Capabilities,
    /// Seccomp profile.
    pub seccomp_profile: Option<SeccompProfile>,
}

/// Default capabilities.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Capabilities {
    /// The capabilities to drop, for example `ALL`.
    pub drop: Vec<String>,
}

/// A default seccomp profile.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SeccompProfile {
    /// Only `RuntimeDefault` is allowed.
    #[serde(rename = "type")]
    pub type_: String,
}

impl Parameters {
    /// Returns the schema of the parameters.
    pub(crate) fn schema() -> Value {
        // Of other resources, requests and limits must be equal, or only some nodes have them.
        let amount = json!({"type": "string", "maxLength": 32,
            "pattern": "^[0-9]+(\\.[0-9]+)?(m|k|M|G|T|P|Ki|Mi|Gi|Ti|Pi)?$"});
        let amounts = json!({
            "type": "object",
            "additionalProperties": false,
            "properties": {"cpu": amount, "memory": amount, "ephemeral-storage": amount},
        });
        let object = |properties: Value| json!({"type": "object", "additionalProperties": false, "properties": properties});
        let capability = json!({"type": "string", "maxLength": 64, "pattern": "^[A-Z0-9_]+$"});
        let drop = json!({"type": "array", "maxItems": 64, "items": capability});
        let profile = json!({"type": "string", "enum": ["RuntimeDefault"]});
        let mut seccomp = object(json!({"type": profile}));
        seccomp["required"] = json!(["type"]);
        object(json!({
            "resources": object(json!({"requests": amounts, "limits": amounts})),
            "securityContext": object(json!({
                "runAsNonRoot": {"type": "boolean", "enum": [true]},
                "allowPrivilegeEscalation": {"type": "boolean", "enum": [false]},
                "capabilities": object(json!({"drop": drop})),
                "seccompProfile": seccomp,
            })),
        }))
    }

    /// Checks what the schema cannot express.
    ///
    /// # Errors
    /// A failed verdict if a request is above the limit of the same resource.
    pub(crate) fn check(&self) -> Result<(), Verdict> {
        let Resources { requests, limits } = &self.resources;
        for (name, request) in requests {
            let Some(limit) = limits.get(name) else { continue };
            if Quantity::parse(request) > Quantity::parse(limit) {
                return Err(Verdict::failed(format!(
                    "spec.parameters.resources of the Module: the request of {name}, {request}, is above its limit, {limit}; lower the request"
                )));
            }
        }
        Ok(())
    }
}
