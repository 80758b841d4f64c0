//! @name@: a policy that denies Deployments with more replicas than the Module allows.

use innkeeper_sdk::kinds::Deployment;
use innkeeper_sdk::serde_json::json;
use innkeeper_sdk::{
    Context, Describe, Manifest, Operation, RequestRule, Review, Reviewer, Verdict,
};
use serde::Deserialize;

/// A Deployment, or the Scale of one, as the policy reads it. Other fields are ignored.
#[derive(Clone, Debug, Deserialize)]
pub struct Scaled {
    /// Its spec.
    #[serde(default)]
    pub spec: ScaledSpec,
}

/// The desired number of Pods.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct ScaledSpec {
    /// Replicas.
    #[serde(default)]
    pub replicas: u32,
}

/// The parameters of the Module.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Parameters {
    /// The largest number of replicas.
    pub max_replicas: u32,
}

/// The policy.
pub struct Policy;

impl Policy {
    /// The verdict, or one that says why the policy cannot decide.
    fn decide(request: &Review<Scaled>) -> Result<Verdict, Verdict> {
        let Parameters { max_replicas: max } = request.parameters()?;
        let replicas = request.object().map_or(0, |object| object.spec.replicas);
        if replicas <= max {
            return Ok(Verdict::allow());
        }
        let message = format!("{replicas} replicas are more than {max}; ask for a higher limit");
        let cause = format!("is {replicas}, at most {max} are allowed");
        Ok(Verdict::invalid(message).cause("spec.replicas", cause))
    }
}

impl Reviewer for Policy {
    type Object = Scaled;

    /// What the policy is, and which requests it reviews.
    fn describe() -> Manifest {
        // `kubectl scale` and autoscalers write the subresource.
        let scale = RequestRule::of::<Deployment>().subresource("scale");
        Describe::validating_policy(env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION"))
            .rule(RequestRule::of::<Deployment>())
            .rule(scale.on([Operation::Update]))
            .parameters(json!({
                "type": "object",
                "required": ["maxReplicas"],
                "additionalProperties": false,
                "properties": { "maxReplicas": { "type": "integer", "minimum": 0 } },
            }))
            .manifest()
    }

    /// Whether the request is allowed. The same request gives the same verdict.
    fn review(_context: &Context, request: &Review<Scaled>) -> Verdict {
        Self::decide(request).unwrap_or_else(|failed| failed)
    }
}

innkeeper_sdk::export!(reviewer: Policy);
