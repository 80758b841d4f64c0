//! The requests that no policy reviews, as conditions in CEL.
//!
//! Selectors and rules cannot leave out cluster-scoped objects by name or requests by user, so
//! conditions do. The API server evaluates them before it calls the host. A condition that cannot
//! be evaluated counts as `failurePolicy` says, so each of them asks for a member before it reads
//! it: a deleted object has no `object`, and a collection that is deleted has neither object.

use innkeeper_contract::MatchCondition;
use innkeeper_core::review_scope::NEVER_REVIEWED_GROUPS;
use serde_json::{Value, json};

/// The requests of groups that no policy reviews.
const GROUPS: &str = "innkeeper.dev/no-groups-of-the-cluster";

/// The Pods that a kubelet runs from files. Anybody can give a Pod the annotation, so it counts on
/// requests of kubelets only. It cannot be added to a Pod later.
const NO_MIRROR_PODS: (&str, &str) = (
    "innkeeper.dev/no-mirror-pods",
    "request.resource.group != '' || request.resource.resource != 'pods' \
     || (has(request.subResource) && !(request.subResource in ['', 'status'])) \
     || !(has(request.userInfo.groups) && 'system:nodes' in request.userInfo.groups) \
     || (oldObject != null \
     ? !(has(oldObject.metadata.annotations) && 'kubernetes.io/config.mirror' in oldObject.metadata.annotations) \
     : object == null \
     || !(has(object.metadata.annotations) && 'kubernetes.io/config.mirror' in object.metadata.annotations))",
);

/// What kubelets and controllers of Kubernetes write so that nodes join and stay: without nodes the
/// host cannot start, and a request that waits for the host would wait forever.
const NO_NODE_UPKEEP: (&str, &str) = (
    "innkeeper.dev/no-node-upkeep",
    "!(request.resource.group == '' && request.resource.resource == 'nodes' \
     && has(request.subResource) && request.subResource == 'status') \
     && !((request.resource.group + '/' + request.resource.resource) in \
     ['/nodes', 'storage.k8s.io/csinodes', 'certificates.k8s.io/certificatesigningrequests'] \
     && has(request.userInfo.groups) && request.userInfo.groups.exists(group, group in \
     ['system:nodes', 'system:bootstrappers', 'system:serviceaccounts:kube-system']))",
);

/// What the host needs outside of its namespaces to start again: its rights, its definition and its
/// API group.
const NO_HOST_OBJECTS: (&str, &str) = (
    "innkeeper.dev/no-host-objects",
    "!(has(request.name) \
     && ((request.resource.group == 'rbac.authorization.k8s.io' && request.name == 'innkeeper' \
     && request.resource.resource in ['clusterroles', 'clusterrolebindings']) \
     || (request.resource.group in ['apiextensions.k8s.io', 'apiregistration.k8s.io'] \
     && request.name.endsWith('.innkeeper.dev') && request.name.split('.').size() == 3)))",
);

/// The conditions of the host, which come first: name and expression.
pub fn of_host() -> Vec<(&'static str, String)> {
    let groups: Vec<String> =
        NEVER_REVIEWED_GROUPS.iter().map(|group| format!("'{group}'")).collect();
    let of_groups = format!("!(request.resource.group in [{}])", groups.join(", "));
    let others = [NO_MIRROR_PODS, NO_NODE_UPKEEP, NO_HOST_OBJECTS];
    let others = others.into_iter().map(|(name, expression)| (name, expression.to_owned()));
    std::iter::once((GROUPS, of_groups)).chain(others).collect()
}

/// The conditions of a webhook: those of the host, and then those of the policy. With at most 16 of
/// the guest and 16 of the Module they are fewer than the 64 that the API server accepts.
///
/// All conditions share a budget of the API server, which fails the request once it is spent, also
/// if one of the host is false. So an expression of the policy is evaluated only if those of the
/// host hold. It comes last, so that no text of it can end the branch that it is in.
pub(super) fn all(of_policy: &[&MatchCondition]) -> Vec<Value> {
    let of_host = of_host();
    let hold: Vec<String> = of_host.iter().map(|(_, one)| format!("({one})")).collect();
    let hold = hold.join(" && ");
    let document = |name: &str, expression: &str| json!({"name": name, "expression": expression});
    let of_policy = of_policy.iter().map(|one| {
        let guarded = format!("!({hold}) ? true : {}", one.expression);
        document(&one.name, &guarded)
    });
    of_host.iter().map(|(name, one)| document(name, one)).chain(of_policy).collect()
}
