use innkeeper_contract::{Operation, PolicyRule, RuleScope};

use crate::Resource;

/// Requests that a policy reviews, by resource and operation. A new rule is about requests that
/// create or change objects; [`on`](Self::on) names other operations.
///
/// ```
/// use innkeeper_sdk::{Operation, RequestRule};
/// use innkeeper_sdk::kinds::Deployment;
///
/// let scaled = RequestRule::of::<Deployment>().subresource("scale").on([Operation::Update]);
/// let everything = RequestRule::of_resources("*", ["*"]);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestRule {
    rule: PolicyRule,
}

impl RequestRule {
    /// Creates a rule for the objects of one kind. The API server converts an object of another
    /// version of the kind into that of `R`.
    pub fn of<R: Resource>() -> Self {
        let (group, version) = R::API_VERSION.split_once('/').unwrap_or(("", R::API_VERSION));
        let mut rule = Self::of_resources(group, [R::PLURAL]);
        rule.rule.versions = vec![version.to_owned()];
        rule
    }

    /// Creates a rule for some resources of an API group, in any version. The empty text is the
    /// core group; `*` stands for all groups and for all resources without subresources.
    pub fn of_resources<'a>(group: &str, resources: impl IntoIterator<Item = &'a str>) -> Self {
        let rule = PolicyRule {
            groups: vec![group.to_owned()],
            versions: Vec::new(),
            resources: resources.into_iter().map(str::to_owned).collect(),
            operations: vec![Operation::Create, Operation::Update],
            scope: RuleScope::All,
        };
        Self { rule }
    }

    /// Sets the operations: one to three, each once, not `Connect`.
    pub fn on(mut self, operations: impl IntoIterator<Item = Operation>) -> Self {
        self.rule.operations = operations.into_iter().collect();
        self
    }

    /// Adds a group.
    pub fn group(mut self, group: &str) -> Self {
        self.rule.groups.push(group.to_owned());
        self
    }

    /// Adds a version. A rule without one is about all versions.
    pub fn version(mut self, version: &str) -> Self {
        self.rule.versions.push(version.to_owned());
        self
    }

    /// Limits the rule to this subresource of its resources, for example `scale`.
    pub fn subresource(mut self, subresource: &str) -> Self {
        for resource in &mut self.rule.resources {
            *resource = format!("{resource}/{subresource}");
        }
        self
    }

    /// Limits the rule to objects in namespaces, or to cluster-scoped objects.
    pub fn scope(mut self, scope: RuleScope) -> Self {
        self.rule.scope = scope;
        self
    }
}

impl From<RequestRule> for PolicyRule {
    fn from(rule: RequestRule) -> Self {
        rule.rule
    }
}
