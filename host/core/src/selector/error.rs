//! Why a text or a document is not a label selector.

/// Why a text or a document is not a label selector.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SelectorError {
    /// The text does not follow the grammar.
    #[error("label selector `{selector}`: {problem} at character {position}")]
    Syntax {
        /// The text of the selector.
        selector: String,
        /// What is wrong.
        problem: String,
        /// The position of the problem in characters, counted from 1.
        position: usize,
    },
    /// The key or the value of a label is not one that Kubernetes allows.
    #[error("label selector: {0}")]
    Label(String),
    /// The operator and the values of an expression do not fit together.
    #[error("label selector: matchExpressions for `{key}`: {problem}")]
    Expression {
        /// The key of the label.
        key: String,
        /// What is wrong.
        problem: String,
    },
}
