//! Evaluation of JSON Schemas of guests against documents of users.
//!
//! The host trusts neither: a schema of some hundred bytes can take exponential time, and a pattern
//! can take gigabytes. So a check has three steps: bounds on the schema (`bounds`), a count of the
//! steps that the evaluation takes at most (`cost`), and only then the evaluation itself
//! (`evaluate`), which [`Engine::validate`](crate::Engine::validate) runs in a child process.

mod bounds;
mod child;
mod cost;
mod error;
mod evaluate;

use serde_json::Value;

pub use bounds::{
    PATTERN_BYTES_MAX, PATTERN_PROGRAM_BYTES_MAX, PATTERNS_MAX, SCHEMA_BYTES_MAX, SCHEMA_DEPTH_MAX,
    SCHEMA_VALUES_MAX, SUBSCHEMAS_MAX,
};
pub use child::VALIDATE_TIME;
pub(crate) use child::{validate_confined, validate_here};
pub use cost::{EVALUATION_DEPTH_MAX, EVALUATION_STEPS_MAX};
pub use error::{Misfit, Problem, SchemaError};

/// Checks a document against a schema in this process. The bounds keep the time under about a
/// second; [`Engine::validate`](crate::Engine::validate) bounds time and memory as well.
///
/// # Errors
/// [`SchemaError`], but never [`SchemaError::Unavailable`].
pub fn validate(schema: &Value, document: &Value) -> Result<(), SchemaError> {
    check_bounds(schema, document)?;
    evaluate::evaluate(schema, document)
}

/// Checks the bounds on the schema, and counts the steps that its evaluation takes at most.
///
/// # Errors
/// [`SchemaError::Unusable`] and [`SchemaError::TooCostly`].
pub(crate) fn check_bounds(schema: &Value, document: &Value) -> Result<(), SchemaError> {
    let checked = bounds::check(schema).map_err(SchemaError::Unusable)?;
    cost::check(schema, &checked, document)
}

#[cfg(test)]
mod tests;
