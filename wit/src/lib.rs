//! The JSON documents of the contract between the Innkeeper host and its guests.
//!
//! [`guest.wit`](../guest.wit) defines the functions, whose arguments and results are JSON
//! documents. The types here define these documents: the host and the Rust SDK use the types, and
//! `cargo xtask schema` generates `wit/schema/*.json` from them for other languages.
//!
//! | document | from | type |
//! |---|---|---|
//! | `manifest` | `describe` | [`Manifest`] |
//! | `observed` | argument of `reconcile` | [`Observed`] |
//! | `observed-object`, `observed-list` | `cluster.get`, `cluster.list` | [`ObservedObject`], [`ObservedList`] |
//! | `desired` | `complete`, `partial` | [`Desired`] |
//! | `failure` | `failed` of `reconcile` | [`Failure`] |
//! | `review-request` | argument of `review` | [`ReviewRequest`] |
//! | `verdict` | `decided` | [`Verdict`] |
//!
//! # Compatibility
//!
//! A new optional member is compatible and raises the patch version of the documents. The host
//! rejects unknown members in documents from a guest, because they are probably typos; a guest
//! ignores unknown members in documents from the host.

mod condition;
mod desired;
mod failure;
mod json_text;
mod kind;
mod kind_parameter;
mod manifest;
mod observed;
mod policy_manifest;
mod read_fields;
mod review_request;
mod revision_history;
mod rule_match;
mod selector;
mod update_group;
mod value_source;
mod verdict;

pub use condition::{Condition, ConditionStatus, Event, EventType};
pub use desired::{Desired, DesiredObject, Policy, Reference};
pub use failure::Failure;
pub use json_text::JsonText;
pub use kind::{Kind, Scope};
pub use kind_parameter::{KindName, KindParameter, KindRole};
pub use manifest::{Manifest, OwnedKind};
pub use observed::{Observed, ObservedList, ObservedObject, Readiness, ReadinessState, Unapplied};
pub use policy_manifest::{
    MatchCondition, Operation, PolicyKind, PolicyManifest, PolicyRule, RuleScope, SideEffects,
};
pub use read_fields::ReadFields;
pub use review_request::{GroupVersionKind, GroupVersionResource, ReviewRequest, User};
pub use revision_history::RevisionHistory;
pub use selector::{LabelRequirement, PrimarySelector, SelectorOperator, ValueRequirement};
pub use update_group::{IntOrPercent, StatusCheck, UpdateGroup, UpdateMethod};
pub use value_source::{ValueSource, ValueSourceKind};
pub use verdict::{Cause, Verdict};

/// Version of the contract's functions, as in `innkeeper:guest@0.1.0`.
pub const VERSION: &str = "0.1.0";

/// Version of the contract's documents. An addition to a document raises it and leaves [`VERSION`],
/// so that components name the same functions as before.
pub const DOCUMENTS_VERSION: &str = "0.1.4";

/// The interface that a guest exports to reconcile a kind.
pub const RECONCILER_INTERFACE: &str = "innkeeper:guest/reconciler@0.1.0";

/// The interface that a guest exports to review admission requests.
pub const POLICY_INTERFACE: &str = "innkeeper:guest/policy@0.1.0";
