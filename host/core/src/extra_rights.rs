//! Rights that writing a kind takes in addition to the verbs on the kind itself.

use innkeeper_contract::Kind;

/// What a ServiceAccount needs in addition to the verbs on a kind to write its objects, as part of
/// a sentence; `None` if the verbs are enough.
///
/// Source: the API server's escalation check of RBAC, the admission of policies with parameters,
/// and the checks that OpenShift adds to Routes and Endpoints.
pub fn of(kind: &Kind) -> Option<&'static str> {
    let needs = match (kind.group(), kind.kind.as_str()) {
        ("rbac.authorization.k8s.io", "Role") => {
            "all rights that the Role grants, or the verb escalate on roles"
        }
        ("rbac.authorization.k8s.io", "ClusterRole") => {
            "all rights that the ClusterRole grants, or the verb escalate on clusterroles"
        }
        ("rbac.authorization.k8s.io", "RoleBinding") => {
            "all rights that the bound role grants, or the verb bind on that role (roles or clusterroles)"
        }
        ("rbac.authorization.k8s.io", "ClusterRoleBinding") => {
            "all rights that the bound role grants, or the verb bind on that role (clusterroles)"
        }
        (
            "admissionregistration.k8s.io",
            "ValidatingAdmissionPolicy" | "MutatingAdmissionPolicy",
        ) => "the right to get objects of the kind in spec.paramKind, if it is set",
        (
            "admissionregistration.k8s.io",
            "ValidatingAdmissionPolicyBinding" | "MutatingAdmissionPolicyBinding",
        ) => "the right to get the objects of spec.paramRef, if it is set",
        ("route.openshift.io", "Route") => {
            "the verbs create and update on routes/custom-host, if the guest sets spec.host"
        }
        ("", "Endpoints") => {
            "on OpenShift the verb create on endpoints/restricted, for addresses of Pods and Services"
        }
        ("discovery.k8s.io", "EndpointSlice") => {
            "on OpenShift the verb create on endpointslices/restricted, for addresses of Pods and Services"
        }
        _ => return None,
    };
    Some(needs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_kinds_that_grant_something_need_more_than_their_verbs() {
        let of_kind = |version: &str, kind: &str| of(&Kind::namespaced(version, kind, ""));
        let rbac = "rbac.authorization.k8s.io/v1";
        assert!(of_kind(rbac, "RoleBinding").unwrap().contains("the verb bind"));
        assert!(of_kind(rbac, "Role").unwrap().contains("the verb escalate"));
        assert_eq!(of_kind("example.com/v1", "Role"), None);
        assert_eq!(of_kind("v1", "Pod"), None);
        assert_eq!(of_kind("v1", "ServiceAccount"), None);
    }
}
