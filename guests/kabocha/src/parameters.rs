use innkeeper_sdk::serde_json::{Value, json};
use serde::Deserialize;

/// The Module's `spec.parameters`, which apply to all Kabochas. The guest ignores other members, as
/// a role ignores variables that none of its tasks uses.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Parameters {
    /// Phases of a Kabocha without children, in the order in which the role would set them.
    pub phase: Vec<String>,
}

impl Parameters {
    /// Returns the JSON Schema, against which the host validates the parameters of the Module.
    pub fn schema() -> Value {
        json!({
            "type": "object",
            "properties": {
                "phase": {
                    "description": "Phases of a Kabocha without children, in the order in which the role would set them: its status is the last one and nothing else. If left out, the guest reports the readiness of the (no) children.",
                    "type": "array",
                    "minItems": 1,
                    "maxItems": 32,
                    "items": { "type": "string", "minLength": 1, "maxLength": 253 },
                },
            },
        })
    }

    /// Returns the phase that the status of a Kabocha without children ends with, if the Module
    /// sets one.
    pub fn last_phase(&self) -> Option<&str> {
        self.phase.last().map(String::as_str)
    }
}
