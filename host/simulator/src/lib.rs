//! An in-memory Kubernetes API with real semantics.
//!
//! One deterministic core, a state machine that takes requests and time, lies under a thin layer that
//! speaks HTTP as a tower Service: an unmodified client uses it in process, and a server can offer
//! it to others. It depends on no other crate of Innkeeper, so that it shares none of their mistakes; a
//! differential test holds it to a real API server.
//!
//! # Guarantees
//! - The same seed and the same requests at the same times give the same bytes.
//! - No thread, no clock, no randomness but the seed's.
//!
//! # Where what lies
//! `http` reads requests, `server` has the verbs, `apply` and `patch` make new objects of old ones, `kinds` and
//! `crd` know what each kind needs, `store` keeps, `watch` tells, `controllers` follow up.

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

pub use crate::api::http::body::Body;
pub use crate::auth::user::User;
#[doc(hidden)]
pub use crate::mutation::{MUTATIONS, Mutation, activate_mutation};
pub use crate::simulator::Simulator;
pub use crate::state::controller_set::{Controllers, Workload, Workloads};
pub use crate::state::pod_script::{PodRule, PodScript};
pub use crate::types::builtin::{BuiltinKind, builtin_kinds};
#[doc(hidden)]
pub use crate::types::kinds::quantity;
