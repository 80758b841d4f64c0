//! Foreign definitions, while they are to become those of the active revision.

use super::rejection::Rejection;
use crate::crd_refusal::{CrdRefusal, HeldCrds};

/// The state of the adoption.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct AdoptionState {
    /// The host tries it at present.
    pub(super) is_installing: bool,
    /// The spec or the approval changed during the try: its result is about the old ones.
    pub(super) is_outdated: bool,
    /// A definition changed since the last try began.
    pub(super) is_crd_changed: bool,
    /// Why the last try failed.
    pub(super) refusal: Option<CrdRefusal>,
}

impl AdoptionState {
    /// What waits for an approval.
    pub(super) fn held(&self) -> Option<&HeldCrds> {
        match self.refusal.as_ref()? {
            CrdRefusal::Held(held) => Some(held),
            CrdRefusal::Rejected(_) => None,
        }
    }

    /// Why it is refused, or held.
    pub(super) fn rejection(&self) -> Option<&Rejection> {
        self.refusal.as_ref().map(CrdRefusal::rejection)
    }
}
