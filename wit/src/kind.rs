use serde::{Deserialize, Serialize};

/// The scope of a kind.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Scope {
    /// Each object is in a namespace.
    #[default]
    Namespaced,
    /// Objects are cluster-scoped.
    Cluster,
}

/// A kind of Kubernetes resource, with what a client needs to address it and to write RBAC rules
/// for it without API discovery.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Kind {
    /// Group and version (`apps/v1`), or the version alone for the core group (`v1`).
    pub api_version: String,
    /// Kind, CamelCase and singular (`Deployment`).
    pub kind: String,
    /// Resource name in URLs and RBAC rules, lower case and plural (`deployments`).
    pub plural: String,
    /// Whether objects of the kind have a namespace.
    #[serde(default)]
    pub scope: Scope,
}

impl Kind {
    /// Creates a namespaced kind.
    pub fn namespaced(
        api_version: impl Into<String>,
        kind: impl Into<String>,
        plural: impl Into<String>,
    ) -> Self {
        Self {
            api_version: api_version.into(),
            kind: kind.into(),
            plural: plural.into(),
            scope: Scope::Namespaced,
        }
    }

    /// Creates a cluster-scoped kind.
    pub fn cluster(
        api_version: impl Into<String>,
        kind: impl Into<String>,
        plural: impl Into<String>,
    ) -> Self {
        Self { scope: Scope::Cluster, ..Self::namespaced(api_version, kind, plural) }
    }

    /// Returns the group; empty for the core group.
    pub fn group(&self) -> &str {
        self.api_version.split_once('/').map_or("", |(group, _)| group)
    }

    /// Returns the version.
    pub fn version(&self) -> &str {
        self.api_version.split_once('/').map_or(self.api_version.as_str(), |(_, version)| version)
    }

    /// Returns whether the kind is namespaced.
    pub fn is_namespaced(&self) -> bool {
        self.scope == Scope::Namespaced
    }

    /// Returns the resource with its group, as in error messages: `deployments.apps`, `services`.
    pub fn resource(&self) -> String {
        match self.group() {
            "" => self.plural.clone(),
            group => format!("{}.{group}", self.plural),
        }
    }
}

impl std::fmt::Display for Kind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.api_version, self.kind)
    }
}
