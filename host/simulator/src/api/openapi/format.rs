//! The two versions of OpenAPI in which types are published.

use serde_json::{Value, json};

/// A version of OpenAPI.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    V2,
    V3,
}

impl Format {
    /// How a schema names a type.
    pub(crate) fn reference(self, name: &str) -> String {
        match self {
            Self::V2 => format!("#/definitions/{name}"),
            Self::V3 => format!("#/components/schemas/{name}"),
        }
    }

    /// A described field of another type.
    pub(crate) fn field(self, name: &str, description: &str) -> Value {
        let reference = json!({ "$ref": self.reference(name) });
        match self {
            Self::V2 => json!({"description": description, "$ref": reference["$ref"]}),
            // A schema of version 3 with `$ref` may have no other member.
            Self::V3 => json!({"description": description, "allOf": [reference]}),
        }
    }
}
