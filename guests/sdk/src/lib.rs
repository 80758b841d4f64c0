//! Write [Innkeeper](https://github.com/innkeeper-dev/innkeeper) guests in Rust.
//!
//! A guest is a pure function from observed state to desired state. It is an ordinary
//! Rust function: its tests are `cargo test`, with no wasm and no cluster, and the same
//! code becomes a WebAssembly component that the host runs.
//!
//! ```
//! use innkeeper_sdk::kinds::ConfigMap;
//! use innkeeper_sdk::{
//!     Context, Desired, Describe, Manifest, Metadata, Observed, Outcome, Primary, Reconciler, Resource,
//! };
//! use serde::Deserialize;
//!
//! // The primary: what users write.
//! #[derive(Deserialize)]
//! struct Greeting {
//!     metadata: Metadata,
//!     spec: GreetingSpec,
//! }
//!
//! #[derive(Deserialize)]
//! struct GreetingSpec {
//!     text: String,
//! }
//!
//! impl Resource for Greeting {
//!     const API_VERSION: &'static str = "example.com/v1";
//!     const KIND: &'static str = "Greeting";
//!     const PLURAL: &'static str = "greetings";
//! }
//!
//! impl Primary for Greeting {
//!     fn metadata(&self) -> &Metadata {
//!         &self.metadata
//!     }
//! }
//!
//! // The guest: what should be, from what is.
//! struct Greeter;
//!
//! impl Reconciler for Greeter {
//!     type Primary = Greeting;
//!
//!     fn describe() -> Manifest {
//!         Describe::reconciler_of::<Greeting>("greeter", "1.0.0").owns::<ConfigMap>().manifest()
//!     }
//!
//!     fn reconcile(_context: &Context, observed: &Observed<Greeting>) -> Outcome {
//!         let greeting = observed.primary();
//!         Desired::new()
//!             .object(ConfigMap::new(observed.name()).data("text", &greeting.spec.text))
//!             .complete()
//!     }
//! }
//!
//! innkeeper_sdk::export!(Greeter);
//!
//! // The test: what a user says, and what comes of it.
//! use innkeeper_sdk::testing::Scenario;
//! use serde_json::json;
//!
//! let primary = json!({ "metadata": { "name": "hello" }, "spec": { "text": "Good day" } });
//! let result = Scenario::<Greeter>::of(primary.clone()).run();
//! result.is_complete().desires::<ConfigMap>("hello").with("/data/text", "Good day");
//!
//! // And what comes of it later.
//! use innkeeper_sdk::testing::FakeCluster;
//!
//! let mut cluster = FakeCluster::<Greeter>::with(primary);
//! cluster.settle();
//! cluster.edit(|greeting| greeting["spec"]["text"] = json!("Good night"));
//! cluster.settle();
//! assert_eq!(cluster.object::<ConfigMap>("hello")["data"]["text"], "Good night");
//! ```
//!
//! | module | what is in it |
//! |---|---|
//! | (here) | [`Reconciler`], what it is given ([`Context`], [`Observed`]) and what it gives ([`Outcome`], [`Desired`]) |
//! | [`kinds`] | builders for the objects that guests make |
//! | [`read`] | thin views of objects that guests read |
//! | [`condition`], [`event`] | what is said about the primary |
//! | [`names`] | whether a text is a name that Kubernetes takes |
//! | `schema` | a CustomResourceDefinition from Rust types (not on wasm) |
//! | `testing` | scenarios: a primary and a world in, sentences about the outcome out (not on wasm) |
//! | `allocator` | the guest's memory (on wasm) |
//!
//! # Versions
//!
//! A component names the version of the contract that it was built with
//! (`innkeeper:guest/reconciler@0.1.0`), and a host says which it links. What grows crosses as
//! JSON documents: a new optional member is compatible, since guests ignore what they do not
//! know, and raises the patch number. What is not compatible raises the minor number, and a host
//! then links the old one too.

#[cfg(any(target_arch = "wasm32", test))]
mod allocator;
#[cfg(target_arch = "wasm32")]
#[doc(hidden)]
pub mod component;
pub mod condition;
mod context;
mod describe;
mod desired;
pub mod event;
pub mod kinds;
mod metadata;
pub mod names;
mod observed;
mod outcome;
pub mod read;
mod reconciler;
mod resource;
#[cfg(not(target_arch = "wasm32"))]
pub mod schema;
#[cfg(not(target_arch = "wasm32"))]
pub mod testing;

pub use context::{ClusterReader, Context, LogLevel, ReadError};
pub use describe::Describe;
pub use desired::{Apply, Desired, DesiredObject};
pub use innkeeper_contract::{
    Condition, ConditionStatus, Event, EventType, Failure, Kind, Manifest, OwnedKind, Policy,
    Readiness, ReadinessState, Reference, Scope, Unapplied,
};
pub use metadata::{Labels, Metadata, labels};
pub use observed::{Observed, Owned};
pub use outcome::Outcome;
pub use reconciler::{RawOutcome, Reconciler, describe_text, reconcile_text};
pub use resource::{Column, ColumnType, CustomResource, Primary, Resource, Rule};
pub use serde_json;

/// Makes a component of a [`Reconciler`]: `innkeeper_sdk::export!(MyGuest);`.
///
/// One to a component. Natively it only checks that the type is a `Reconciler`, so that
/// the crate can be tested.
#[macro_export]
macro_rules! export {
    ($reconciler:ty) => {
        #[cfg(target_arch = "wasm32")]
        const _: () = {
            struct Component;

            impl $crate::component::Guest for Component {
                fn describe() -> ::std::string::String {
                    $crate::component::describe::<$reconciler>()
                }

                fn reconcile(observed: ::std::string::String) -> $crate::component::Outcome {
                    $crate::component::reconcile::<$reconciler>(&observed)
                }
            }

            $crate::component::bindings::export!(Component with_types_in $crate::component::bindings);
        };

        #[cfg(not(target_arch = "wasm32"))]
        const _: () = {
            const fn is_a_reconciler<R: $crate::Reconciler>() {}
            is_a_reconciler::<$reconciler>();
        };
    };
}
