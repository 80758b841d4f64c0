//! Both exports in one component: a ConfigMap for each `Site`, and a policy that denies Sites
//! without a ConfigMap `allowed` in their namespace.

use innkeeper_sdk::kinds::ConfigMap;
use innkeeper_sdk::prelude::*;
use innkeeper_sdk::serde_json::Value;

kind!(Site, "example.com/v1", "sites");

struct Guest;

impl Reconciler for Guest {
    type Primary = Raw<Site>;

    fn describe() -> Manifest {
        Describe::reconciler_of::<Site>("reconciles-and-reviews", "1.0.0")
            .owns::<ConfigMap>()
            .and_policy(Consent::describe())
            .manifest()
    }

    fn reconcile(_context: &Context, observed: &Observed<Raw<Site>>) -> Outcome {
        let name = observed.name();
        Desired::new().object(ConfigMap::new(name).data("site", name)).complete()
    }
}

struct Consent;

kind!(Resource for Allowed = "ConfigMap", "v1", "configmaps");

#[derive(serde::Deserialize)]
struct Allowed {
    #[serde(default)]
    data: Labels,
}

impl Reviewer for Consent {
    type Object = Value;

    fn describe() -> Manifest {
        Describe::validating_policy("reconciles-and-reviews", "1.0.0")
            .rule(RequestRule::of::<Site>())
            .reads::<ConfigMap>()
            .manifest()
    }

    fn review(context: &Context, request: &Review<Value>) -> Verdict {
        let (namespace, name) = (request.namespace(), request.name());
        match context.find::<Allowed>(namespace, "allowed") {
            Ok(Some(allowed)) if allowed.object.data.contains_key(name) => Verdict::allow(),
            Ok(_) => Verdict::deny(format!(
                "no Site {name} is allowed in {namespace}; add its name to the ConfigMap allowed"
            )),
            Err(error) => error.into(),
        }
    }
}

innkeeper_sdk::export!(reconciler: Guest, reviewer: Consent);
