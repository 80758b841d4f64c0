//! One step of a plan.

use std::fmt;

use super::skip_reason::SkipReason;
use crate::ObjectRef;

/// One step of a plan: what the host does with one object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// Kind and name of the object.
    pub object_ref: ObjectRef,
    /// The index of the object in `desired.objects`, if it is desired.
    pub desired_index: Option<usize>,
    /// The action.
    pub action: Action,
}

/// What the host does with one object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Apply the object, if none of its name exists.
    Create,
    /// Apply the desired object to the object with this uid.
    Apply {
        /// The uid of the observed object.
        uid: Box<str>,
        /// Why the host applies it.
        reason: ApplyReason,
    },
    /// Adopt an object without controller, if it still has this resource version.
    Adopt {
        /// The uid of the observed object.
        uid: Box<str>,
        /// The version whose owners the planner checked.
        resource_version: Box<str>,
    },
    /// Merge the desired fields into an object of another owner.
    Merge {
        /// The uid of the observed object.
        uid: Box<str>,
        /// Why the host applies it.
        reason: ApplyReason,
    },
    /// Remove the merged fields, which are no longer desired.
    Unmerge {
        /// The uid of the observed object.
        uid: Box<str>,
    },
    /// Delete the object, so that the next round creates it with another value of an immutable
    /// field.
    Recreate {
        /// The uid of the observed object.
        uid: Box<str>,
        /// Whether a dry run has to show first that an apply would change the object.
        dry_run_first: bool,
    },
    /// Delete the object, which is no longer desired.
    Delete {
        /// The uid of the observed object.
        uid: Box<str>,
    },
    /// Write nothing.
    Skip(SkipReason),
}

/// Why the host applies an object that already exists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ApplyReason {
    /// The desired object differs from the one that the host last applied.
    Changed,
    /// Another manager changed fields that the host had applied.
    Drift {
        /// The fields, as in `.spec.replicas`.
        fields: Vec<String>,
        /// The name of the other manager, if the server reports it.
        other: String,
    },
    /// The guest sees the primary in another version of its kind, which the owner reference names.
    OwnerVersion,
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let object_ref = &self.object_ref;
        match &self.action {
            Action::Create => write!(f, "create {object_ref}"),
            Action::Apply { reason: ApplyReason::Changed, .. } => {
                write!(f, "apply {object_ref}: changed")
            }
            Action::Apply { reason: ApplyReason::Drift { fields, other }, .. } => {
                write!(f, "apply {object_ref}: {other} changed {}", fields.join(", "))
            }
            Action::Apply { reason: ApplyReason::OwnerVersion, .. } => {
                write!(f, "apply {object_ref}: the apiVersion of its owner changed")
            }
            // A merged object has no owner reference.
            Action::Merge { reason: ApplyReason::Changed | ApplyReason::OwnerVersion, .. } => {
                write!(f, "merge {object_ref}: changed")
            }
            Action::Merge { reason: ApplyReason::Drift { fields, other }, .. } => {
                write!(f, "merge {object_ref}: {other} changed {}", fields.join(", "))
            }
            Action::Unmerge { .. } => write!(f, "unmerge {object_ref}"),
            Action::Adopt { .. } => write!(f, "adopt {object_ref}"),
            Action::Recreate { .. } => write!(f, "recreate {object_ref}"),
            Action::Delete { .. } => write!(f, "delete {object_ref}"),
            Action::Skip(reason) => write!(f, "skip {object_ref}: {reason}"),
        }
    }
}
