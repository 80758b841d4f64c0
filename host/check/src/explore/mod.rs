//! Exploration: cases that no list of single faults has.
//!
//! [`interleavings`] lists every crash together with every staleness, for two primaries. Beyond the
//! lists, cases come from a [`corpus`] of those that showed something new by their [`signature`],
//! each with a [`mutation`].

mod corpus;
mod interleavings;
mod mutation;
mod signature;

pub(crate) use corpus::Corpus;
pub(crate) use interleavings::two_primary_lifecycle;
pub(crate) use signature::Signature;
