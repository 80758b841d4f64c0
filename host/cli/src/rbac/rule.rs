//! One rule of a role, with its reason.

use innkeeper_contract::Kind;
use serde_json::{Map, Value, json};

/// One rule of a role.
#[derive(Clone)]
pub(super) struct Rule {
    pub(super) why: String,
    pub(super) group: String,
    pub(super) resource: String,
    pub(super) names: Vec<String>,
    pub(super) verbs: &'static [&'static str],
    pub(super) scope: RuleScope,
}

/// Where a rule is granted.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum RuleScope {
    /// In the whole cluster.
    Cluster,
    /// In the namespaces of the primaries.
    Namespaces,
    /// In `default`, where Events about cluster-scoped objects lie.
    Default,
}

impl Rule {
    /// A rule for a kind, or for a subresource of it (`/status`).
    pub(super) fn new(
        why: String,
        kind: &Kind,
        subresource: &str,
        verbs: &'static [&'static str],
    ) -> Self {
        Self {
            why,
            group: kind.group().to_owned(),
            resource: format!("{}{subresource}", kind.plural),
            names: Vec::new(),
            verbs,
            scope: if kind.is_namespaced() { RuleScope::Namespaces } else { RuleScope::Cluster },
        }
    }

    /// As a member of `rules`.
    pub(super) fn object(&self) -> Map<String, Value> {
        let mut object = Map::new();
        object.insert("apiGroups".to_owned(), json!([self.group]));
        object.insert("resources".to_owned(), json!([self.resource]));
        if !self.names.is_empty() {
            object.insert("resourceNames".to_owned(), json!(self.names));
        }
        object.insert("verbs".to_owned(), json!(self.verbs));
        object
    }
}
