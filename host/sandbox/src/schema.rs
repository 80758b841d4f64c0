//! JSON Schemas that a guest describes, against documents of its users.
//!
//! Neither side is trusted: a schema of some hundred bytes can take exponential time, and a pattern
//! can take gigabytes. So a check has three steps: bounds on the schema (`bounds`), a count of
//! the steps that the evaluation takes at most (`cost`), and only then the evaluation itself
//! (`evaluate`). [`Engine::validate`](crate::Engine::validate) does all of it in a child process.

mod bounds;
mod child;
mod cost;
mod evaluate;

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use bounds::{
    PATTERN_BYTES_MAX, PATTERN_PROGRAM_BYTES_MAX, PATTERNS_MAX, SCHEMA_BYTES_MAX, SCHEMA_DEPTH_MAX,
    SCHEMA_VALUES_MAX, SUBSCHEMAS_MAX,
};
pub use child::VALIDATE_TIME;
pub(crate) use child::{validate_confined, validate_here};
pub use cost::{EVALUATION_DEPTH_MAX, EVALUATION_STEPS_MAX};

/// The longest text of a problem, in bytes.
const TEXT_BYTES_MAX: usize = 1_000;

/// Why a document does not pass a schema.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", tag = "error", content = "detail")]
#[non_exhaustive]
pub enum SchemaError {
    /// The schema cannot be used for any document.
    #[error("{0}")]
    Unusable(String),
    /// The schema takes too much time or memory for this document.
    #[error("{0}")]
    TooCostly(String),
    /// The document does not fit the schema.
    #[error("{0}")]
    Misfit(Misfit),
    /// The host could not evaluate the schema. That is the host's trouble.
    #[error("the host cannot evaluate the schema: {0}")]
    Unavailable(String),
}

/// In which places a document does not fit a schema.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Misfit {
    /// The first problems, in the order of the evaluation.
    pub problems: Vec<Problem>,
    /// How many problems are not listed.
    pub more: usize,
}

/// One place where a document does not fit a schema.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Problem {
    /// The place as a JSON Pointer (RFC 6901).
    pub pointer: String,
    /// What is wrong there.
    pub message: String,
}

impl fmt::Display for Misfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, Problem { pointer, message }) in self.problems.iter().enumerate() {
            let separator = if index > 0 { "; " } else { "" };
            write!(f, "{separator}{pointer}: {message}")?;
        }
        if self.more > 0 {
            write!(f, "; and {} more", self.more)?;
        }
        Ok(())
    }
}

/// Checks a document against a schema in this process. The bounds alone keep the time under about
/// a second; [`Engine::validate`](crate::Engine::validate) bounds time and memory as well.
///
/// # Errors
/// [`SchemaError`], but never [`SchemaError::Unavailable`].
pub fn validate(schema: &Value, document: &Value) -> Result<(), SchemaError> {
    check_bounds(schema, document)?;
    evaluate::evaluate(schema, document)
}

/// Checks the bounds on the schema, and counts the steps that its evaluation takes at most.
pub(crate) fn check_bounds(schema: &Value, document: &Value) -> Result<(), SchemaError> {
    let checked = bounds::check(schema).map_err(SchemaError::Unusable)?;
    cost::check(schema, &checked, document)
}

/// Text of a guest on one line, cut to what an error may carry.
fn text(text: &str) -> String {
    let mut text = text.replace('\n', " ");
    if text.len() > TEXT_BYTES_MAX {
        text.truncate(text.floor_char_boundary(TEXT_BYTES_MAX));
        text.push_str("...");
    }
    text
}

#[cfg(test)]
mod tests;
