use innkeeper_sdk::serde_json::{Value, json};
use serde::Deserialize;

/// What the Module gives to all Kuris.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Parameters {
    /// What the module does; both if left out.
    #[serde(default = "both")]
    pub operations: Vec<Operation>,
}

/// Something that the module does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Operation {
    /// A Kuri has a Job. Without it, the Jobs that were made go, and their pods.
    Deploy,
    /// A Kuri that is deleted goes when its Job and the Job's pods are gone. Without it, the
    /// garbage collector takes them some time later.
    Cleanup,
}

impl Parameters {
    /// The schema, by which the host refuses a Module whose parameters do not fit.
    pub fn schema() -> Value {
        json!({
            "type": "object",
            "additionalProperties": false,
            "properties": {
                "operations": {
                    "description": "What the module does: `deploy` makes a Job for each Kuri, `cleanup` lets a deleted Kuri go when its Job and the Job's pods are gone.",
                    "type": "array",
                    "items": { "type": "string", "enum": ["deploy", "cleanup"] },
                    "uniqueItems": true,
                    "default": ["deploy", "cleanup"],
                },
            },
        })
    }

    /// Whether the module does this.
    pub fn has(&self, operation: Operation) -> bool {
        self.operations.contains(&operation)
    }
}

fn both() -> Vec<Operation> {
    vec![Operation::Deploy, Operation::Cleanup]
}
