//! The resource of a kind. Metadata names a kind without its plural and its scope.

use innkeeper_contract::{Kind, Scope};

/// The cluster-scoped kinds of Kubernetes, by group.
const CLUSTER_SCOPED: &[(&str, &[&str])] = &[
    ("", &["ComponentStatus", "Namespace", "Node", "PersistentVolume"]),
    (
        "admissionregistration.k8s.io",
        &[
            "MutatingAdmissionPolicy",
            "MutatingAdmissionPolicyBinding",
            "MutatingWebhookConfiguration",
            "ValidatingAdmissionPolicy",
            "ValidatingAdmissionPolicyBinding",
            "ValidatingWebhookConfiguration",
        ],
    ),
    ("apiextensions.k8s.io", &["CustomResourceDefinition"]),
    ("apiregistration.k8s.io", &["APIService"]),
    ("certificates.k8s.io", &["CertificateSigningRequest", "ClusterTrustBundle"]),
    ("flowcontrol.apiserver.k8s.io", &["FlowSchema", "PriorityLevelConfiguration"]),
    ("gateway.networking.k8s.io", &["GatewayClass"]),
    ("networking.k8s.io", &["IPAddress", "IngressClass", "ServiceCIDR"]),
    ("node.k8s.io", &["RuntimeClass"]),
    ("policies.kubewarden.io", &["ClusterAdmissionPolicy", "ClusterAdmissionPolicyGroup"]),
    ("rbac.authorization.k8s.io", &["ClusterRole", "ClusterRoleBinding"]),
    ("resource.k8s.io", &["DeviceClass", "ResourceSlice"]),
    ("scheduling.k8s.io", &["PriorityClass"]),
    (
        "storage.k8s.io",
        &["CSIDriver", "CSINode", "StorageClass", "VolumeAttachment", "VolumeAttributesClass"],
    ),
];

/// The kind with its resource: cluster-scoped if Kubernetes has it so, and with the plural by the
/// rules of English that API authors follow. Discovery compares both with the API server.
pub(crate) fn kind(api_version: &str, kind: &str) -> Kind {
    let mut found = Kind::namespaced(api_version, kind, plural(kind));
    let of_group = CLUSTER_SCOPED.iter().find(|(group, _)| *group == found.group());
    if of_group.is_some_and(|(_, kinds)| kinds.contains(&kind)) {
        found.scope = Scope::Cluster;
    }
    found
}

fn plural(kind: &str) -> String {
    let singular = kind.to_ascii_lowercase();
    let vowel_y = ["ay", "ey", "oy", "uy"].iter().any(|end| singular.ends_with(end));
    match singular.strip_suffix('y') {
        _ if singular == "endpoints" => singular,
        Some(stem) if !vowel_y => format!("{stem}ies"),
        _ if ["s", "x", "ch", "sh"].iter().any(|end| singular.ends_with(end)) => {
            format!("{singular}es")
        }
        _ => format!("{singular}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_of_kubernetes_have_their_plural_and_scope() {
        for (api_version, name, resource, scope) in [
            ("v1", "Pod", "pods", Scope::Namespaced),
            ("v1", "Namespace", "namespaces", Scope::Cluster),
            ("v1", "Endpoints", "endpoints", Scope::Namespaced),
            ("apps/v1", "Deployment", "deployments.apps", Scope::Namespaced),
            ("networking.k8s.io/v1", "Ingress", "ingresses.networking.k8s.io", Scope::Namespaced),
            (
                "networking.k8s.io/v1",
                "NetworkPolicy",
                "networkpolicies.networking.k8s.io",
                Scope::Namespaced,
            ),
            ("storage.k8s.io/v1", "StorageClass", "storageclasses.storage.k8s.io", Scope::Cluster),
            (
                "gateway.networking.k8s.io/v1",
                "Gateway",
                "gateways.gateway.networking.k8s.io",
                Scope::Namespaced,
            ),
            ("example.com/v1", "Box", "boxes.example.com", Scope::Namespaced),
        ] {
            let found = kind(api_version, name);
            assert_eq!((&*found.resource(), found.scope), (resource, scope), "{name}");
        }
    }
}
