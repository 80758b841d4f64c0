//! The client by which controllers read and write: it calls the verbs in process, without texts.

use std::sync::Arc;

use bytes::Bytes;
use jiff::SignedDuration;
use serde_json::{Value, json};

use crate::api::http::query::Query;
use crate::api::http::route::Target;
use crate::api::request::{Request, Response};
use crate::api::request_context::RequestContext;
use crate::api::request_log;
use crate::api::verbs::create;
use crate::api::verbs::delete;
use crate::api::verbs::update;
use crate::apply::managed_object::ManagedObject;
use crate::auth::rbac;
use crate::auth::user::User;
use crate::state::cluster::{Cluster, later};
use crate::state::store::text_of;
use crate::types::members::controller;
use crate::types::object::meta;
use crate::types::object_key::{Key, KindKey};
use crate::types::status_error::StatusError;

/// A kind, as paths and objects name it.
#[derive(Debug)]
pub(crate) struct Resource {
    group: &'static str,
    version: &'static str,
    plural: &'static str,
    pub(crate) kind: &'static str,
}

impl Resource {
    pub(crate) const fn new(
        group: &'static str,
        version: &'static str,
        plural: &'static str,
        kind: &'static str,
    ) -> Self {
        Self { group, version, plural, kind }
    }

    /// Group and version, as in objects.
    pub(crate) fn api_version(&self) -> String {
        if self.group.is_empty() {
            self.version.to_owned()
        } else {
            format!("{}/{}", self.group, self.version)
        }
    }

    pub(crate) fn key(&self) -> KindKey {
        (self.group.to_owned(), self.plural.to_owned())
    }
}

pub(crate) const NAMESPACES: Resource = Resource::new("", "v1", "namespaces", "Namespace");
pub(crate) const NODES: Resource = Resource::new("", "v1", "nodes", "Node");
pub(crate) const ACCOUNTS: Resource = Resource::new("", "v1", "serviceaccounts", "ServiceAccount");
pub(crate) const CONFIG_MAPS: Resource = Resource::new("", "v1", "configmaps", "ConfigMap");
pub(crate) const PODS: Resource = Resource::new("", "v1", "pods", "Pod");
pub(crate) const EVENTS: Resource = Resource::new("", "v1", "events", "Event");
pub(crate) const SERVICES: Resource = Resource::new("", "v1", "services", "Service");
pub(crate) const ENDPOINTS: Resource = Resource::new("", "v1", "endpoints", "Endpoints");
pub(crate) const ENDPOINT_SLICES: Resource =
    Resource::new("discovery.k8s.io", "v1", "endpointslices", "EndpointSlice");
pub(crate) const CLAIMS: Resource =
    Resource::new("", "v1", "persistentvolumeclaims", "PersistentVolumeClaim");
pub(crate) const VOLUMES: Resource =
    Resource::new("", "v1", "persistentvolumes", "PersistentVolume");
pub(crate) const DEPLOYMENTS: Resource = Resource::new("apps", "v1", "deployments", "Deployment");
pub(crate) const REPLICA_SETS: Resource = Resource::new("apps", "v1", "replicasets", "ReplicaSet");
pub(crate) const REPLICATION_CONTROLLERS: Resource =
    Resource::new("", "v1", "replicationcontrollers", "ReplicationController");
pub(crate) const STATEFUL_SETS: Resource =
    Resource::new("apps", "v1", "statefulsets", "StatefulSet");
pub(crate) const DAEMON_SETS: Resource = Resource::new("apps", "v1", "daemonsets", "DaemonSet");
pub(crate) const AUTOSCALERS: Resource =
    Resource::new("autoscaling", "v2", "horizontalpodautoscalers", "HorizontalPodAutoscaler");
pub(crate) const REVISIONS: Resource =
    Resource::new("apps", "v1", "controllerrevisions", "ControllerRevision");
pub(crate) const JOBS: Resource = Resource::new("batch", "v1", "jobs", "Job");
pub(crate) const DEFINITIONS: Resource = Resource::new(
    "apiextensions.k8s.io",
    "v1",
    "customresourcedefinitions",
    "CustomResourceDefinition",
);
pub(crate) const CRON_JOBS: Resource = Resource::new("batch", "v1", "cronjobs", "CronJob");

