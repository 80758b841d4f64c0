//! Why a plan cannot be used.

/// An error of a plan.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    /// The text is too long.
    #[error("it has {bytes} bytes; at most {max} are allowed")]
    TooLong {
        /// The length.
        bytes: usize,
        /// The limit.
        max: usize,
    },
    /// The text is neither YAML nor JSON, or too large once its aliases are replaced.
    #[error("it cannot be read: {0}")]
    Text(String),
    /// The document has another form than a plan.
    #[error("it has another form than a plan: {0}")]
    Form(String),
    /// The document is neither a plan of faults nor a test plan of Sieve.
    #[error("it has neither a list `faults` nor `actions` of Sieve; see docs/client-faults.md")]
    Unknown,
    /// A value is out of its bounds, or has another form.
    #[error("{place}: {problem}")]
    Value {
        /// Where it is, such as `faults[2].fault`.
        place: String,
        /// What is wrong, and what to write instead.
        problem: String,
    },
}

impl PlanError {
    pub(crate) fn text(problem: &str) -> Self {
        Self::Text(short(problem))
    }

    pub(crate) fn value(place: &str, problem: &str) -> Self {
        Self::Value { place: short(place), problem: short(problem) }
    }
}

impl From<serde_json::Error> for PlanError {
    fn from(error: serde_json::Error) -> Self {
        Self::Form(short(&error.to_string()))
    }
}

/// The maximum length of a text that quotes a plan, in bytes.
const QUOTED_BYTES_MAX: usize = 400;

fn short(text: &str) -> String {
    let end = text.floor_char_boundary(QUOTED_BYTES_MAX);
    if end < text.len() { format!("{}...", &text[..end]) } else { text.to_owned() }
}
