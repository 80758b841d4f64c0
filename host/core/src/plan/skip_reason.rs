//! Why the host writes nothing to an object.

use std::fmt;

use super::conflict::Conflict;
use super::state::RejectedApply;
use crate::ObjectRef;
use crate::desired::MissingValues;
use crate::field_fights::FieldFight;
use crate::host_objects::{GROUP, HOST_NAMESPACE, MODULES_NAMESPACE};

/// Why the host writes nothing to an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SkipReason {
    /// The object is in sync.
    InSync,
    /// The object exists, and its policy is `create-only`.
    CreateOnly,
    /// The server does not serve the kind of the object, which the manifest declares optional.
    OptionalNotServed,
    /// The server does not serve the kind of the object.
    NotServed,
    /// The host cannot read objects of the kind, for this reason.
    Unreadable(String),
    /// The cache may be wrong: a live read must come first.
    Unknown,
    /// The object exists and is not the primary's.
    Conflict {
        /// Why it is not.
        conflict: Conflict,
        /// The desired objects that the host neither creates nor adopts because of it.
        holds_back: Vec<ObjectRef>,
    },
    /// The object belongs to Innkeeper itself, so that no module writes it.
    Reserved,
    /// This desired object is in conflict, and holds back the present one.
    HeldBack(ObjectRef),
    /// The object is being deleted; the host creates the desired one afterwards.
    Terminating,
    /// Another manager repeatedly sets the same field.
    FieldContested(FieldFight),
    /// The server rejected this body before.
    Rejected(RejectedApply),
    /// The object is no longer desired; the host keeps it since its kind holds data.
    Protected,
    /// The object is no longer desired; the host deletes it after one more clean round.
    PrunePending,
    /// The primary is being deleted, and the object outlives it.
    Retained,
    /// The object into which fields should be merged does not exist.
    MergeTargetMissing,
    /// Values that the host copies into the object are missing; an existing object stays as it is.
    MissingValues(MissingValues),
    /// The object is outdated; its update group updates other objects first.
    UpdatePending {
        /// Whether the update recreates the object.
        recreates: bool,
    },
    /// The object is outdated; its update group has the method `OnDelete`.
    UpdateOnDelete,
    /// The object is outdated, and its update group may not recreate it since its kind holds data.
    UpdateProtected,
}

/// A conflict names at most this many objects that it holds back.
const HELD_BACK_MAX: usize = 5;

impl SkipReason {
    /// A conflict that holds back no other object.
    pub(super) fn conflict(conflict: Conflict) -> Self {
        Self::Conflict { conflict, holds_back: Vec::new() }
    }

    /// Whether the reason is a problem: the primary cannot reach its desired state.
    pub fn is_problem(&self) -> bool {
        match self {
            Self::NotServed
            | Self::Unreadable(_)
            | Self::Unknown
            | Self::Conflict { .. }
            | Self::Reserved
            | Self::HeldBack(_)
            | Self::FieldContested(_)
            | Self::Rejected(_)
            | Self::MergeTargetMissing
            | Self::MissingValues(_)
            | Self::UpdateProtected => true,
            Self::InSync
            | Self::CreateOnly
            | Self::OptionalNotServed
            | Self::Terminating
            | Self::Protected
            | Self::PrunePending
            | Self::Retained
            | Self::UpdatePending { .. }
            | Self::UpdateOnDelete => false,
        }
    }
}

impl fmt::Display for SkipReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::InSync => f.write_str("in sync"),
            Self::CreateOnly => f.write_str("created once, not updated"),
            Self::OptionalNotServed | Self::NotServed => {
                f.write_str("the cluster does not serve its kind")
            }
            Self::Unreadable(reason) => f.write_str(reason),
            Self::Unknown => f.write_str("the response to the last write never arrived"),
            Self::Conflict { conflict, holds_back } => {
                conflict.fmt(f)?;
                for (index, object_ref) in holds_back.iter().take(HELD_BACK_MAX).enumerate() {
                    let before = if index == 0 { "; until then the host holds back" } else { "," };
                    write!(f, "{before} {object_ref}")?;
                }
                f.write_str(if holds_back.len() > HELD_BACK_MAX { " and more" } else { "" })
            }
            Self::Reserved => write!(
                f,
                "it belongs to Innkeeper itself: no module writes the host's namespace ({HOST_NAMESPACE} unless it was installed in another one), the namespace {MODULES_NAMESPACE}, kinds of {GROUP}, or the host's own roles and policies; have the guest leave it out"
            ),
            Self::HeldBack(by) => write!(f, "held back, since {by} is not this primary's"),
            Self::Terminating => f.write_str("being deleted"),
            Self::FieldContested(fight) => {
                write!(
                    f,
                    "{} keeps setting {}; the host stops applying it for a while",
                    fight.other, fight.field
                )
            }
            Self::Rejected(rejected) => f.write_str(&rejected.message),
            Self::Protected => f.write_str("no longer desired, kept since its kind holds data"),
            Self::PrunePending => {
                f.write_str("no longer desired, deleted after one more clean round")
            }
            Self::Retained => f.write_str("outlives its primary"),
            Self::MergeTargetMissing => {
                f.write_str("fields are to be merged into it, but it does not exist")
            }
            Self::MissingValues(missing) => missing.fmt(f),
            Self::UpdatePending { .. } => f.write_str("outdated, updated in its turn"),
            Self::UpdateOnDelete => f.write_str("outdated, changes when it is deleted"),
            Self::UpdateProtected => f.write_str(
                "outdated, not recreated since its kind holds data; give it the policy deletable, or its update group the method RollingInPlace",
            ),
        }
    }
}
