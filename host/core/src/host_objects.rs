//! Objects that belong to Innkeeper itself, so that no module may write them.
//!
//! Whoever writes them changes the host, or the code and the accounts of other modules. RBAC of a
//! module's account does not matter here: an account with many rights still runs foreign code.

use innkeeper_contract::Kind;

use crate::Key;

/// The namespace of the host: its Pods, its Lease and the key of the digests.
pub const HOST_NAMESPACE: &str = "innkeeper-system";

/// The namespace of the modules' components and ServiceAccounts.
pub const MODULES_NAMESPACE: &str = "innkeeper-modules";

/// The API group of the host's own kinds.
pub const GROUP: &str = "innkeeper.dev";

/// The name of the host's ClusterRole and of its binding, as it is installed.
const ROLE: &str = "innkeeper";

/// The name of the policy that asks whether an editor of Modules may use an account, and of its binding.
const ACCOUNT_POLICY: &str = "innkeeper-module-account";

/// Whether a namespace belongs to Innkeeper itself.
pub fn is_namespace(name: &str) -> bool {
    matches!(name, HOST_NAMESPACE | MODULES_NAMESPACE)
}

/// Whether an object belongs to Innkeeper itself: it lies in one of its namespaces, is one of them,
/// defines or serves a kind of its group, gives the host its rights or decides who may name an account.
pub fn is_object(kind: &Kind, key: &Key) -> bool {
    if is_namespace(key.namespace()) || kind.group() == GROUP {
        return true;
    }
    match (kind.group(), &*kind.plural) {
        ("", "namespaces") => is_namespace(key.name()),
        // `modules.innkeeper.dev` and `v1alpha1.innkeeper.dev`: who serves the group decides what runs.
        ("apiextensions.k8s.io", "customresourcedefinitions")
        | ("apiregistration.k8s.io", "apiservices") => {
            key.name().split_once('.').is_some_and(|(_, group)| group == GROUP)
        }
        ("rbac.authorization.k8s.io", "clusterroles" | "clusterrolebindings") => key.name() == ROLE,
        (
            "admissionregistration.k8s.io",
            "validatingadmissionpolicies" | "validatingadmissionpolicybindings",
        ) => key.name() == ACCOUNT_POLICY,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_of_the_host_are_reserved_and_others_are_not() {
        let maps = Kind::namespaced("v1", "ConfigMap", "configmaps");
        let namespaces = Kind::cluster("v1", "Namespace", "namespaces");
        let definitions = Kind::cluster(
            "apiextensions.k8s.io/v1",
            "CustomResourceDefinition",
            "customresourcedefinitions",
        );
        let modules = Kind::cluster("innkeeper.dev/v1alpha1", "Module", "modules");
        let services = Kind::cluster("apiregistration.k8s.io/v1", "APIService", "apiservices");
        let roles = Kind::cluster("rbac.authorization.k8s.io/v1", "ClusterRole", "clusterroles");
        let policies = Kind::cluster(
            "admissionregistration.k8s.io/v1",
            "ValidatingAdmissionPolicy",
            "validatingadmissionpolicies",
        );
        for (kind, namespace, name, expected) in [
            (&maps, "innkeeper-modules", "other", true),
            (&maps, "innkeeper-system", "other", true),
            (&maps, "innkeeper", "innkeeper-modules", false),
            (&namespaces, "", "innkeeper-modules", true),
            (&namespaces, "", "innkeeper-system", true),
            (&namespaces, "", "innkeeper-modules-2", false),
            (&definitions, "", "modules.innkeeper.dev", true),
            (&definitions, "", "benches.bench.innkeeper.dev", false),
            (&modules, "", "other", true),
            (&services, "", "v1alpha1.innkeeper.dev", true),
            (&services, "", "v1alpha1.bench.innkeeper.dev", false),
            (&roles, "", "innkeeper", true),
            (&roles, "", "innkeeper-view", false),
            (&policies, "", "innkeeper-module-account", true),
            (&policies, "", "other", false),
        ] {
            assert_eq!(is_object(kind, &Key::new(namespace, name)), expected, "{namespace}/{name}");
        }
    }
}
