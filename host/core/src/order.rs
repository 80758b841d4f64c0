//! The order in which the host applies objects: namespaces, configuration, identity, workloads,
//! then all others. It deletes in reverse order.
//!
//! Within one rank the order is by kind, namespace and name. So two primaries that desire the same
//! names always create the same object first, and the first create decides.

use innkeeper_contract::Kind;

use crate::ObjectRef;

/// The ranks, first to last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rank {
    /// Namespaces and CustomResourceDefinitions, which other objects need to exist.
    Foundation,
    /// Objects that others mount or read.
    Configuration,
    /// ServiceAccounts and RBAC, which Pods need to run.
    Identity,
    /// Pods and their controllers.
    Workload,
    /// All others: Services, Routes, custom resources.
    Rest,
}

/// The rank of a kind.
pub fn rank(kind: &Kind) -> Rank {
    match (kind.group(), kind.kind.as_str()) {
        ("", "Namespace") | ("apiextensions.k8s.io", "CustomResourceDefinition") => {
            Rank::Foundation
        }
        (
            "",
            "ConfigMap"
            | "Secret"
            | "PersistentVolume"
            | "PersistentVolumeClaim"
            | "ResourceQuota"
            | "LimitRange",
        )
        | ("storage.k8s.io" | "scheduling.k8s.io", _)
        | ("apps", "ControllerRevision") => Rank::Configuration,
        ("", "ServiceAccount") | ("rbac.authorization.k8s.io", _) => Rank::Identity,
        ("", "Pod" | "ReplicationController") | ("apps" | "batch", _) => Rank::Workload,
        _ => Rank::Rest,
    }
}

/// The key by which the host sorts objects before it applies them.
pub fn sort_key(object_ref: &ObjectRef) -> (Rank, &ObjectRef) {
    (rank(&object_ref.kind), object_ref)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::ObjectKey;

    #[test]
    fn objects_that_others_need_are_sorted_first() {
        let mut objects: Vec<ObjectRef> = [
            ("v1", "Service"),
            ("apps/v1", "Deployment"),
            ("rbac.authorization.k8s.io/v1", "RoleBinding"),
            ("route.openshift.io/v1", "Route"),
            ("v1", "ServiceAccount"),
            ("v1", "Secret"),
            ("v1", "Namespace"),
            ("v1", "ConfigMap"),
            ("apps/v1", "ControllerRevision"),
        ]
        .into_iter()
        .map(|(version, kind)| {
            ObjectRef::new(Arc::new(Kind::namespaced(version, kind, "")), ObjectKey::new("n", "a"))
        })
        .collect();
        objects.sort_by(|a, b| sort_key(a).cmp(&sort_key(b)));
        let kinds: Vec<&str> =
            objects.iter().map(|object_ref| object_ref.kind.kind.as_str()).collect();
        assert_eq!(
            kinds,
            [
                "Namespace",
                "ControllerRevision",
                "ConfigMap",
                "Secret",
                "RoleBinding",
                "ServiceAccount",
                "Deployment",
                "Route",
                "Service"
            ]
        );
    }
}
