use serde::{Deserialize, Serialize};

/// Whether objects of a kind live in a namespace.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Scope {
    /// Each object lives in one namespace.
    #[default]
    Namespaced,
    /// Objects belong to the whole cluster.
    Cluster,
}

/// A kind of Kubernetes resource, with all that is needed to address it and to
/// grant rights on it without asking a server.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Kind {
    /// Group and version (`apps/v1`), or the version alone for the core group (`v1`).
    pub api_version: String,
    /// The kind's name, CamelCase and singular (`Deployment`).
    pub kind: String,
    /// The resource's name in URLs and in RBAC, lower case and plural (`deployments`).
    pub plural: String,
    /// Where its objects live; namespaced if left out.
    #[serde(default)]
    pub scope: Scope,
}

impl Kind {
    /// A namespaced kind.
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

    /// A cluster-scoped kind.
    pub fn cluster(
        api_version: impl Into<String>,
        kind: impl Into<String>,
        plural: impl Into<String>,
    ) -> Self {
        Self { scope: Scope::Cluster, ..Self::namespaced(api_version, kind, plural) }
    }

    /// The group; empty for the core group.
    pub fn group(&self) -> &str {
        self.api_version.split_once('/').map_or("", |(group, _)| group)
    }

    /// The version.
    pub fn version(&self) -> &str {
        self.api_version.split_once('/').map_or(self.api_version.as_str(), |(_, version)| version)
    }

    /// Whether objects of this kind live in a namespace.
    pub fn is_namespaced(&self) -> bool {
        self.scope == Scope::Namespaced
    }

    /// The resource as RBAC and errors name it: `deployments.apps`, `services`.
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
