//! A rollback of the active revision, from the decision until the host has written it.

use super::rejection::Rejection;

/// A rollback that is decided; the host writes the decision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct DecidedRollback {
    /// Why the active revision is rolled back.
    pub(super) rejection: Rejection,
    /// Why the decision could not be written, if it could not.
    pub(super) unwritten: Option<Rejection>,
}
