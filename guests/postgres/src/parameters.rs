use innkeeper_sdk::serde_json::{Value, json};
use serde::Deserialize;

use crate::volume_spec::{CLAIM_NAME, VolumeSpec};

/// The Module's `spec.parameters`: where the volumes of `PostgreSQL`s are whose spec does not say
/// so. The CRD of the original operator has no fields for it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Parameters {
    /// The volume of the data.
    pub storage: VolumeSpec,
    /// The volume of the backups.
    pub backup: VolumeSpec,
}

impl Parameters {
    /// Returns the JSON Schema, against which the host validates the parameters of the Module.
    pub fn schema() -> Value {
        let class = |what: &str| {
            json!({
                "description": format!("Storage class of the volumes of {what}, where a PostgreSQL gives none."),
                "type": "string", "minLength": 1, "maxLength": 253,
            })
        };
        let claim = |what: &str| {
            json!({
                "description": format!("Existing PersistentVolumeClaim for {what} in the namespace of each PostgreSQL, where it gives none."),
                "type": "string", "minLength": 1, "maxLength": 253,
                "pattern": CLAIM_NAME,
            })
        };
        json!({
            "type": "object",
            "additionalProperties": false,
            "properties": {
                "storage": {
                    "type": "object",
                    "additionalProperties": false,
                    "properties": {
                        "className": class("the data and the backups"),
                        "claimName": claim("the data"),
                        "ephemeral": {
                            "description": "Keeps the data in the pod (emptyDir), as the original operator did. A new pod restores the newest backup; later rows are lost.",
                            "type": "boolean",
                        },
                    },
                },
                "backup": {
                    "type": "object",
                    "additionalProperties": false,
                    "properties": {
                        "className": class("the backups"),
                        "claimName": claim("the backups"),
                    },
                },
            },
        })
    }
}
