//! The admission server: HTTPS for the API server, bounded in number, size and time.
//!
//! It answers `POST /v1/policies/<module>/<index>`, where `<index>` is the position of the webhook
//! in its configuration. Everything that is no review gets a status and a sentence. The API server
//! takes each of these as a failed call, for which `failurePolicy` decides.
//!
//! Anybody who reaches the port may send requests, so no client can hold more than its part of the
//! connections and of the memory for bodies.

mod activity;
mod admission_server;
mod answer;
mod body;
mod body_budget;
mod connection;
mod connections;
mod deadline;
mod drain;
mod in_process;
mod limits;
mod listener;
mod policy_path;
mod refusal;
mod shared;
mod statistics;
mod tls;
mod watched_stream;

pub use self::admission_server::AdmissionServer;
pub use self::in_process::{InProcessAnswer, answer_in_process};
pub use self::limits::ServerLimits;
pub use self::listener::Listener;
pub use self::statistics::ServerStatistics;
pub use self::tls::{TlsCertificate, TlsError};
