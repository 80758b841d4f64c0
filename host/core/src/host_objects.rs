//! Objects that belong to Innkeeper itself, which no module may write.
//!
//! A module that writes them changes the host, or the code and the accounts of other modules. The
//! host refuses them whatever RBAC allows the module's account, since a module is untrusted code.

use innkeeper_contract::Kind;

use crate::ObjectKey;
use crate::host_names::DOMAIN;

/// The namespace of the host: it has the Pods, the Lease and the key of the host.
pub const HOST_NAMESPACE: &str = "innkeeper-system";

/// The namespace of the modules' components and ServiceAccounts.
pub const MODULES_NAMESPACE: &str = "innkeeper-modules";

/// The API group of the host's own kinds.
pub const GROUP: &str = DOMAIN;

/// The name of the host's ClusterRole and of its binding, as it is installed.
const ROLE: &str = "innkeeper";

/// The name of the admission policy that checks whether an editor of Modules may use an account,
/// and of its binding.
const ACCOUNT_POLICY: &str = "innkeeper-module-account";

/// The beginning of the names of the objects that the host makes for the policy of a Module: its
/// webhook configuration, its record in the namespace of the host, and its reports. The name of the
/// Module follows.
pub const POLICY_PREFIX: &str = "innkeeper-policy-";

/// The name of the webhook configuration, of the record and of the first report of a Module's
/// policy.
pub fn policy_object_name(module: &str) -> String {
    format!("{POLICY_PREFIX}{module}")
}

/// Whether a namespace belongs to Innkeeper itself, in a default installation.
pub fn is_namespace(name: &str) -> bool {
    matches!(name, HOST_NAMESPACE | MODULES_NAMESPACE)
}

/// Whether a namespace belongs to Innkeeper itself. `host_namespace` is where the
/// host runs, if that is not [`HOST_NAMESPACE`].
pub fn is_namespace_of(name: &str, host_namespace: Option<&str>) -> bool {
    is_namespace(name) || (!name.is_empty() && host_namespace == Some(name))
}

/// Whether a kind is Namespace, or Project, under which OpenShift serves namespaces.
fn is_namespace_kind(kind: &Kind) -> bool {
    let resource = (kind.group(), &*kind.plural);
    [("", "namespaces"), ("project.openshift.io", "projects")].contains(&resource)
}

/// Whether an object belongs to Innkeeper itself, in a default installation: it is one of
/// Innkeeper's namespaces or in one of them, it has, defines or serves a kind of Innkeeper's API
/// group, it grants the host its permissions, it decides who may use an account, or it sends
/// requests to a policy.
pub fn is_object(kind: &Kind, key: &ObjectKey) -> bool {
    if is_namespace(key.namespace()) || kind.group() == GROUP {
        return true;
    }
    if is_namespace_kind(kind) {
        return is_namespace(key.name());
    }
    match (kind.group(), &*kind.plural) {
        // `modules.innkeeper.dev` and `v1alpha1.innkeeper.dev`: a server of the API group decides
        // which modules run.
        ("apiextensions.k8s.io", "customresourcedefinitions")
        | ("apiregistration.k8s.io", "apiservices") => {
            key.name().split_once('.').is_some_and(|(_, group)| group == GROUP)
        }
        // OpenShift also serves these objects in its own group.
        (
            "rbac.authorization.k8s.io" | "authorization.openshift.io",
            "clusterroles" | "clusterrolebindings",
        ) => key.name() == ROLE,
        (
            "admissionregistration.k8s.io",
            "validatingadmissionpolicies" | "validatingadmissionpolicybindings",
        ) => key.name() == ACCOUNT_POLICY,
        (
            "admissionregistration.k8s.io",
            "validatingwebhookconfigurations" | "mutatingwebhookconfigurations",
        ) => key.name().starts_with(POLICY_PREFIX),
        _ => false,
    }
}

/// Whether an object belongs to Innkeeper itself. `host_namespace` is where the host
/// runs, if that is not [`HOST_NAMESPACE`].
pub fn is_object_of(kind: &Kind, key: &ObjectKey, host_namespace: Option<&str>) -> bool {
    let namespace = if is_namespace_kind(kind) { key.name() } else { key.namespace() };
    is_object(kind, key) || is_namespace_of(namespace, host_namespace)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn namespace_that_the_host_runs_in_is_reserved_with_all_in_it() {
        let maps = Kind::namespaced("v1", "ConfigMap", "configmaps");
        let namespaces = Kind::cluster("v1", "Namespace", "namespaces");
        let roles = Kind::cluster("rbac.authorization.k8s.io/v1", "ClusterRole", "clusterroles");
        let aliases = Kind::cluster("authorization.openshift.io/v1", "ClusterRole", "clusterroles");
        let projects = Kind::cluster("project.openshift.io/v1", "Project", "projects");
        for (kind, namespace, name, expected) in [
            (&aliases, "", "innkeeper", true),
            (&aliases, "", "admin", false),
            (&projects, "", "innkeeper-modules", true),
            (&projects, "", "operators", true),
            (&projects, "", "other", false),
            (&maps, "operators", "a", true),
            (&namespaces, "", "operators", true),
            (&namespaces, "", "innkeeper-system", true),
            (&maps, "other", "operators", false),
            (&roles, "", "operators", false),
        ] {
            let key = ObjectKey::new(namespace, name);
            assert_eq!(is_object_of(kind, &key, Some("operators")), expected, "{key}");
        }
        assert!(!is_object_of(&roles, &ObjectKey::new("", "a"), Some("")));
        assert!(!is_object_of(&maps, &ObjectKey::new("operators", "a"), None));
    }

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
        let [validating, mutating] = ["Validating", "Mutating"].map(|which| {
            let plural = format!("{}webhookconfigurations", which.to_lowercase());
            let kind = format!("{which}WebhookConfiguration");
            Kind::cluster("admissionregistration.k8s.io/v1", kind, plural)
        });
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
            (&validating, "", "innkeeper-policy-labels", true),
            (&mutating, "", "innkeeper-policy-defaults", true),
            (&mutating, "", "injector", false),
            (&policies, "", "innkeeper-policy-labels", false),
        ] {
            assert_eq!(
                is_object(kind, &ObjectKey::new(namespace, name)),
                expected,
                "{namespace}/{name}"
            );
        }
    }
}
