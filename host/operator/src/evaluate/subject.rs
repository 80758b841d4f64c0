//! What an evaluation is about.

use innkeeper_contract::Unapplied;
use innkeeper_core::host_names::Grants;
use innkeeper_core::ownership::PrimaryOwner;
use innkeeper_core::plan::PlannerState;
use innkeeper_core::primary_revision::KeyedDigest;
use innkeeper_core::{KnownMasks, Object};
use innkeeper_sandbox::Guest;
use jiff::Timestamp;

/// Whose desired state is evaluated, and what the host remembers of it.
pub struct Subject<'a> {
    /// The revision's component.
    pub guest: &'a Guest,
    /// The masks of the component's last answers, so that equal ones are not read again.
    pub known_masks: &'a KnownMasks,
    /// The primary.
    pub primary: &'a Object,
    /// The primary as the owner of objects.
    pub owner: &'a PrimaryOwner,
    /// What the Module allows its guest beyond the defaults.
    pub grants: Grants<'a>,
    /// Computes the digests of primary revisions.
    pub digest: &'a KeyedDigest<'a>,
    /// The objects that the last round could not apply.
    pub unapplied: &'a [Unapplied],
    /// What the host applied for this primary before.
    pub state: &'a PlannerState,
    /// The time of the evaluation.
    pub now: Timestamp,
}
