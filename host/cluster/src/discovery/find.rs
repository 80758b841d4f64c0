//! A kind by its name: the API server knows its plural and scope.

use std::time::Duration;

use innkeeper_contract::{Kind, KindName, Scope};

use super::{Discovery, Resource, quotable};
use crate::ApiError;

/// How the API server serves a kind of which only the name is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FoundKind {
    /// The API server serves the kind.
    Served(Kind),
    /// The API server does not serve the kind (now).
    NotServed,
    /// The API server serves several resources of the kind; their plurals, for a message.
    Ambiguous(Vec<String>),
}

impl Discovery {
    /// Finds a kind by its name in an answer of discovery that is at most `age` old.
    ///
    /// An aggregated API server may send any plural: the caller checks it.
    ///
    /// # Errors
    /// If discovery does not answer. The caller must not use the kind then.
    pub async fn find(&self, name: &KindName, age: Duration) -> Result<FoundKind, ApiError> {
        // Of the path of discovery only the group and version are used.
        let kind = Kind::namespaced(&*name.api_version, &*name.kind, "");
        let is_final = |found: &FoundKind| matches!(found, FoundKind::Served(_));
        self.answer(&kind, age, is_final, |resources| {
            resources.map_or(FoundKind::NotServed, |resources| found(&kind, resources))
        })
        .await
    }
}

/// Finds a kind among the resources of its group and version.
fn found(kind: &Kind, resources: &[Resource]) -> FoundKind {
    let is_same = |one: &&Resource| {
        one.kind == kind.kind
            // A subresource is no resource of its own.
            && !one.name.contains('/')
            && (one.group.is_empty() || one.group == kind.group())
    };
    let found: Vec<&Resource> = resources.iter().filter(is_same).collect();
    match *found {
        [] => FoundKind::NotServed,
        [one] => FoundKind::Served(Kind {
            plural: one.name.clone(),
            scope: if one.namespaced { Scope::Namespaced } else { Scope::Cluster },
            ..kind.clone()
        }),
        _ => FoundKind::Ambiguous(found.iter().map(|one| quotable(&one.name)).collect()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scripted::resources;

    fn find(api_version: &str, kind: &str) -> FoundKind {
        let all = resources(&[
            ("pods", "Pod", true),
            ("pods/exec", "PodExecOptions", true),
            ("pods/status", "Pod", true),
            ("namespaces", "Namespace", false),
            ("foos", "Foo", true),
            ("fooz", "Foo", true),
        ]);
        let all: Vec<Resource> = serde_json::from_value(all["resources"].clone()).unwrap();
        found(&Kind::namespaced(api_version, kind, ""), &all)
    }

    #[test]
    fn kind_is_found_by_name_only_as_a_whole_resource() {
        assert_eq!(find("v1", "Pod"), FoundKind::Served(Kind::namespaced("v1", "Pod", "pods")));
        let namespace = Kind::cluster("v1", "Namespace", "namespaces");
        assert_eq!(find("v1", "Namespace"), FoundKind::Served(namespace));
        assert_eq!(find("v1", "PodExecOptions"), FoundKind::NotServed);
        assert_eq!(find("v1", "pod"), FoundKind::NotServed);
    }

    #[test]
    fn kind_that_two_resources_have_is_ambiguous() {
        let plurals = vec!["foos".to_owned(), "fooz".to_owned()];
        assert_eq!(find("v1", "Foo"), FoundKind::Ambiguous(plurals));
    }
}
