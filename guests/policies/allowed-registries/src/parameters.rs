use innkeeper_sdk::Verdict;
use innkeeper_sdk::serde_json::{Value, json};
use serde::Deserialize;

use crate::image::Repository;

/// The parameters of the Module.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Parameters {
    /// The registries and repositories that images may come from, for example `ghcr.io/shop`.
    pub allowed: Vec<String>,
    /// Whether each image needs a digest.
    #[serde(default)]
    pub require_digests: bool,
}

impl Parameters {
    /// Returns the schema of the parameters.
    pub(crate) fn schema() -> Value {
        json!({
            "type": "object",
            "required": ["allowed"],
            "additionalProperties": false,
            "properties": {
                "allowed": {
                    "type": "array",
                    "minItems": 1,
                    "maxItems": 64,
                    "items": {"type": "string", "minLength": 1, "maxLength": 255},
                },
                "requireDigests": {"type": "boolean"},
            },
        })
    }

    /// Parses the allowed repositories.
    ///
    /// # Errors
    /// A failed verdict that names the first one that is none.
    pub(crate) fn repositories(&self) -> Result<Vec<Repository>, Verdict> {
        let parse = |text: &String| {
            Repository::parse_allowed(text).map_err(|why| {
                Verdict::failed(format!("spec.parameters.allowed of the Module: {text:?}: {why}"))
            })
        };
        self.allowed.iter().map(parse).collect()
    }
}
