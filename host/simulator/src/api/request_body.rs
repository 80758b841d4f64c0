//! Reads request bodies.

use serde_json::Value;

use crate::api::request_context::RequestContext;
use crate::types::status_error::StatusError;

/// The most opening brackets of YAML: the parser's time grows with the square of the number of
/// those that are open at once.
const OPENING_BRACKETS_MAX: usize = 10_000;

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
            yaml(body)
        }
    }
}

/// Reads a body as YAML.
pub(crate) fn yaml(body: &[u8]) -> Result<Value, String> {
    if opening_brackets(body) > OPENING_BRACKETS_MAX {
        return Err(format!("YAML with more than {OPENING_BRACKETS_MAX} opening brackets"));
    }
    serde_yaml_ng::from_slice(body).map_err(|error| error.to_string())
}

fn opening_brackets(body: &[u8]) -> usize {
    body.iter().filter(|byte| matches!(byte, b'[' | b'{')).count()
}

/// Reads a body as YAML, also one that begins like JSON: a comma before a closing brace is no error
/// then.
pub(crate) fn parse_yaml(body: &[u8]) -> Result<Value, String> {
    // The error about JSON says more where the body is neither.
    parse(body).or_else(|error| {
        let is_long = opening_brackets(body) > OPENING_BRACKETS_MAX;
        yaml(body).map_err(|yaml| if is_long { yaml } else { error })
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn comma_before_a_closing_brace_is_read_as_yaml_and_not_as_json() {
        let body = b"{\n\t\"spec\": {\n\t\t\"replicas\": 3,\n\t},\n}";
        assert_eq!(parse_yaml(body), Ok(json!({"spec": {"replicas": 3}})));
        assert!(parse(body).unwrap_err().contains("trailing comma"));
    }

    #[test]
    fn body_that_is_neither_json_nor_yaml_has_the_error_about_json() {
        assert_eq!(parse_yaml(b"{\"a\": "), parse(b"{\"a\": "));
        assert!(parse_yaml(b"{\"a\": ").is_err());
    }
}
