use innkeeper_sdk::serde_json::{Value, json};
use serde::Deserialize;

use crate::Switch;

/// The Module's `spec.parameters`, which apply to all `MaintPage`s.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Parameters {
    /// When the Service switches, for a `MaintPage` that does not say.
    #[serde(default)]
    pub switch: Switch,
}

impl Parameters {
    /// Returns the JSON Schema, against which the host validates the parameters of the Module.
    pub fn schema() -> Value {
        json!({
            "type": "object",
            "additionalProperties": false,
            "properties": {
                "switch": {
                    "description": "When the Service switches after a change of the toggle, for a MaintPage without `spec.maintpageconfig.switch`: `WhenReady`, when the other side is ready, or `Immediately`.",
                    "type": "string",
                    "enum": ["WhenReady", "Immediately"],
                    "default": "WhenReady",
                },
            },
        })
    }
}
