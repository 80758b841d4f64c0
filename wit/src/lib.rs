//! The documents that cross the contract between the Innkeeper host and its guests.
//!
//! [`guest.wit`](../guest.wit) holds the functions; everything that grows crosses as one
//! JSON document, and the types here are the one source of its shape: the host and
//! the Rust SDK use them, and `cargo xtask schema` writes `wit/schema/*.json` from them
//! for every other language.
//!
//! | document | from | type |
//! |---|---|---|
//! | `manifest` | `describe` | [`Manifest`] |
//! | `observed` | argument of `reconcile` | [`Observed`] |
//! | `observed-object`, `observed-list` | `cluster.get`, `cluster.list` | [`ObservedObject`], [`ObservedList`] |
//! | `desired` | `complete`, `partial` | [`Desired`] |
//! | `failure` | `failed` | [`Failure`] |
//!
//! # How it may change
//!
//! A new optional member is a compatible addition and raises the patch number of the
//! contract. What a guest *gives* is read strictly by the host (an unknown member is
//! a typo, and an error); what a guest is *given* is read leniently by the guest.

mod condition;
mod desired;
mod failure;
mod kind;
mod manifest;
mod observed;

pub use condition::{Condition, ConditionStatus, Event, EventType};
pub use desired::{Desired, DesiredObject, Policy, Reference};
pub use failure::Failure;
pub use kind::{Kind, Scope};
pub use manifest::{Manifest, OwnedKind};
pub use observed::{Observed, ObservedList, ObservedObject, Readiness, ReadinessState, Unapplied};

/// The contract's version, as in `innkeeper:guest@0.1.0`.
pub const VERSION: &str = "0.1.0";

/// The interface that a guest exports.
pub const RECONCILER_INTERFACE: &str = "innkeeper:guest/reconciler@0.1.0";