/// The identity of a controller: its user and its field manager.
#[derive(Debug)]
pub(crate) struct Client {
    user: &'static str,
    manager: &'static str,
}

impl Client {
    /// A controller of the controller manager, with its own ServiceAccount.
    pub(crate) const fn controller(user: &'static str) -> Self {
        Self { user, manager: "kube-controller-manager" }
    }

    /// The scheduler.
    pub(crate) const fn scheduler() -> Self {
        Self { user: "system:kube-scheduler", manager: "kube-scheduler" }
    }
}

/// The garbage collector.
pub(crate) const COLLECTOR: Client =
    Client::controller("system:serviceaccount:kube-system:generic-garbage-collector");
/// The API server itself.
pub(crate) const API_SERVER: Client =
    Client { user: "system:apiserver", manager: "kube-apiserver" };
/// The kubelet of the one node.
pub(crate) const KUBELET: Client = Client { user: "system:node:node-1", manager: "kubelet" };

/// Reads an object, if it exists.
pub(crate) fn get(cluster: &Cluster, resource: &Resource, key: &Key) -> Option<Arc<ManagedObject>> {
    cluster.object(&resource.key(), key)
}

/// The objects of a kind that an owner controls, in the order of their names.
pub(crate) fn controlled_by(
    cluster: &Cluster,
    owner: &Value,
    resource: &Resource,
) -> Vec<Arc<ManagedObject>> {
    let (uid, kind) = (meta(owner, "uid"), resource.key());
    cluster
        .work_queue
        .dependents(uid)
        .into_iter()
        .filter(|place| place.kind == kind)
        .filter_map(|place| cluster.object(&kind, &place.key))
        .filter(|object| controller(object).is_some_and(|one| one["uid"] == uid))
        .collect()
}

/// Creates an object. Returns it as it is stored, or the message of the error.
pub(crate) fn create(
    cluster: &mut Cluster,
    client: &Client,
    resource: &Resource,
    namespace: &str,
    mut object: Value,
) -> Result<Arc<ManagedObject>, String> {
    object["apiVersion"] = resource.api_version().into();
    object["kind"] = resource.kind.into();
    call(cluster, client, Verb::Create, &target(resource, namespace, "", ""), object)
}

/// Replaces an object, or with `subresource` a part of it. Returns it as it is stored, or the
/// message of the error.
pub(crate) fn replace(
    cluster: &mut Cluster,
    client: &Client,
    resource: &Resource,
    subresource: &str,
    object: impl Into<Value>,
) -> Result<Arc<ManagedObject>, String> {
    let object = object.into();
    let (namespace, name) = (meta(&object, "namespace"), meta(&object, "name"));
    let target = target(resource, namespace, name, subresource);
    call(cluster, client, Verb::Replace, &target, object)
}

/// Deletes an object if its uid is still the same. Returns whether the server did.
pub(crate) fn delete(
    cluster: &mut Cluster,
    client: &Client,
    resource: &Resource,
    object: &Value,
    grace_s: Option<i64>,
) -> bool {
    let (namespace, name) = (meta(object, "namespace"), meta(object, "name"));
    let mut options = json!({
        "kind": "DeleteOptions", "apiVersion": "v1",
        "preconditions": {"uid": meta(object, "uid")},
        "propagationPolicy": if resource.kind == "Job" { "Foreground" } else { "Background" },
    });
    if let Some(grace) = grace_s {
        options["gracePeriodSeconds"] = grace.into();
    }
    call(cluster, client, Verb::Delete, &target(resource, namespace, name, ""), options).is_ok()
}

/// Deletes a Job without waiting for its Pods.
pub(crate) fn delete_in_background(
    cluster: &mut Cluster,
    client: &Client,
    resource: &Resource,
    object: &Value,
) -> bool {
    let (namespace, name) = (meta(object, "namespace"), meta(object, "name"));
    let options = json!({
        "kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Background",
        "preconditions": {"uid": meta(object, "uid")},
    });
    call(cluster, client, Verb::Delete, &target(resource, namespace, name, ""), options).is_ok()
}

