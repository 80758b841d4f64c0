//! The schemas of the fields of a status that the host writes.

use serde_json::{Value, json};

/// Returns the schema of the guest's status with the fields that the host writes.
pub(super) fn status(mut schema: Value) -> Value {
    if schema.get("properties").is_none() {
        schema["properties"] = json!({});
    }
    // The object must be valid before the first status is written.
    if let Some(members) = schema.as_object_mut() {
        members.remove("required");
    }
    schema["properties"]["observedGeneration"] = json!({
        "description": "The generation of the primary that this status is about.",
        "type": "integer",
        "format": "int64",
    });
    schema["properties"]["conditions"] = json!({
        "description": "Conditions of the primary.",
        "type": "array",
        // A map, so that several field managers can each own conditions.
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["type"],
        "items": {
            "type": "object",
            "required": ["type", "status", "lastTransitionTime", "reason", "message"],
            "properties": {
                "type": {
                    "description": "Type of the condition, CamelCase.",
                    "type": "string",
                    "maxLength": 316,
                },
                "status": {
                    "description": "Status of the condition.",
                    "type": "string",
                    "enum": ["True", "False", "Unknown"],
                },
                "reason": {
                    "description": "Reason of the last transition, one CamelCase word.",
                    "type": "string",
                    "minLength": 1,
                    "maxLength": 1024,
                },
                "message": {
                    "description": "Details of the last transition, for people.",
                    "type": "string",
                    "maxLength": 32768,
                },
                "lastTransitionTime": {
                    "description": "Time at which the status of the condition last changed.",
                    "type": "string",
                    "format": "date-time",
                },
                "observedGeneration": {
                    "description": "The generation of the primary that this condition is about.",
                    "type": "integer",
                    "format": "int64",
                    "minimum": 0,
                },
            },
        },
    });
    schema
}

/// Returns the schema of a number of objects.
fn count(description: &str) -> Value {
    json!({ "description": description, "type": "integer", "format": "int64", "minimum": 0 })
}

/// Returns the schema of `ansibleResult` in a condition, which the host writes if the definition
/// has it.
pub(super) fn run_result() -> Value {
    json!({
        "description": "Result of the last run, in the condition Running.",
        "type": "object",
        "properties": {
            "ok": count("Number of objects that were in sync at the end."),
            "changed": count("Number of objects that the run created, changed or deleted."),
            "skipped": count("Number of objects that the run left as they are, neither in sync nor a failure: a pause holds them back, they wait for another one, or the cluster does not serve their kind."),
            "failures": count("Number of failed operations."),
            "completion": {
                "description": "Time at which the run ended.",
                "type": "string",
                "format": "date-time",
            },
        },
    })
}

/// Returns the schema of `status.lastRun`, which the host writes if the definition has it.
pub(super) fn last_run() -> Value {
    json!({
        "description": "Result of the last run that changed an object, or whose failures differed from those of the run before.",
        "type": "object",
        "properties": {
            "ok": count("Number of objects that were in sync at the end."),
            "changed": count("Number of objects that the run created, changed or deleted."),
            "failures": count("Number of failed operations."),
            "completionTime": {
                "description": "Time at which the run ended.",
                "type": "string",
                "format": "date-time",
            },
        },
    })
}
