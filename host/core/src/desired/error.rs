//! Why the host refuses a `desired` document.

/// Why the host refuses a `desired` document.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidDesired {
    /// The manifest does not declare the kind of an object.
    #[error("the guest gave {what}, but its manifest does not own {kind}; add the kind to `owned`")]
    UndeclaredKind {
        /// Kind and name of the object.
        what: String,
        /// The kind that the manifest lacks.
        kind: String,
    },
    /// An object is outside the primary's namespace, and the Module does not allow that.
    #[error(
        "the guest gave {what}, outside the primary's namespace; the Module does not allow that (spec.allowCrossNamespace)"
    )]
    CrossNamespace {
        /// Kind and name of the object.
        what: String,
    },
    /// The document has the same object twice.
    #[error("the guest gave {what} twice")]
    Duplicate {
        /// Kind and name of the object.
        what: String,
    },
    /// The document has the same object in two versions of its kind, and the cluster serves both.
    #[error("the guest gave {what} in two versions, {first} and {second}; have the guest give one")]
    TwoVersions {
        /// Kind and name of the object.
        what: String,
        /// The version of the first, with its group.
        first: String,
        /// The version of the second, with its group.
        second: String,
    },
    /// An object lacks a member, or has one that a guest may not set.
    #[error("the guest gave an unusable object ({what}): {problem}")]
    Malformed {
        /// Kind and name of the object, as far as it has them.
        what: String,
        /// What is wrong.
        problem: String,
    },
    /// An object copies the values of an object that the Module does not grant.
    #[error("the guest gave {what} with values from {source_ref}: {problem}")]
    ValueSourceNotGranted {
        /// Kind and name of the object.
        what: String,
        /// Kind and name of the source.
        source_ref: String,
        /// What is not granted, and what to do.
        problem: String,
    },
    /// The host cannot write the status, the conditions or the Events.
    #[error("the guest gave an unusable status: {problem}")]
    MalformedStatus {
        /// What is wrong.
        problem: String,
    },
    /// The fields that the run says it read cannot be used.
    #[error("the guest gave unusable {problem}")]
    MalformedReadFields {
        /// The entry, and what is wrong with it.
        problem: String,
    },
}

impl InvalidDesired {
    /// The reason for a condition: one CamelCase word.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::UndeclaredKind { .. } => "UndeclaredKind",
            Self::CrossNamespace { .. } => "CrossNamespace",
            Self::Duplicate { .. } | Self::TwoVersions { .. } | Self::Malformed { .. } => {
                "MalformedObject"
            }
            Self::ValueSourceNotGranted { .. } => "ValueSourceNotGranted",
            Self::MalformedStatus { .. } => "MalformedStatus",
            Self::MalformedReadFields { .. } => "MalformedReadFields",
        }
    }
}
