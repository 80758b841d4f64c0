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

mod acting;
mod admission;
mod apply;
mod builtin;
mod catalog;
mod cluster;
mod controller_set;
mod controllers;
mod crd;
mod discovery;
mod escalation;
mod follow;
mod http;
mod impersonation;
mod kinds;
mod kubelet;
mod label_selector;
mod labels;
mod members;
mod object;
mod openapi;
mod patch;
mod place;
mod pod_script;
mod protobuf;
mod rbac;
mod request;
mod request_body;
mod request_context;
mod request_log;
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
mod tokens;
mod tracked;
mod user;
mod value;
mod watch;
mod webhook_handlers;

pub use builtin::{BuiltinKind, builtin_kinds};
pub use controller_set::{Controllers, Workload, Workloads};
pub use http::body::Body;
pub use http::service::Simulator;
#[doc(hidden)]
pub use kinds::quantity;
pub use pod_script::{PodRule, PodScript};
#[doc(hidden)]
pub use switch::{BUGS, Bug, plant};
pub use user::User;
