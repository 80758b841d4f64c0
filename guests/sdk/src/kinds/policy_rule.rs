use serde::Serialize;

/// A rule of a Role or `ClusterRole`: verbs on resources or on URLs.
///
/// ```
/// use innkeeper_sdk::kinds::PolicyRule;
///
/// let rule = PolicyRule::new("apps", ["deployments"], ["get", "list"]).named(["web"]);
/// assert_eq!(rule.resource_names, ["web"]);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PolicyRule {
    /// API groups; the core group is empty.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub api_groups: Vec<String>,
    /// Resources (`pods`, `pods/log`).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub resources: Vec<String>,
    /// Names of objects; all objects if empty.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub resource_names: Vec<String>,
    /// URL paths that are no resources (`/healthz`), for a `ClusterRole`.
    #[serde(rename = "nonResourceURLs", skip_serializing_if = "Vec::is_empty")]
    pub non_resource_urls: Vec<String>,
    /// Verbs; `*` for all.
    pub verbs: Vec<String>,
}

impl PolicyRule {
    /// Allows verbs on resources of one API group; the core group is empty.
    pub fn new<R: Into<String>, V: Into<String>>(
        group: &str,
        resources: impl IntoIterator<Item = R>,
        verbs: impl IntoIterator<Item = V>,
    ) -> Self {
        Self {
            api_groups: vec![group.to_owned()],
            resources: resources.into_iter().map(Into::into).collect(),
            verbs: verbs.into_iter().map(Into::into).collect(),
            ..Self::default()
        }
    }

    /// Allows verbs on URL paths that are no resources.
    pub fn urls<U: Into<String>, V: Into<String>>(
        urls: impl IntoIterator<Item = U>,
        verbs: impl IntoIterator<Item = V>,
    ) -> Self {
        Self {
            non_resource_urls: urls.into_iter().map(Into::into).collect(),
            verbs: verbs.into_iter().map(Into::into).collect(),
            ..Self::default()
        }
    }

    /// Restricts the rule to objects with these names.
    pub fn named<S: Into<String>>(mut self, names: impl IntoIterator<Item = S>) -> Self {
        self.resource_names = names.into_iter().map(Into::into).collect();
        self
    }
}
