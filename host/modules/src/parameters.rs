//! A Module's parameters against the schema that its guest describes.

use std::fmt::Write as _;

use innkeeper_contract::Manifest;
use innkeeper_core::foreign;
use innkeeper_sandbox::schema::{self, Misfit, Problem, SchemaError};
use innkeeper_sandbox::{CallError, Guest, SettingsError};
use serde_json::{Map, Value};

/// The longest reason of a policy that refuses its parameters, in bytes.
const REASON_BYTES_MAX: usize = 1_024;

/// Why parameters cannot be handed to a guest.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParametersError {
    /// The Module gives parameters, and the guest takes none.
    #[error("the guest takes no parameters: remove spec.parameters ({})", .0.join(", "))]
    Unexpected(Vec<String>),
    /// The guest's schema cannot be used: the guest's mistake.
    #[error("the guest's parametersSchema is not a usable JSON Schema: {0}")]
    Schema(String),
    /// The guest's schema takes too much time or memory for these parameters.
    #[error("the guest's parametersSchema takes too much for these parameters: {0}")]
    TooCostly(String),
    /// The parameters do not fit.
    #[error("{}", .0.join("; "))]
    Misfit(Vec<String>),
    /// The policy itself refuses the parameters, for this reason in one line.
    #[error("spec.parameters: the policy refuses them: {0}")]
    Refused(String),
    /// The policy failed when it was asked about the parameters, for this reason in one line.
    #[error("spec.parameters: validate_settings of the policy failed: {0}")]
    Unanswered(String),
    /// The host could not evaluate the schema. That is the host's trouble.
    #[error("the host cannot evaluate the guest's parametersSchema: {0}")]
    Unavailable(String),
}

/// Checks parameters (an object, or null for none) against a manifest, in this process.
///
/// # Errors
/// [`ParametersError`]; [`ParametersError::Schema`] is the guest's fault, the others the Module's.
pub fn check(manifest: &Manifest, parameters: &Value) -> Result<(), ParametersError> {
    check_with(manifest, parameters, schema::validate)
}

/// The same with another way to evaluate a schema against a document.
///
/// # Errors
/// [`ParametersError`].
pub fn check_with(
    manifest: &Manifest,
    parameters: &Value,
    validate: impl FnOnce(&Value, &Value) -> Result<(), SchemaError>,
) -> Result<(), ParametersError> {
    let Some(schema) = &manifest.parameters_schema else {
        return match parameters.as_object() {
            Some(members) if !members.is_empty() => {
                Err(ParametersError::Unexpected(members.keys().cloned().collect()))
            }
            _ => Ok(()),
        };
    };
    // What is left out is an object without members, so that a schema without required
    // members is content with it.
    let none = Value::Object(Map::new());
    let document = if parameters.is_null() { &none } else { parameters };
    validate(&schema.value(), document).map_err(|error| match error {
        SchemaError::Unusable(why) => ParametersError::Schema(why),
        SchemaError::TooCostly(why) => ParametersError::TooCostly(why),
        SchemaError::Misfit(misfit) => ParametersError::Misfit(problems(&misfit)),
        other => ParametersError::Unavailable(other.to_string()),
    })
}

/// Asks the policy itself about parameters that fit its manifest, if it is one of Kubewarden.
///
/// # Errors
/// [`ParametersError::Refused`], [`ParametersError::Unanswered`], and
/// [`ParametersError::Unavailable`] if the sandbox has no room now.
pub fn ask(guest: &Guest, parameters: &Value) -> Result<(), ParametersError> {
    guest.check_settings(parameters).map_err(|error| match error {
        SettingsError::Refused(why) if why.trim().is_empty() => {
            ParametersError::Refused("it gives no reason".to_owned())
        }
        SettingsError::Refused(why) => {
            ParametersError::Refused(foreign::one_line(why, REASON_BYTES_MAX))
        }
        SettingsError::Failed(error @ CallError::Busy { .. }) => {
            ParametersError::Unavailable(error.to_string())
        }
        SettingsError::Failed(error) => {
            ParametersError::Unanswered(foreign::one_line(error, REASON_BYTES_MAX))
        }
    })
}

