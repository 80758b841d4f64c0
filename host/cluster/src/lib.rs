//! The API server: the one place that knows the kube client.
//!
//! - [`Env`]: clock, timers, randomness, spawning. Nothing else in the host is ambient.
//! - [`Cluster`]: one connection pool. [`Cluster::host`] and [`Cluster::as_account`] give a
//!   [`ApiClient`]: get, apply, delete, access reviews, discovery, Events as one identity.
//! - [`cache`]: one shared cache per kind, read through a module's [`cache::View`].
//! - [`discovery`]: what the API server serves, against which the kinds of manifests are compared.
//! - [`lease`] and [`Fence`]: of several hosts one works, and stops sending before another may.
//! - [`ApiError`]: what went wrong, told apart so that a caller can act on it.
//!
//! What is absent here: nothing decides what should be written, nothing knows of guests.

pub mod cache;
pub mod client;
pub mod connection;
pub mod crd;
pub mod discovery;
pub mod env;
pub mod error;
pub mod events;
pub mod fence;
pub mod host_key;
pub mod identity;
pub mod kubeconfig;
pub mod lease;
mod resource_path;
pub mod revocation;
pub mod secret;
pub mod served_kind;
pub mod settings;
mod transport;

#[cfg(test)]
mod scripted;

pub use cache::{
    CacheSnapshot, Caches, Change, InFlightWrite, KindState, Listener, Lookup, Namespaces, Source,
    View,
};
pub use client::{ApiClient, Applied, Deleted, Force, Propagation, User};
pub use connection::Cluster;
pub use env::{Backoff, Elapsed, Env, Task};
pub use error::{ApiError, ConnectError, Denial, FieldConflict};
pub use fence::Fence;
pub use host_key::{HostKeyError, host_key};
pub use identity::{Account, Identity};
pub use kubeconfig::Kube;
pub use lease::{LeaderElector, LeaseConfig, LeaseLost};
pub use revocation::Revocation;
pub use secret::SecretKey;
pub use served_kind::{Mismatch, ServedKind};
pub use settings::Settings;
pub use transport::Requests;
