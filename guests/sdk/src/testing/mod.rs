//! Testing a guest without wasm and without a cluster.
//!
//! A [`Scenario`] is what a run is given: the primary, the objects that it made, what the
//! cluster holds besides. [`Scenario::run`] goes through the same documents as the component
//! and gives a [`Run`], whose assertions read as sentences and fail with what there was instead.
//!
//! A [`FakeCluster`] goes on from there: what a run desires is applied, and the guest is run
//! again until it wants nothing else.
//!
//! ```ignore
//! Scenario::<Guest>::of(json!({ "metadata": { "name": "web" }, "spec": { "replicas": 3 } }))
//!     .owns_ready(json!({ "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": "web" } }))
//!     .run()
//!     .is_complete()
//!     .desires::<Deployment>("web")
//!     .with("/spec/replicas", 3);
//! ```

mod fake_cluster;
mod fake_reader;
mod run;
mod scenario;
mod selector;

pub use fake_cluster::FakeCluster;
pub use fake_reader::FakeReader;
pub use run::{DesiredView, Run};
pub use scenario::Scenario;
