//! The kinds of a group whose objects can be listed and watched.

use std::collections::BTreeMap;
use std::time::Duration;

use innkeeper_contract::{Kind, Scope};
use innkeeper_core::names;
use serde::Deserialize;

use super::{Discovery, Resource};
use crate::ApiError;

/// The most groups that the host looks at; a cluster with many operators has some hundred.
const GROUPS_MAX: usize = 1_024;

impl Discovery {
    /// Asks which versions the API server serves: by group, the preferred version first. The core
    /// group is not among them: it has the version `v1` only.
    ///
    /// # Errors
    /// If discovery does not answer.
    pub async fn groups(&self) -> Result<BTreeMap<String, Vec<String>>, ApiError> {
        #[derive(Default, Deserialize)]
        struct Groups {
            #[serde(default)]
            groups: Vec<Group>,
        }
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Group {
            name: String,
            #[serde(default)]
            versions: Vec<Version>,
            #[serde(default)]
            preferred_version: Option<Version>,
        }
        #[derive(Deserialize)]
        struct Version {
            version: String,
        }
        let kind = Kind::cluster("v1", "APIGroup", "apigroups");
        let answer: Groups = self.read_path("/apis", &kind).await?.unwrap_or_default();
        let groups = answer.groups.into_iter().take(GROUPS_MAX).map(|group| {
            let preferred = group.preferred_version.into_iter();
            let mut versions: Vec<String> = Vec::new();
            for Version { version } in preferred.chain(group.versions) {
                let is_name = names::is_api_version(&format!("{}/{version}", group.name));
                if is_name && !versions.contains(&version) {
                    versions.push(version);
                }
            }
            (group.name, versions)
        });
        Ok(groups.filter(|(_, versions)| !versions.is_empty()).collect())
    }

    /// The kinds of a group and version whose objects can be listed and watched, from an answer of
    /// discovery that is at most `age` old; none if the version is not served.
    ///
    /// # Errors
    /// If discovery does not answer.
    pub async fn listable(&self, api_version: &str, age: Duration) -> Result<Vec<Kind>, ApiError> {
        // Of the path of discovery only the group and version are used.
        let kind = Kind::namespaced(api_version, "", "");
        let is_final = |found: &Vec<Kind>| !found.is_empty();
        self.answer(&kind, age, is_final, |resources| {
            let all = resources.unwrap_or_default().iter();
            all.filter_map(|one| listable(api_version, one)).collect()
        })
        .await
    }
}

/// The kind of a resource whose objects can be listed and watched. An aggregated API server may
/// send any text, so names that the host would not put into a path do not count.
fn listable(api_version: &str, resource: &Resource) -> Option<Kind> {
    let can = |verb: &str| resource.verbs.iter().any(|one| one == verb);
    let is_own = resource.group.is_empty()
        || api_version.split_once('/').map_or("", |(group, _)| group) == resource.group;
    let is_name = names::is_letter_label(&resource.name) && names::is_kind(&resource.kind);
    (can("list") && can("watch") && is_own && is_name).then(|| Kind {
        api_version: api_version.to_owned(),
        kind: resource.kind.clone(),
        plural: resource.name.clone(),
        scope: if resource.namespaced { Scope::Namespaced } else { Scope::Cluster },
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn only_whole_resources_with_list_and_watch_are_listable() {
        let resource = |name: &str, kind: &str, verbs: &[&str]| json!({"name": name, "kind": kind, "namespaced": true, "verbs": verbs});
        let all: Value = json!([
            resource("deployments", "Deployment", &["get", "list", "watch"]),
            resource("deployments/status", "Deployment", &["get", "list", "watch"]),
            resource("reviews", "Review", &["create"]),
            resource("../secrets", "Secret", &["list", "watch"]),
            resource("secrets", "Se cret", &["list", "watch"]),
        ]);
        let all: Vec<Resource> = serde_json::from_value(all).unwrap();
        let found: Vec<Kind> = all.iter().filter_map(|one| listable("apps/v1", one)).collect();
        assert_eq!(found, [Kind::namespaced("apps/v1", "Deployment", "deployments")]);
    }
}
