//! A Kubernetes API server in memory, deterministic, with the controllers of a cluster.
//!
//! [`Simulator`] is a tower Service: an unmodified client uses it in process, and
//! `innkeeper-simulator-server` offers it on a port. It depends on no other crate of Innkeeper, so
//! that it shares none of their mistakes. A differential test compares it with a real API server
//! (docs/simulator.md).
//!
//! # Guarantees
//! - The same seed and the same requests at the same times give the same bytes.
//! - No thread, no clock, and no randomness but the seed's.
//!
//! # Modules
//!
//! | module | what it does |
//! |---|---|
//! | `simulator` | joins the parts below to one tower Service |
//! | `api` | reads requests, dispatches them to `api::verbs`, serves discovery, OpenAPI and tables |
//! | `auth` | RBAC, tokens, impersonation, the escalation check |
//! | `admission` | webhooks and the built-in admission plugins |
//! | `controllers` | a file for each controller of Kubernetes; they write as clients of `api` |
//! | `state` | the cluster: objects, catalog of kinds, watches, work queue. It imports none of the modules above |
//! | `apply` | server-side apply: field sets, managers, conflicts, merging |
//! | `patch` | JSON patch, merge patch, strategic merge patch |
//! | `types` | schemas, defaults and validation of built-in kinds and of CustomResourceDefinitions |
//! | `mutation` | mistakes that a test activates to see whether the differential test finds them |
//!
//! # From a request to an answer
//!
//! `simulator` locks the state and calls `api::dispatch`, which checks `auth` and picks a verb. The
//! verb decodes the object with `types`, merges it by `apply` or `patch`, asks `admission`, and
//! stores it in `state`. `state` notifies watches and queues work. The controllers take it from the
//! queue when the caller advances the virtual clock.
//!
//! No two files import each other: verbs and controllers are functions over
//! `state::cluster::Cluster`. Where the API has to call a controller within a request (definitions
//! of kinds), the state holds the function to call.

mod admission;
mod api;
mod apply;
mod auth;
mod controllers;
mod mutation;
mod patch;
mod scratch;
mod simulator;
mod state;
mod types;

pub use crate::admission::match_conditions::conditions_hold;
pub use crate::api::http::body::Body;
pub use crate::auth::user::User;
#[doc(hidden)]
pub use crate::mutation::{MUTATIONS, Mutation, activate_mutation};
pub use crate::simulator::Simulator;
pub use crate::state::backup::Backup;
pub use crate::state::controller_set::{Controllers, Workload, Workloads};
pub use crate::state::pod_script::{PodRule, PodScript};
pub use crate::state::webhook_handlers::WebhookReply;
pub use crate::types::builtin::{BuiltinKind, builtin_kinds};
pub use crate::types::crd::structural::definition_errors;
#[doc(hidden)]
pub use crate::types::kinds::quantity;
