use innkeeper_sdk::serde_json::{Value, json};
use serde::Deserialize;

use crate::period;

/// The Module's `spec.parameters`, which apply to all Kuris.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Parameters {
    /// Operations of the module; both if left out.
    #[serde(default = "both")]
    pub operations: Vec<Operation>,
    /// Period of the Kuris that set no `spec.period`; if left out, they run once.
    #[serde(default)]
    pub period: Option<String>,
    /// Deadline of the Kuris that set no `spec.deadlineSeconds`.
    #[serde(default)]
    pub deadline_seconds: Option<i64>,
}

/// An operation of the module.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Operation {
    /// Creates a Job for each Kuri. Without this operation the guest deletes the Jobs.
    Deploy,
    /// Keeps a deleted Kuri until its Job and the Job's pods are deleted. Without this operation
    /// the Kuri is removed at once, and the garbage collector deletes them later. A periodic Kuri
    /// needs it between two runs.
    Cleanup,
}

impl Parameters {
    /// Returns the JSON Schema, against which the host validates the parameters of the Module.
    pub fn schema() -> Value {
        json!({
            "type": "object",
            "additionalProperties": false,
            "properties": {
                "operations": {
                    "description": "Operations of the module: `deploy` creates a Job for each Kuri; `cleanup` keeps a deleted Kuri until its Job and the Job's pods are deleted.",
                    "type": "array",
                    "items": { "type": "string", "enum": ["deploy", "cleanup"] },
                    "uniqueItems": true,
                    "default": ["deploy", "cleanup"],
                },
                "period": {
                    "description": "Period of the Kuris that set no `spec.period`, from 10s to 8760h: each period the guest deletes the Job and its pods and creates the Job again. If left out, these Kuris run once.",
                    "type": "string",
                    "maxLength": period::LENGTH_MAX,
                    "pattern": period::PATTERN,
                },
                "deadlineSeconds": {
                    "description": "Seconds until a run fails, for the Kuris that set no `spec.deadlineSeconds`.",
                    "type": "integer",
                    "minimum": 1,
                },
            },
        })
    }

    /// Returns whether the module has this operation.
    pub fn has(&self, operation: Operation) -> bool {
        self.operations.contains(&operation)
    }
}

fn both() -> Vec<Operation> {
    vec![Operation::Deploy, Operation::Cleanup]
}
