//! The reason why a document does not pass a schema: [`SchemaError`].

use std::fmt;

use serde::{Deserialize, Serialize};

/// The longest text of a problem, in bytes.
const TEXT_BYTES_MAX: usize = 1_000;

/// The reason why a document does not pass a schema.
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
    /// The host could not evaluate the schema, for a reason that the schema does not cause.
    #[error("the host cannot evaluate the schema: {0}")]
    Unavailable(String),
}

/// The places where a document does not fit a schema.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Misfit {
    /// The first problems, in the order of the evaluation.
    pub problems: Vec<Problem>,
    /// The number of further problems.
    pub more: usize,
}

/// One place where a document does not fit a schema.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Problem {
    /// The place as a JSON Pointer (RFC 6901).
    pub pointer: String,
    /// The problem at this place.
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

/// Puts a text of a guest on one line, and cuts it to the length that an error may have.
pub(super) fn text(text: &str) -> String {
    let mut text = text.replace('\n', " ");
    if text.len() > TEXT_BYTES_MAX {
        text.truncate(text.floor_char_boundary(TEXT_BYTES_MAX));
        text.push_str("...");
    }
    text
}
