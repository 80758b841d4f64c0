use serde::de::DeserializeOwned;

use crate::reconciler::manifest_text;
use crate::{ClusterReader, Context, Manifest, RawVerdict, Review, Verdict};

/// A policy: a pure function from an admission request to a verdict.
///
/// # When it runs
/// The API server asks the host about each request that matches a rule of the policy, before it
/// stores the object. The host also reviews existing objects
/// ([`Review::is_background`]).
///
/// # Requirements
/// The same request and the same answers to reads must give the same verdict. A policy that changes
/// objects changes nothing in an object that it has changed before: the API server can call it
/// again. A policy keeps no state between reviews (each has a fresh instance), and has no clock but
/// [`Context::now_ms`] and no randomness.
///
/// ```
/// use innkeeper_sdk::{Context, Describe, Manifest, RequestRule, Review, Reviewer, Verdict, kind};
/// use serde::Deserialize;
///
/// #[derive(Deserialize)]
/// struct Service {
///     spec: ServiceSpec,
/// }
///
/// #[derive(Deserialize)]
/// struct ServiceSpec {
///     #[serde(default, rename = "type")]
///     type_: String,
/// }
///
/// kind!(Resource for Service, "v1", "services");
///
/// struct NoLoadBalancers;
///
/// impl Reviewer for NoLoadBalancers {
///     type Object = Service;
///
///     fn describe() -> Manifest {
///         Describe::validating_policy("no-load-balancers", "1.0.0")
///             .rule(RequestRule::of::<Service>())
///             .manifest()
///     }
///
///     fn review(_context: &Context, request: &Review<Service>) -> Verdict {
///         match request.object() {
///             Some(service) if service.spec.type_ == "LoadBalancer" => {
///                 Verdict::deny("load balancers cost money here; use an Ingress")
///                     .cause("spec.type", "is LoadBalancer")
///             }
///             _ => Verdict::allow(),
///         }
///     }
/// }
///
/// innkeeper_sdk::export!(reviewer: NoLoadBalancers);
///
/// // A test of one request.
/// use innkeeper_sdk::testing::ReviewScenario;
/// use serde_json::json;
///
/// ReviewScenario::<NoLoadBalancers>::create::<Service>(json!({"spec": {"type": "LoadBalancer"}}))
///     .run()
///     .is_denied("use an Ingress");
/// ```
pub trait Reviewer {
    /// The type of the objects in the requests. A policy for many kinds takes a struct of what the
    /// kinds have in common, such as `metadata`, or [`serde_json::Value`].
    type Object: DeserializeOwned;

    /// Returns the manifest: which requests the policy reviews and which kinds it reads. The host
    /// calls it once, when it loads the component, and answers no reads. See
    /// [`Describe::validating_policy`](crate::Describe::validating_policy).
    fn describe() -> Manifest;

    /// Decides about one request.
    fn review(context: &Context, request: &Review<Self::Object>) -> Verdict;
}

/// Returns the `manifest` document of a policy as JSON text.
pub fn describe_policy_text<P: Reviewer>() -> String {
    manifest_text(&P::describe())
}

/// Reviews one request. `request` is a `review-request` document as JSON text; `reader` answers the
/// reads of the policy.
///
/// The component and `testing::ReviewScenario` both call it. An object that cannot be deserialized
/// gives a failure, which the failure policy of the Module decides about.
pub fn review_text<P: Reviewer>(reader: &dyn ClusterReader, request: &str) -> RawVerdict {
    match Review::<P::Object>::parse(request) {
        Ok(request) => P::review(&Context::new(reader), &request).into_raw(),
        Err(why) => RawVerdict::Failed(why),
    }
}
