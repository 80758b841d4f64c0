use innkeeper_sdk::serde_json::{Value, json};
use serde::Deserialize;

/// The Module's `spec.parameters`, which apply to all Podroutes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Parameters {
    /// Number of pods of a Podroute without `spec.replicas`; 0 if left out.
    #[serde(default)]
    pub replicas_when_left_out: i32,
}

impl Parameters {
    /// Returns the JSON Schema, against which the host validates the parameters of the Module.
    pub fn schema() -> Value {
        json!({
            "type": "object",
            "additionalProperties": false,
            "properties": {
                "replicasWhenLeftOut": {
                    "description": "Number of pods of a Podroute without `spec.replicas`.",
                    "type": "integer",
                    "minimum": 0,
                    "maximum": i32::MAX,
                    "default": 0,
                },
            },
        })
    }
}
