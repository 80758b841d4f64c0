//! Why an existing object is not the primary's.

use std::fmt;

use crate::ObjectRef;
use crate::ownership::{ADOPT_ANNOTATION, Controller};

/// Why an existing object is not the primary's, although the guest desires it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Conflict {
    /// Another controller owns the object.
    Controlled(Controller),
    /// The object has no controller, and no user has let the primary adopt it.
    NotAdopted,
    /// A user lets the primary adopt objects, but this one lacks these labels (`name=value`) of the
    /// desired object.
    LabelsMissing(Vec<String>),
    /// The object has no controller and was made for a primary of another namespace.
    MadeForOtherNamespace,
    /// The desired object is the primary itself.
    Primary,
    /// The desired object is this other one, which another version or group of its kind shows.
    SameObject(ObjectRef),
}

impl Conflict {
    /// Whether an object that is not the primary's has the name.
    pub(super) fn takes_name(&self) -> bool {
        match self {
            Self::Controlled(_)
            | Self::NotAdopted
            | Self::LabelsMissing(_)
            | Self::MadeForOtherNamespace => true,
            Self::Primary | Self::SameObject(_) => false,
        }
    }
}

impl fmt::Display for Conflict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Controlled(controller) => write!(
                f,
                "it is controlled by {}; to let this primary have it, delete that owner, or its owner reference in the object",
                controller.controller
            ),
            Self::NotAdopted => write!(
                f,
                "it exists and has no controller; to let this primary adopt it, annotate the primary with {ADOPT_ANNOTATION}=true"
            ),
            Self::LabelsMissing(labels) => write!(
                f,
                "it exists, has no controller, and lacks the labels {}; add them to let this primary adopt it",
                labels.join(", ")
            ),
            Self::MadeForOtherNamespace => f.write_str(
                "it exists and was made for a primary of another namespace; delete it, or give this primary another name",
            ),
            Self::Primary => f.write_str("it is the primary itself"),
            Self::SameObject(first) => write!(
                f,
                "it is the same object as {first} in {}; have the guest give one of them",
                first.kind.api_version
            ),
        }
    }
}