/// Writes as a client does, but without texts: the steps after parsing a request are the same.
fn call(
    cluster: &mut Cluster,
    client: &Client,
    verb: Verb,
    target: &Target,
    body: Value,
) -> Result<Arc<ManagedObject>, String> {
    let groups = vec!["system:masters".to_owned(), "system:authenticated".to_owned()];
    let request = Request {
        method: verb.method().to_owned(),
        path: String::new(),
        query: Query::default(),
        user: User::new(client.user, groups),
        acting: None,
        content_type: "application/json".to_owned(),
        accept: "application/json".to_owned(),
        known: String::new(),
        agent: client.manager.to_owned(),
        body: Bytes::new(),
    };
    if cluster.keeps_log() {
        let (path, body) = (path(target), text_of(&body));
        request_log::log_request(cluster, &Request { path, body, ..request.clone() });
    }
    let written = write(cluster, verb, target, &request, body);
    if cluster.keeps_log() {
        request_log::log_response(
            cluster,
            &match &written {
                Ok((code, object)) => Response::bytes(*code, object.text().clone()),
                Err(error) => Response::error(error),
            },
        );
    }
    written.map(|(_, object)| object).map_err(|error| error.message().to_owned())
}

fn write(
    cluster: &mut Cluster,
    verb: Verb,
    target: &Target,
    request: &Request,
    body: Value,
) -> Result<(u16, Arc<ManagedObject>), StatusError> {
    let kind = cluster.catalog.get(&target.group, &target.version, &target.resource);
    let kind = kind.cloned().ok_or_else(StatusError::no_resource)?;
    let context = RequestContext::new(target, kind, &request.user, request);
    rbac::authorize(cluster, context.user, verb.name(), target)?;
    let written = match verb {
        Verb::Create => create::create_object(cluster, &context, body)?,
        Verb::Replace => update::update_object(cluster, &context, body)?,
        Verb::Delete => {
            let object = delete::delete_object(cluster, &context, &body)?;
            return Ok((200, Arc::new(object)));
        }
    };
    Ok((written.code, written.object))
}

/// The time in so many seconds.
pub(crate) fn after_seconds(cluster: &Cluster, seconds: i64) -> jiff::Timestamp {
    later(cluster.now(), SignedDuration::from_secs(seconds))
}

/// The operation on an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verb {
    Create,
    Replace,
    Delete,
}

impl Verb {
    fn method(self) -> &'static str {
        match self {
            Self::Create => "POST",
            Self::Replace => "PUT",
            Self::Delete => "DELETE",
        }
    }

    /// As rules name it.
    fn name(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Replace => "update",
            Self::Delete => "delete",
        }
    }
}

fn target(resource: &Resource, namespace: &str, name: &str, subresource: &str) -> Target {
    Target {
        group: resource.group.to_owned(),
        version: resource.version.to_owned(),
        namespace: namespace.to_owned(),
        resource: resource.plural.to_owned(),
        name: name.to_owned(),
        subresource: subresource.to_owned(),
    }
}

/// The path of a target, for the log.
fn path(target: &Target) -> String {
    let mut path = if target.group.is_empty() { "/api" } else { "/apis" }.to_owned();
    let namespaces = if target.namespace.is_empty() { "" } else { "namespaces" };
    let Target { group, version, namespace, resource, name, subresource } = target;
    for part in [group, version, namespaces, namespace, resource, name, subresource] {
        if !part.is_empty() {
            path.push('/');
            path += part;
        }
    }
    path
}

/// The reference by which an object controls another.
pub(crate) fn owned_by(owner: &Value, resource: &Resource) -> Value {
    json!([{
        "apiVersion": resource.api_version(), "kind": resource.kind,
        "name": meta(owner, "name"), "uid": meta(owner, "uid"),
        "controller": true, "blockOwnerDeletion": true,
    }])
}
