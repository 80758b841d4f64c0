use innkeeper_sdk::KindName;
use innkeeper_sdk::serde_json::{Value, json};
use serde::Deserialize;

/// The parameters of the Module.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Parameters {
    /// Name of the label that protects an object, whatever its value is.
    pub label: String,
    /// Name of the annotation that releases an object: its value is the object's name.
    pub release_annotation: String,
    /// Kinds whose protected objects keep their Namespace, in addition to claims and databases.
    #[serde(default)]
    pub kinds: Vec<KindName>,
}

impl Parameters {
    /// Returns the schema of the parameters.
    pub(crate) fn schema() -> Value {
        let name = json!({"type": "string", "minLength": 1, "maxLength": 317,
            "pattern": "^([a-z0-9.-]+/)?[A-Za-z0-9]([A-Za-z0-9_.-]*[A-Za-z0-9])?$"});
        let text = json!({"type": "string", "minLength": 1, "maxLength": 253});
        json!({
            "type": "object",
            "required": ["label", "releaseAnnotation"],
            "additionalProperties": false,
            "properties": {
                "label": name,
                "releaseAnnotation": name,
                "kinds": {
                    "type": "array",
                    "maxItems": 20,
                    "items": {
                        "type": "object",
                        "required": ["apiVersion", "kind"],
                        "additionalProperties": false,
                        "properties": {"apiVersion": text, "kind": text},
                    },
                },
            },
        })
    }
}
