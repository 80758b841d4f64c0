//! A Module's parameters against the schema that its guest describes.

use std::error::Error;
use std::fmt::Write as _;

use boon::{Compiler, ErrorKind, Schemas, UrlLoader, ValidationError};
use innkeeper_contract::Manifest;
use serde_json::{Map, Value};

/// Where the schema lies for the validator; it is never fetched.
const SCHEMA: &str = "guest:///parameters";

/// The most problems that a message lists.
const PROBLEMS_MAX: usize = 5;

/// Why parameters cannot be handed to a guest.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParametersError {
    /// The Module gives parameters, the guest wants none.
    #[error("the guest takes no parameters: remove spec.parameters ({})", .0.join(", "))]
    NotWanted(Vec<String>),
    /// The guest's schema cannot be used: the guest's mistake.
    #[error("the guest's parametersSchema is not a usable JSON Schema: {0}")]
    Schema(String),
    /// The parameters do not fit.
    #[error("{}", .0.join("; "))]
    Misfit(Vec<String>),
}

/// No document is fetched for a guest: neither files nor addresses.
struct NoLoader;

impl UrlLoader for NoLoader {
    fn load(&self, url: &str) -> Result<Value, Box<dyn Error>> {
        Err(format!("{url} lies outside the schema, and nothing is fetched").into())
    }
}

/// Checks parameters (an object, or null for none) against a manifest.
///
/// # Errors
/// [`ParametersError`]; [`ParametersError::Schema`] is the guest's fault, the others the Module's.
pub fn check(manifest: &Manifest, parameters: &Value) -> Result<(), ParametersError> {
    let Some(schema) = &manifest.parameters_schema else {
        return match parameters.as_object() {
            Some(members) if !members.is_empty() => {
                Err(ParametersError::NotWanted(members.keys().cloned().collect()))
            }
            _ => Ok(()),
        };
    };
    let mut schemas = Schemas::new();
    let mut compiler = Compiler::new();
    compiler.use_loader(Box::new(NoLoader));
    let unusable =
        |error: boon::CompileError| ParametersError::Schema(stable(&format!("{error:#}")));
    compiler.add_resource(SCHEMA, schema.clone()).map_err(unusable)?;
    let index = compiler.compile(SCHEMA, &mut schemas).map_err(unusable)?;
    // What is left out is an object without members, so that a schema without required
    // members is content with it.
    let none = Value::Object(Map::new());
    let instance = if parameters.is_null() { &none } else { parameters };
    schemas.validate(instance, index).map_err(|error| {
        if let Some(cycle) = cycle(&error) {
            return ParametersError::Schema(stable(&cycle.kind.to_string()));
        }
        let mut problems = Vec::new();
        collect(&error, &mut problems);
        if problems.len() > PROBLEMS_MAX {
            let more = problems.len() - PROBLEMS_MAX;
            problems.truncate(PROBLEMS_MAX);
            problems.push(format!("and {more} more"));
        }
        ParametersError::Misfit(problems)
    })
}

/// A schema that refers to itself without end shows only when it is used.
fn cycle<'a, 's, 'v>(error: &'a ValidationError<'s, 'v>) -> Option<&'a ValidationError<'s, 'v>> {
    if matches!(error.kind, ErrorKind::RefCycle { .. }) {
        return Some(error);
    }
    error.causes.iter().find_map(cycle)
}

/// The innermost problems, each with its field.
fn collect(error: &ValidationError<'_, '_>, problems: &mut Vec<String>) {
    let wraps = matches!(
        error.kind,
        ErrorKind::Group
            | ErrorKind::Schema { .. }
            | ErrorKind::Reference { .. }
            | ErrorKind::AllOf
    );
    if wraps && !error.causes.is_empty() {
        for cause in &error.causes {
            collect(cause, problems);
        }
        return;
    }
    let mut field = "spec.parameters".to_owned();
    for part in error.instance_location.to_string().split('/').skip(1) {
        let part = part.replace("~1", "/").replace("~0", "~");
        // Infallible: the target is a String.
        let _ = match part.parse::<usize>() {
            Ok(index) => write!(field, "[{index}]"),
            Err(_) => write!(field, ".{part}"),
        };
    }
    problems.push(format!("{field}: {}", stable(&error.kind.to_string())));
}

fn stable(text: &str) -> String {
    text.replace(SCHEMA, "parametersSchema").replace('\n', " ")
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use serde_json::json;

    use super::*;

    fn fit(schema: Option<Value>, parameters: &Value) -> Result<(), ParametersError> {
        let manifest = Manifest { parameters_schema: schema, ..crate::testing::manifest("g") };
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
                "the guest's parametersSchema is not a usable JSON Schema: parametersSchema# is not valid against metaschema: jsonschema validation failed with https://json-schema.org/draft/2020-12/schema# - at '/type': anyOf failed   - at '/type': value must be one of 'array', 'boolean', 'integer', 'null', 'number', 'object', 'string'   - at '/type': want array, but got number"
            ],
        );
        refused(
            Some(json!({"$ref": "file:///etc/hostname"})),
            &json!({}),
            &expect![
                "the guest's parametersSchema is not a usable JSON Schema: error loading file:///etc/hostname: file:///etc/hostname lies outside the schema, and nothing is fetched"
            ],
        );
        refused(
            Some(json!({"allOf": [{"$ref": "#"}]})),
            &json!({}),
            &expect![
                "the guest's parametersSchema is not a usable JSON Schema: both '/allOf/0/$ref' and '' resolve to parametersSchema# causing reference cycle"
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
