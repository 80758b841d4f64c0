//! Write [Innkeeper](https://github.com/innkeeper-dev/innkeeper) guests in Rust.
//!
//! This crate is for authors of guests who know Kubernetes and Rust. A guest is a pure function
//! from observed state to desired state, or from an admission request to a verdict ([`Reviewer`]).
//! `cargo test` tests it natively, without WebAssembly and without a cluster; compiled for
//! `wasm32`, it is a component that the host runs.
//!
//! ```
//! use innkeeper_sdk::kinds::ConfigMap;
//! use innkeeper_sdk::{
//!     Context, Desired, Describe, Manifest, Metadata, Observed, Outcome, Reconciler, kind,
//! };
//! use serde::Deserialize;
//!
//! // The primary: the custom resource that users create.
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
//! kind!(Primary for Greeting, "example.com/v1", "greetings");
//!
//! // The guest: desired state from observed state.
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
//! // A test of one run: given a primary, the guest desires a ConfigMap.
//! use innkeeper_sdk::testing::Scenario;
//! use serde_json::json;
//!
//! let primary = json!({ "metadata": { "name": "hello" }, "spec": { "text": "Good day" } });
//! let result = Scenario::<Greeter>::of(primary.clone()).run();
//! result.is_complete().desires::<ConfigMap>("hello").with("/data/text", "Good day");
//!
//! // A test of several runs: the ConfigMap follows the primary.
//! use innkeeper_sdk::testing::FakeCluster;
//!
//! let mut cluster = FakeCluster::<Greeter>::with(primary);
//! cluster.settle();
//! cluster.edit(|greeting| greeting["spec"]["text"] = json!("Good night"));
//! cluster.settle();
//! assert_eq!(cluster.object::<ConfigMap>("hello")["data"]["text"], "Good night");
//! ```
//!
//! | module | content |
//! |---|---|
//! | (crate root) | [`Reconciler`], its arguments ([`Context`], [`Observed`]) and its result ([`Outcome`], [`Desired`]) |
//! | [`Reviewer`], [`Review`], [`Verdict`] | a policy, its argument and its result |
//! | [`prelude`] | what nearly every guest imports |
//! | [`kinds`] | builders for desired objects |
//! | [`kind!`], [`Raw`] | any other kind, in two lines |
//! | [`KindObject`] | an object of a kind that a parameter of the Module names |
//! | feature `k8s-openapi` | `innkeeper_sdk::k8s_openapi`: its structs as desired, owned and read objects |
//! | [`read`] | types for objects that guests read |
//! | [`UpdateGroup`], [`template_hash`] | updates of a few objects at a time |
//! | [`RevisionHistory`] | earlier states of the primary, for such updates |
//! | [`ValueSource`] | copies of Secrets and ConfigMaps that the guest does not see |
//! | [`condition`], [`event`] | builders for conditions and Events of the primary |
//! | [`names`] | checks of names and label values |
//! | [`Time`], [`parse_duration`] | times and durations as Kubernetes and its users write them |
//! | [`one_line`] | shortens texts of other programs for messages |
//! | `schema` | generates a CustomResourceDefinition from Rust types (native only) |
//! | `testing` | runs guests in tests: one run (`Scenario`), several (`FakeCluster`), or one review (`ReviewScenario`) (native only) |
//! | `allocator` | the guest's global allocator (wasm32 only) |
//!
//! # Versions
//!
//! A component imports and exports the interfaces of the contract version that it was built with
//! (`innkeeper:guest/reconciler@0.1.0`). Documents cross the boundary as JSON. A new optional
//! member of a document is compatible, because guests ignore unknown members, and raises the
//! patch version. An incompatible change raises the minor version; the host then links the
//! earlier version too.

#[cfg(any(target_arch = "wasm32", test))]
mod allocator;
#[cfg(target_arch = "wasm32")]
#[doc(hidden)]
pub mod component;
pub mod condition;
mod context;
mod describe;
mod describe_policy;
mod desired;
pub mod event;
mod kind;
mod kind_object;
pub mod kinds;
mod metadata;
pub mod names;
mod observed;
#[cfg(feature = "k8s-openapi")]
mod open_api;
mod outcome;
pub mod prelude;
mod raw;
pub mod read;
mod read_fields;
mod reconciler;
mod request_rule;
mod resource;
mod review;
mod reviewer;
mod revision_history;
#[cfg(not(target_arch = "wasm32"))]
pub mod schema;
mod template_hash;
#[cfg(not(target_arch = "wasm32"))]
pub mod testing;
mod text;
mod time;
#[cfg_attr(
    not(any(target_arch = "wasm32", test)),
    expect(dead_code, reason = "only a component compares its types with its definition")
)]
mod type_fields;
mod update_group;
mod value_source;
mod verdict;

