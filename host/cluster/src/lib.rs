//! The connection to the API server. No other crate uses the kube client.
//!
//! - [`Env`]: clock, timers, randomness, spawning. The host takes these from nowhere else.
//! - [`Cluster`]: one connection pool. [`Cluster::host`] and [`Cluster::as_account`] give an
//!   [`ApiClient`]: get, apply, delete, access reviews, discovery, Events as one identity.
//! - [`cache`]: one shared cache per kind, which a module reads through its [`cache::View`].
//! - [`discovery`]: the kinds that the API server serves, compared with the kinds of manifests.
//! - [`lease`] and [`Fence`]: leader election. A leader stops sending before another host may lead.
//! - [`ApiError`]: the error of a request, by type, so that a caller can act on it.
//!
//! This crate decides nothing about writes, and knows no guests.

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
mod pause;
mod resource_path;
pub mod revocation;
pub mod secret;
pub mod served_kind;
pub mod settings;
mod transport;
mod watch_pace;

#[cfg(test)]
mod scripted;

pub use cache::{
    CacheLookup, CacheSnapshot, Caches, Change, InFlightWrite, KindState, Listener, Namespaces,
    Source, View, ViewedKind,
};
pub use client::{ApiClient, ApplyResponse, Deleted, DryRun, Force, Propagation, User};
pub use connection::Cluster;
pub use discovery::FoundKind;
pub use env::{Backoff, Elapsed, Env, Task};
pub use error::{ApiError, ConnectError, Denial, FieldConflict, MissingRight};
pub use fence::Fence;
pub use host_key::{HostKeyError, host_key};
pub use identity::{Account, Identity};
pub use kubeconfig::Kube;
pub use lease::{LeaderElector, LeaseConfig, LeaseLost};
pub use revocation::Revocation;
pub use secret::SecretDigestKey;
pub use served_kind::{Mismatch, ServedKind};
pub use settings::Settings;
pub use transport::Requests;
