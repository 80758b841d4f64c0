//! The reasons for which a verdict is invalid: [`InvalidVerdict`].

/// The reason for which a verdict is invalid: the policy may not return such an object. A text of a
/// verdict never makes it invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidVerdict {
    /// An object from a policy that only decides, or for a request that stores none.
    #[error("the verdict has an `object` {why}; leave it out")]
    UnexpectedObject {
        /// Which verdict it is.
        why: &'static str,
    },
    /// The object is no JSON object.
    #[error("`object` of the verdict is no JSON object; return the whole changed object")]
    NoObject,
    /// The object is too large.
    #[error(
        "`object` of the verdict has {bytes} bytes, and at most {limit} are allowed; return a smaller one"
    )]
    TooLarge {
        /// Its size.
        bytes: usize,
        /// The limit.
        limit: usize,
    },
    /// The object is too deep.
    #[error(
        "`object` of the verdict has more than {limit} levels, and that of the request has fewer; make it flatter"
    )]
    TooDeep {
        /// The limit.
        limit: usize,
    },
    /// The object of the request is deeper than the host reads.
    // serde_json reads no deeper object.
    #[error(
        "the object of the request has more than 127 levels, and no policy changes such an object; leave out `object`"
    )]
    RequestTooDeep,
    /// A resource whose objects no policy changes.
    #[error(
        "the verdict changes {resource}: it grants rights or trust, and no policy changes it; leave out `object`"
    )]
    NeverChanged {
        /// The resource, with its group.
        resource: String,
    },
    /// A field that no policy changes.
    #[error("the verdict changes {field}: {why}; return it as it is in the request")]
    Field {
        /// The path of the field.
        field: String,
        /// Why not.
        why: &'static str,
    },
}

impl InvalidVerdict {
    /// A word for metrics.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::UnexpectedObject { .. } => "UnexpectedObject",
            Self::NoObject => "NoObject",
            Self::TooLarge { .. } => "ObjectTooLarge",
            Self::TooDeep { .. } => "ObjectTooDeep",
            Self::RequestTooDeep => "RequestTooDeep",
            Self::NeverChanged { .. } => "NeverChanged",
            Self::Field { .. } => "FieldNotAllowed",
        }
    }
}
