//! Reads request bodies.

use serde_json::Value;

use crate::api::request_context::RequestContext;
use crate::types::status_error::StatusError;

/// Reads the object of a create or update.
pub(crate) fn read(context: &RequestContext<'_>) -> Result<Value, StatusError> {
    parse(&context.request.body)
        .map_err(|error| StatusError::bad_request(format!("error decoding: {error}")))
}

/// Reads a body as JSON, or else as YAML.
pub(crate) fn parse(body: &[u8]) -> Result<Value, String> {
    match serde_json::from_slice(body) {
        Ok(value) => Ok(value),
        Err(json) => {
            let first = body.iter().find(|byte| !byte.is_ascii_whitespace());
            if first == Some(&b'{') {
                return Err(json.to_string());
            }
            serde_yaml_ng::from_slice(body).map_err(|error| error.to_string())
        }
    }
}
