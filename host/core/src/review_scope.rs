//! The requests that no policy reviews, and the objects that no policy changes.

use crate::host_objects::GROUP;

/// The namespaces of Kubernetes itself, whose objects no policy reviews: a cluster repairs itself
/// by the Pods in them.
pub const SYSTEM_NAMESPACES: [&str; 3] = ["kube-node-lease", "kube-public", "kube-system"];

/// API groups whose requests no policy reviews. A policy that denied changes of Modules, of webhook
/// configurations, of the reviews of tokens and rights, or of Leases, by which nodes and
/// controllers show that they live, could block its own removal.
pub const NEVER_REVIEWED_GROUPS: [&str; 5] = [
    GROUP,
    "admissionregistration.k8s.io",
    "authentication.k8s.io",
    "authorization.k8s.io",
    "coordination.k8s.io",
];

/// API groups and resources that kubelets and the controllers of Kubernetes write so that nodes
/// join and stay. No policy reviews these requests of [`NODE_UPKEEP_USERS`]: without nodes the host
/// cannot start, and the requests would wait for the host.
pub const NODE_UPKEEP_RESOURCES: [(&str, &str); 3] = [
    ("", "nodes"),
    ("storage.k8s.io", "csinodes"),
    ("certificates.k8s.io", "certificatesigningrequests"),
];

/// The groups of the users who write [`NODE_UPKEEP_RESOURCES`].
pub const NODE_UPKEEP_USERS: [&str; 3] =
    ["system:nodes", "system:bootstrappers", "system:serviceaccounts:kube-system"];

/// API groups whose objects no policy changes. They grant rights, or decide what the API server
/// serves and whom it trusts, and a change by a policy is made after the user was authorized.
pub const NEVER_CHANGED_GROUPS: [&str; 8] = [
    "admissionregistration.k8s.io",
    "apiextensions.k8s.io",
    "apiregistration.k8s.io",
    "authorization.openshift.io",
    "certificates.k8s.io",
    "oauth.openshift.io",
    "rbac.authorization.k8s.io",
    "user.openshift.io",
];

/// Resources of the core group that have the tokens of ServiceAccounts, as rules name them. No
/// policy changes a request for a token, which names who gets it and for how long.
pub const TOKEN_RESOURCES: [&str; 3] = ["serviceaccounts/token", "serviceaccounts/*", "*/*"];

/// Whether no policy reviews requests of an API group.
pub fn is_never_reviewed(group: &str) -> bool {
    NEVER_REVIEWED_GROUPS.contains(&group)
}

/// Whether no policy changes the objects of a resource (`pods`, `deployments/scale`).
pub fn is_never_changed(group: &str, resource: &str) -> bool {
    NEVER_CHANGED_GROUPS.contains(&group)
        || (group.is_empty() && TOKEN_RESOURCES.contains(&resource))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rights_and_definitions_may_be_reviewed_and_are_never_changed() {
        for (group, resource) in [
            ("rbac.authorization.k8s.io", "clusterroles"),
            ("apiextensions.k8s.io", "customresourcedefinitions"),
            ("", "serviceaccounts/token"),
        ] {
            assert!(is_never_changed(group, resource), "{group} {resource}");
            assert!(!is_never_reviewed(group), "{group}");
        }
        assert!(!is_never_changed("", "serviceaccounts") && !is_never_changed("apps", "*"));
        assert!(is_never_reviewed("innkeeper.dev") && !is_never_reviewed("example.innkeeper.dev"));
    }
}
