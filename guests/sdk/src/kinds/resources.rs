use std::collections::BTreeMap;

use serde::Serialize;

/// Compute resources of a container: quantities by resource.
///
/// ```
/// use innkeeper_sdk::kinds::{Container, Resources};
///
/// let resources = Resources::default().request("cpu", "100m").limit("memory", "128Mi");
/// let web = Container::new("web", "nginx:1").resources(resources);
/// assert_eq!(web.verbatim["resources"]["limits"]["memory"], "128Mi");
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Resources {
    /// What the scheduler reserves; the limits if empty.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub requests: BTreeMap<String, String>,
    /// Maximum.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub limits: BTreeMap<String, String>,
}

into_json!(Resources);

impl Resources {
    /// Requests a quantity (`100m`) of a resource (`cpu`, `memory`).
    pub fn request(mut self, resource: &str, quantity: impl Into<String>) -> Self {
        self.requests.insert(resource.to_owned(), quantity.into());
        self
    }

    /// Limits a resource to a quantity.
    pub fn limit(mut self, resource: &str, quantity: impl Into<String>) -> Self {
        self.limits.insert(resource.to_owned(), quantity.into());
        self
    }
}