/// A text for each problem, with the field of the Module.
fn problems(misfit: &Misfit) -> Vec<String> {
    let mut texts: Vec<String> = misfit.problems.iter().map(problem).collect();
    if misfit.more > 0 {
        texts.push(format!("and {} more", misfit.more));
    }
    texts
}

fn problem(Problem { pointer, message }: &Problem) -> String {
    let mut field = "spec.parameters".to_owned();
    for part in pointer.split('/').skip(1) {
        let part = part.replace("~1", "/").replace("~0", "~");
        // Infallible: the target is a String.
        let _ = match part.parse::<usize>() {
            Ok(index) => write!(field, "[{index}]"),
            Err(_) => write!(field, ".{part}"),
        };
    }
    format!("{field}: {message}")
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use serde_json::json;

    use super::*;

    fn fit(schema: Option<Value>, parameters: &Value) -> Result<(), ParametersError> {
        let manifest =
            Manifest { parameters_schema: schema.map(Into::into), ..crate::testing::manifest("g") };
        check(&manifest, parameters)
    }

    fn refused(schema: Option<Value>, parameters: &Value, expected: &Expect) {
        expected.assert_eq(&fit(schema, parameters).unwrap_err().to_string());
    }

    fn schema() -> Value {
        json!({
            "type": "object",
            "required": ["size"],
            "additionalProperties": false,
            "properties": {
                "size": {"type": "integer", "minimum": 1},
                "operations": {"type": "array", "items": {"$ref": "#/$defs/operation"}},
            },
            "$defs": {"operation": {"enum": ["deploy", "cleanup"]}},
        })
    }

    #[test]
    fn parameters_that_fit_pass() {
        assert_eq!(fit(Some(schema()), &json!({"size": 3, "operations": ["deploy"]})), Ok(()));
        assert_eq!(fit(Some(json!({"type": "object"})), &Value::Null), Ok(()));
        assert_eq!(fit(None, &Value::Null), Ok(()));
        assert_eq!(fit(None, &json!({})), Ok(()));
    }

    #[test]
    fn each_problem_is_named_with_its_field() {
        refused(
            Some(schema()),
            &json!({"size": "3", "operations": ["deploy", "wash"], "oops": 1}),
            &expect![
                "spec.parameters.operations[1]: value must be one of 'deploy', 'cleanup'; spec.parameters.size: want integer, but got string; spec.parameters: additionalProperties 'oops' not allowed"
            ],
        );
        refused(
            Some(schema()),
            &Value::Null,
            &expect!["spec.parameters: missing properties 'size'"],
        );
        refused(
            None,
            &json!({"size": 3}),
            &expect!["the guest takes no parameters: remove spec.parameters (size)"],
        );
    }

    #[test]
    fn a_hostile_schema_is_refused_and_fetches_nothing() {
        refused(
            Some(json!({"type": 3})),
            &json!({}),
            &expect![
                "the guest's parametersSchema is not a usable JSON Schema: schema# is not valid against metaschema: jsonschema validation failed with https://json-schema.org/draft/2020-12/schema# - at '/type': anyOf failed   - at '/type': value must be one of 'array', 'boolean', 'integer', 'null', 'number', 'object', 'string'   - at '/type': want array, but got number"
            ],
        );
        refused(
            Some(json!({"$ref": "file:///etc/hostname"})),
            &json!({}),
            &expect![
                "the guest's parametersSchema is not a usable JSON Schema: $ref \"file:///etc/hostname\" does not lead to a subschema of this schema, and nothing is fetched: write it as \"#/$defs/NAME\""
            ],
        );
        refused(
            Some(json!({"allOf": [{"$ref": "#"}]})),
            &json!({}),
            &expect![
                "the guest's parametersSchema is not a usable JSON Schema: it applies more than 100 subschemas within each other to one value, or refers to itself without end"
            ],
        );
        refused(
            Some(json!({"properties": {"a": {"pattern": "^(a+)+$"}}})),
            &json!({"a": format!("{}b", "a".repeat(60))}),
            &expect![
                "spec.parameters.a: 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab' does not match pattern '^(a+)+$'"
            ],
        );
    }
}
