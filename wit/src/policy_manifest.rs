use serde::{Deserialize, Serialize};

/// The requests that a policy reviews, and what it may do to them.
///
/// It grants nothing: `policy` of the Module switches the policy on, and can narrow or replace what
/// stands here.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PolicyManifest {
    /// Whether the policy only decides, or also changes objects.
    pub kind: PolicyKind,
    /// The requests that the policy reviews: those that match one of the rules. Limits: 1 to 32;
    /// `policy.rules` of the Module replaces them.
    pub rules: Vec<PolicyRule>,
    /// Conditions in CEL that the API server evaluates before it calls the host; all must hold.
    /// Limits: at most 16.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub match_conditions: Vec<MatchCondition>,
    /// Whether the API server calls the policy again after another one changed the object. Limits:
    /// only with the kind `Mutate`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub reinvocation: bool,
    /// What a review does apart from its verdict: always nothing.
    #[serde(default)]
    pub side_effects: SideEffects,
}

/// What a policy may do to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum PolicyKind {
    /// Allow or deny it.
    Validate,
    /// Allow or deny it, and change its object.
    Mutate,
}

/// What a review does apart from its verdict.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum SideEffects {
    /// Nothing.
    #[default]
    None,
}

/// Requests by resource and operation: a request matches if it matches each member.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PolicyRule {
    /// API groups. The empty text is the core group, `*` stands for all groups. Limits: 1 to 32.
    pub groups: Vec<String>,
    /// Versions of the groups. Default: all versions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub versions: Vec<String>,
    /// Resources as in URLs, with the subresource if there is one: `pods`, `deployments/scale`,
    /// `*`. Limits: 1 to 64.
    pub resources: Vec<String>,
    /// Operations. Limits: 1 to 3, each once, not `CONNECT`.
    pub operations: Vec<Operation>,
    /// Which objects, by their scope. Default: `All`.
    #[serde(default)]
    pub scope: RuleScope,
}

/// What a request does to its object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Operation {
    /// The request creates the object.
    Create,
    /// The request changes the object.
    Update,
    /// The request deletes the object.
    Delete,
    /// The request opens a connection, as `kubectl exec` does. Policies do not review it.
    Connect,
}

/// The objects of a rule, by their scope.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum RuleScope {
    /// All objects.
    #[default]
    All,
    /// Objects in a namespace.
    Namespaced,
    /// Cluster-scoped objects, Namespaces included.
    Cluster,
}

/// A condition in CEL, the expression language of Kubernetes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MatchCondition {
    /// Name of the condition, for people. Limits: a qualified name such as `not-a-lease` or
    /// `example.com/not-a-lease`, which no other condition has.
    pub name: String,
    /// The expression, which gives a bool. It has the variables `object`, `oldObject`, `request`
    /// and `authorizer`. Limits: 1 to 4,096 bytes.
    pub expression: String,
}

impl Operation {
    /// Returns the operation as Kubernetes writes it, for example `CREATE`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Create => "CREATE",
            Self::Update => "UPDATE",
            Self::Delete => "DELETE",
            Self::Connect => "CONNECT",
        }
    }
}

impl std::fmt::Display for Operation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}
