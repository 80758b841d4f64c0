//! Control and decoration: which module may write the status of a primary.
//!
//! One module controls a primary of a custom resource: it writes the status. Other modules may
//! decorate the primary: they make objects for it and merge fields into it, and report by metrics
//! and Events. Kubernetes' own kinds have controllers already, so modules only decorate them.

use innkeeper_contract::{Kind, Manifest};

/// The API groups of Kubernetes itself up to 1.35, with older ones that objects may still name, in
/// order. Other groups under `k8s.io` (`gateway.networking.k8s.io`, `snapshot.storage.k8s.io`) hold
/// custom resources.
const BUILTIN_GROUPS: [&str; 24] = [
    "",
    "admissionregistration.k8s.io",
    "apiextensions.k8s.io",
    "apiregistration.k8s.io",
    "apps",
    "authentication.k8s.io",
    "authorization.k8s.io",
    "autoscaling",
    "batch",
    "certificates.k8s.io",
    "coordination.k8s.io",
    "discovery.k8s.io",
    "events.k8s.io",
    "extensions",
    "flowcontrol.apiserver.k8s.io",
    "internal.apiserver.k8s.io",
    "networking.k8s.io",
    "node.k8s.io",
    "policy",
    "rbac.authorization.k8s.io",
    "resource.k8s.io",
    "scheduling.k8s.io",
    "storage.k8s.io",
    "storagemigration.k8s.io",
];

/// Whether a kind belongs to Kubernetes itself.
pub fn is_builtin(kind: &Kind) -> bool {
    BUILTIN_GROUPS.binary_search(&kind.group()).is_ok()
}

/// Whether a module decorates its primaries, so that it writes no status; also true without a
/// primary.
pub fn decorates(manifest: &Manifest) -> bool {
    manifest.decorates || manifest.primary.as_ref().is_none_or(is_builtin)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn guest_decorates_builtin_primaries_and_has_no_status_without_a_primary() {
        let manifest = |primary: Option<Kind>| {
            let text = serde_json::json!({"name": "g", "primary": primary});
            serde_json::from_value::<Manifest>(text).unwrap()
        };
        let deployment = Kind::namespaced("apps/v1", "Deployment", "deployments");
        let web = Kind::namespaced("example.com/v1", "Web", "webs");
        assert!(decorates(&manifest(Some(deployment))));
        assert!(!decorates(&manifest(Some(web))));
        assert!(decorates(&manifest(None)));
    }

    #[test]
    fn builtin_groups_are_sorted_and_exclude_custom_resources() {
        assert!(BUILTIN_GROUPS.is_sorted());
        assert!(is_builtin(&Kind::cluster("v1", "Namespace", "namespaces")));
        assert!(is_builtin(&Kind::namespaced("apps/v1", "Deployment", "deployments")));
        assert!(!is_builtin(&Kind::namespaced("example.com/v1", "Web", "webs")));
        let gateway = Kind::namespaced("gateway.networking.k8s.io/v1", "Gateway", "gateways");
        assert!(!is_builtin(&gateway));
    }
}
