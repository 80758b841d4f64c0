use innkeeper_contract::{
    KindParameter, KindRole, MatchCondition, PolicyKind, PolicyManifest, SideEffects,
};
use serde_json::Value;

use crate::{Manifest, RequestRule, Resource};

/// Builds the [`Manifest`] of a policy. [`Describe`](crate::Describe) starts it.
///
/// ```
/// use innkeeper_sdk::kinds::{ConfigMap, Deployment};
/// use innkeeper_sdk::{Describe, Operation, RequestRule};
///
/// let manifest = Describe::validating_policy("images", "1.0.0")
///     .rule(RequestRule::of::<Deployment>().on([Operation::Create, Operation::Update]))
///     .matches("not-scaled-to-zero", "object.spec.replicas > 0")
///     .reads::<ConfigMap>()
///     .manifest();
/// assert_eq!(manifest.policy.unwrap().rules[0].resources, ["deployments"]);
/// ```
pub struct DescribePolicy {
    manifest: Manifest,
    policy: PolicyManifest,
}

impl DescribePolicy {
    pub(crate) fn new(name: &str, version: &str, kind: PolicyKind) -> Self {
        let manifest = Manifest {
            name: name.to_owned(),
            version: version.to_owned(),
            primary: None,
            owned: Vec::new(),
            reads: Vec::new(),
            read_fields: Vec::new(),
            crds: Vec::new(),
            resync_seconds: None,
            finalizer: None,
            decorates: false,
            parameters_schema: None,
            kind_parameters: Vec::new(),
            selector: None,
            policy: None,
        };
        let policy = PolicyManifest {
            kind,
            rules: Vec::new(),
            match_conditions: Vec::new(),
            reinvocation: false,
            side_effects: SideEffects::None,
        };
        Self { manifest, policy }
    }

    /// Adds requests that the policy reviews. A policy needs one to 32 rules.
    pub fn rule(mut self, rule: RequestRule) -> Self {
        self.policy.rules.push(rule.into());
        self
    }

    /// Adds a condition in CEL that the API server evaluates before it calls the host; all must
    /// hold. `name` is for people.
    pub fn matches(mut self, name: &str, expression: &str) -> Self {
        let (name, expression) = (name.to_owned(), expression.to_owned());
        self.policy.match_conditions.push(MatchCondition { name, expression });
        self
    }

    /// Makes the API server call the policy again after another one changed the object. Only for a
    /// policy that changes objects.
    pub fn reinvoked(mut self) -> Self {
        self.policy.reinvocation = true;
        self
    }

    /// Declares that the policy reads this kind through its [`Context`](crate::Context).
    pub fn reads<R: Resource>(mut self) -> Self {
        self.manifest.reads.push(R::kind());
        self
    }

    /// Declares that the policy reads the kinds that a parameter of the Module names, with
    /// [`Context::get_of`](crate::Context::get_of): one [`KindName`](crate::KindName), or a list of
    /// at most 20.
    pub fn reads_parameter(mut self, parameter: &str) -> Self {
        self.manifest.kind_parameters.push(KindParameter {
            parameter: parameter.to_owned(),
            role: KindRole::Reads,
            merges: false,
            optional: false,
        });
        self
    }

    /// Sets the JSON Schema of the Module's `spec.parameters`. Without a schema the host rejects
    /// a Module that sets parameters.
    pub fn parameters(mut self, schema: Value) -> Self {
        self.manifest.parameters_schema = Some(schema.into());
        self
    }

    /// Returns the manifest.
    pub fn manifest(self) -> Manifest {
        Manifest { policy: Some(self.policy), ..self.manifest }
    }
}
