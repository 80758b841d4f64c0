//! The requests that no policy reviews, whatever a webhook configuration says: a second line behind
//! the configuration that the host writes.

use std::collections::BTreeMap;

use innkeeper_contract::{Kind, Operation};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::input::{Gvr, ReviewInput};
use crate::ObjectKey;
use crate::host_objects;
use crate::review_scope::{
    NODE_UPKEEP_RESOURCES, NODE_UPKEEP_USERS, SYSTEM_NAMESPACES, is_never_reviewed,
};

/// The annotation of a Pod that a kubelet runs from a file, and only shows to the API server.
pub const MIRROR_ANNOTATION: &str = "kubernetes.io/config.mirror";

/// The group of kubelets.
const NODES: &str = "system:nodes";

/// Whether no policy reviews a request: it connects, or concerns an object by which the cluster or
/// the host repairs itself. `host_namespace` is where the host runs, if that is not the default.
///
/// Anybody can give a Pod the mirror annotation, so it counts on requests of kubelets only.
pub fn is_excluded(input: &ReviewInput<'_>, host_namespace: Option<&str>) -> bool {
    input.operation == Operation::Connect
        || SYSTEM_NAMESPACES.contains(&input.namespace)
        || host_objects::is_namespace_of(input.namespace, host_namespace)
        || input.resources().any(|resource| is_excluded_resource(input, resource, host_namespace))
        || is_node_upkeep(input)
        || is_mirror_pod(input)
}

fn is_excluded_resource(
    input: &ReviewInput<'_>,
    resource: Gvr<'_>,
    host_namespace: Option<&str>,
) -> bool {
    let is = |group: &str, name: &str| resource.group == group && resource.resource == name;
    let is_namespace = is("", "namespaces") || is("project.openshift.io", "projects");
    is_never_reviewed(resource.group)
        || (is("", "nodes") && input.subresource == "status")
        || (is_namespace && SYSTEM_NAMESPACES.contains(&input.name))
        || is_of_host(input, resource, host_namespace)
}

/// Whether the object belongs to Innkeeper itself.
fn is_of_host(input: &ReviewInput<'_>, resource: Gvr<'_>, host_namespace: Option<&str>) -> bool {
    let api_version = match resource.group {
        "" => resource.version.to_owned(),
        group => format!("{group}/{}", resource.version),
    };
    let (kind, plural) = (input.kind.kind, resource.resource);
    let kind = match input.namespace {
        "" => Kind::cluster(api_version, kind, plural),
        _ => Kind::namespaced(api_version, kind, plural),
    };
    let key = ObjectKey::new(input.namespace, input.name);
    host_objects::is_object_of(&kind, &key, host_namespace)
}

/// Whether a kubelet or a controller of Kubernetes keeps a node in the cluster.
fn is_node_upkeep(input: &ReviewInput<'_>) -> bool {
    let is_of_node = |one: Gvr<'_>| NODE_UPKEEP_RESOURCES.contains(&(one.group, one.resource));
    input.resources().any(is_of_node)
        && input.user.groups.iter().any(|group| NODE_UPKEEP_USERS.contains(&&**group))
}

fn is_mirror_pod(input: &ReviewInput<'_>) -> bool {
    let is_pod = |resource: Gvr<'_>| resource.group.is_empty() && resource.resource == "pods";
    input.resources().any(is_pod)
        && input.user.groups.iter().any(|group| group == NODES)
        && [input.old_object, input.object].into_iter().flatten().any(is_mirror)
}

fn is_mirror(pod: &RawValue) -> bool {
    #[derive(Deserialize)]
    struct Pod {
        metadata: Metadata,
    }
    #[derive(Deserialize)]
    struct Metadata {
        #[serde(default)]
        annotations: Option<BTreeMap<String, String>>,
    }
    serde_json::from_str::<Pod>(pod.get())
        .ok()
        .and_then(|pod| pod.metadata.annotations)
        .is_some_and(|annotations| annotations.contains_key(MIRROR_ANNOTATION))
}

#[cfg(test)]
mod tests;