/// The crate `k8s-openapi`, in the version whose structs the SDK takes.
#[cfg(feature = "k8s-openapi")]
pub use ::k8s_openapi;
pub use context::{ClusterReader, Context, LogLevel, ReadError};
pub use describe::Describe;
pub use describe_policy::DescribePolicy;
pub use desired::{Apply, Desired, DesiredObject, IntoObject};
pub use innkeeper_contract::{
    Condition, ConditionStatus, Event, EventType, Failure, GroupVersionKind, GroupVersionResource,
    JsonText, Kind, KindName, KindParameter, KindRole, Manifest, Operation, OwnedKind, Policy,
    PrimarySelector, Readiness, ReadinessState, Reference, RuleScope, Scope, SelectorOperator,
    Unapplied, User, ValueRequirement,
};
pub use kind_object::KindObject;
pub use metadata::{Labels, Metadata, labels};
pub use observed::{Observed, Owned};
pub use outcome::{Outcome, RawOutcome};
pub use raw::Raw;
pub use reconciler::{Reconciler, describe_text, reconcile_text};
pub use request_rule::RequestRule;
pub use resource::{Column, ColumnType, CustomResource, Primary, Resource, Rule, Scale};
pub use review::Review;
pub use reviewer::{Reviewer, describe_policy_text, review_text};
pub use revision_history::RevisionHistory;
pub use serde_json;
pub use template_hash::template_hash;
pub use text::one_line;
pub use time::{Time, parse_duration};
pub use update_group::UpdateGroup;
pub use value_source::ValueSource;
pub use verdict::{RawVerdict, Verdict};

/// Exports a guest from the component.
///
/// | form | exports |
/// |---|---|
/// | `innkeeper_sdk::export!(MyGuest);` | a [`Reconciler`] |
/// | `innkeeper_sdk::export!(reviewer: MyPolicy);` | a [`Reviewer`] |
/// | `innkeeper_sdk::export!(reconciler: MyGuest, reviewer: MyPolicy);` | both; the manifest is that of the reconciler, with [`Describe::and_policy`] |
///
/// A component has exactly one `export!`. In a native build the macro only checks that the types
/// implement the traits, so that `cargo test` works.
#[macro_export]
macro_rules! export {
    (reviewer: $reviewer:ty $(,)?) => {
        $crate::export!(@policy $reviewer, $crate::component::policy::describe::<$reviewer>);
    };
    (reconciler: $reconciler:ty, reviewer: $reviewer:ty $(,)?) => {
        $crate::export!($reconciler);
        $crate::export!(@policy $reviewer, $crate::component::policy::describe_both::<$reconciler>);
    };
    (@policy $reviewer:ty, $describe:expr) => {
        #[cfg(target_arch = "wasm32")]
        const _: () = {
            struct Component;

            impl $crate::component::policy::Guest for Component {
                fn describe() -> ::std::string::String {
                    $describe()
                }

                fn review(request: ::std::string::String) -> $crate::component::policy::Outcome {
                    $crate::component::policy::review::<$reviewer>(&request)
                }
            }

            $crate::component::policy::bindings::export!(Component with_types_in $crate::component::policy::bindings);
        };

        #[cfg(not(target_arch = "wasm32"))]
        const _: () = {
            const fn is_a_reviewer<P: $crate::Reviewer>() {}
            is_a_reviewer::<$reviewer>();
        };
    };
    ($reconciler:ty) => {
        #[cfg(target_arch = "wasm32")]
        const _: () = {
            struct Component;

            impl $crate::component::reconciler::Guest for Component {
                fn describe() -> ::std::string::String {
                    $crate::component::reconciler::describe::<$reconciler>()
                }

                fn reconcile(
                    observed: ::std::string::String,
                ) -> $crate::component::reconciler::Outcome {
                    $crate::component::reconciler::reconcile::<$reconciler>(&observed)
                }
            }

            $crate::component::reconciler::bindings::export!(Component with_types_in $crate::component::reconciler::bindings);
        };

        #[cfg(not(target_arch = "wasm32"))]
        const _: () = {
            const fn is_a_reconciler<R: $crate::Reconciler>() {}
            is_a_reconciler::<$reconciler>();
        };
    };
}
