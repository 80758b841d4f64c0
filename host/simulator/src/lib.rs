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
mod apply;
mod builtin;
mod catalog;
mod cluster;
mod controllers;
mod crd;
mod discovery;
mod escalation;
mod http;
mod impersonation;
mod kinds;
mod label_selector;
mod object;
mod openapi;
mod patch;
mod place;
mod protobuf;
mod rbac;
mod request;
mod schema;
mod scratch;
mod selector;
mod server;
mod snapshot;
mod status_error;
mod store;
mod switch;
mod table;
mod texts;
mod token;
mod tracked;
mod user;
mod value;
mod watch;

pub use builtin::{BuiltinKind, builtin_kinds};
pub use controllers::{Controllers, PodRule, PodScript, Workload, Workloads};
pub use http::body::Body;
pub use http::service::Simulator;
#[doc(hidden)]
pub use kinds::quantity;
#[doc(hidden)]
pub use switch::{BUGS, Bug, plant};
pub use user::User;
