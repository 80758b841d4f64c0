//! The requests that no policy reviews, as conditions in CEL.
//!
//! Selectors and rules cannot leave out cluster-scoped objects by name or requests by user, so
//! conditions do. The API server evaluates them before it calls the host. A condition that cannot
//! be evaluated counts as `failurePolicy` says, so each of them asks for a member before it reads
//! it: a deleted object has no `object`, and a collection that is deleted has neither object.

use innkeeper_contract::MatchCondition;
use innkeeper_core::review_scope::{
    NEVER_REVIEWED_GROUPS, NODE_UPKEEP_RESOURCES, NODE_UPKEEP_USERS,
};
use serde_json::{Value, json};

/// The requests of [`NEVER_REVIEWED_GROUPS`].
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

/// The status of nodes, and the requests of [`NODE_UPKEEP_RESOURCES`] by [`NODE_UPKEEP_USERS`].
const NODE_UPKEEP: &str = "innkeeper.dev/no-node-upkeep";

/// The objects outside of its namespaces that the host needs to start again: its rights, its
/// definition and its API group.
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
    let groups = list(NEVER_REVIEWED_GROUPS);
    vec![
        (GROUPS, format!("!(request.resource.group in {groups})")),
        (NO_MIRROR_PODS.0, NO_MIRROR_PODS.1.to_owned()),
        (NODE_UPKEEP, no_node_upkeep()),
        (NO_HOST_OBJECTS.0, NO_HOST_OBJECTS.1.to_owned()),
    ]
}

fn no_node_upkeep() -> String {
    let resources =
        list(NODE_UPKEEP_RESOURCES.map(|(group, resource)| format!("{group}/{resource}")));
    let users = list(NODE_UPKEEP_USERS);
    format!(
        "!(request.resource.group == '' && request.resource.resource == 'nodes' \
         && has(request.subResource) && request.subResource == 'status') \
         && !((request.resource.group + '/' + request.resource.resource) in {resources} \
         && has(request.userInfo.groups) \
         && request.userInfo.groups.exists(group, group in {users}))"
    )
}

/// A list of CEL. The texts contain no quote.
fn list<T: std::fmt::Display>(texts: impl IntoIterator<Item = T>) -> String {
    let quoted: Vec<String> = texts.into_iter().map(|text| format!("'{text}'")).collect();
    format!("[{}]", quoted.join(", "))
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
