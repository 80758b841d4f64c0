//! The input of a plan.

use std::sync::Arc;

use jiff::Timestamp;

use super::state::{Lookup, PlannerState};
use crate::desired::DesiredState;
use crate::ownership::PrimaryOwner;
use crate::{Object, ObjectRef};

/// The input of a plan.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is an independent fact")]
pub struct Input<'a> {
    /// The primary.
    pub primary: &'a PrimaryOwner,
    /// The desired state.
    pub desired: &'a DesiredState,
    /// The outcome was `complete`: the plan prunes objects that are not desired.
    pub complete: bool,
    /// The lookups of `desired.objects`, one for each, in the same order.
    pub lookups: &'a [Lookup],
    /// The objects that the primary owns, made or merges into.
    pub owned: &'a [(ObjectRef, Arc<Object>)],
    /// The earlier rounds.
    pub state: &'a PlannerState,
    /// The host could read all declared kinds (the server need not serve optional ones).
    pub readable: bool,
    /// The user lets the primary adopt objects that have no controller.
    pub adopt: bool,
    /// The primary is being deleted: retained objects stay.
    pub deleting: bool,
    /// The current time.
    pub now: Timestamp,
}
