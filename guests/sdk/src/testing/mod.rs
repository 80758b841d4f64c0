//! Tests a guest natively, without WebAssembly and without a cluster.
//!
//! A [`Scenario`] is the input of one run: the primary, the objects that it owns, and the other
//! objects of the cluster. [`Scenario::run`] uses the same documents as the component and returns
//! a [`Run`] with assertions.
//!
//! A [`FakeCluster`] plays several runs: it applies the outcome of each run and runs the guest
//! again until a run changes nothing.
//!
//! A [`ReviewScenario`] is one request to a policy; [`ReviewScenario::run`] returns a [`ReviewRun`]
//! with assertions.
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
mod parameter_kinds;
mod primary_selector;
mod review_run;
mod review_scenario;
mod run;
mod scenario;
mod selector;

pub use fake_cluster::FakeCluster;
pub use fake_reader::FakeReader;
pub use review_run::ReviewRun;
pub use review_scenario::ReviewScenario;
pub use run::{DesiredView, Run};
pub use scenario::Scenario;
