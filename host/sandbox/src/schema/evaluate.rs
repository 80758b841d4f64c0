//! The evaluation of a schema and a document within the bounds.

use std::error::Error;

use boon::{Compiler, ErrorKind, Schemas, UrlLoader, ValidationError};
use serde_json::Value;

use super::error::{Misfit, Problem, SchemaError, text};

/// The address of the schema for the validator, which never fetches it.
const SCHEMA: &str = "guest:///schema";

/// The most problems that an error lists.
const PROBLEMS_MAX: usize = 5;

/// A loader that fetches neither files nor addresses.
struct NoLoader;

impl UrlLoader for NoLoader {
    fn load(&self, url: &str) -> Result<Value, Box<dyn Error>> {
        Err(format!("{url} lies outside the schema, and nothing is fetched").into())
    }
}

/// Evaluates a schema against a document.
///
/// # Errors
/// [`SchemaError::Unusable`] and [`SchemaError::Misfit`].
pub(super) fn evaluate(schema: &Value, document: &Value) -> Result<(), SchemaError> {
    let mut schema = schema.clone();
    if let Value::Object(members) = &mut schema {
        // References are fragments; an `$id` could only name one of the metaschemas.
        members.remove("$id");
        members.remove("id");
    }
    let mut schemas = Schemas::new();
    let mut compiler = Compiler::new();
    compiler.use_loader(Box::new(NoLoader));
    let unusable = |error: boon::CompileError| SchemaError::Unusable(stable(&format!("{error:#}")));
    compiler.add_resource(SCHEMA, schema).map_err(unusable)?;
    let index = compiler.compile(SCHEMA, &mut schemas).map_err(unusable)?;
    schemas.validate(document, index).map_err(|error| {
        if let Some(cycle) = cycle(&error) {
            return SchemaError::Unusable(stable(&cycle.kind.to_string()));
        }
        let mut misfit = Misfit::default();
        collect(&error, &mut misfit);
        SchemaError::Misfit(misfit)
    })
}

/// The cycle of a schema that refers to itself without end, which only its evaluation finds.
fn cycle<'a, 's, 'v>(error: &'a ValidationError<'s, 'v>) -> Option<&'a ValidationError<'s, 'v>> {
    if matches!(error.kind, ErrorKind::RefCycle { .. }) {
        return Some(error);
    }
    error.causes.iter().find_map(cycle)
}

/// Collects the innermost problems, each with its place.
fn collect(error: &ValidationError<'_, '_>, misfit: &mut Misfit) {
    let wraps = matches!(
        error.kind,
        ErrorKind::Group
            | ErrorKind::Schema { .. }
            | ErrorKind::Reference { .. }
            | ErrorKind::AllOf
    );
    if wraps && !error.causes.is_empty() {
        for cause in &error.causes {
            collect(cause, misfit);
        }
    } else if misfit.problems.len() == PROBLEMS_MAX {
        misfit.more += 1;
    } else {
        misfit.problems.push(Problem {
            pointer: error.instance_location.to_string(),
            message: stable(&error.kind.to_string()),
        });
    }
}

fn stable(message: &str) -> String {
    text(&message.replace(SCHEMA, "schema"))
}
