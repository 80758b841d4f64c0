//! How controllers read and write: as clients of the API server do.

use std::sync::Arc;

use bytes::Bytes;
use jiff::SignedDuration;
use serde_json::{Value, json};

use crate::cluster::{Cluster, later};
use crate::http::query::Query;
use crate::http::route::Target;
use crate::object::meta;
use crate::request::{Answer, Request};
use crate::server::Ask;
use crate::status_error::StatusError;
use crate::store::{Key, KindKey, text_of};
use crate::tracked::Tracked;
use crate::user::User;

/// A kind, as paths and objects name it.
#[derive(Debug)]
pub(super) struct Resource {
    group: &'static str,
    version: &'static str,
    plural: &'static str,
    pub(super) kind: &'static str,
}

impl Resource {
    pub(super) const fn new(
        group: &'static str,
        version: &'static str,
        plural: &'static str,
        kind: &'static str,
    ) -> Self {
        Self { group, version, plural, kind }
    }

    /// Group and version, as in objects.
    pub(super) fn api_version(&self) -> String {
        if self.group.is_empty() {
            self.version.to_owned()
        } else {
            format!("{}/{}", self.group, self.version)
        }
    }

    pub(super) fn key(&self) -> KindKey {
        (self.group.to_owned(), self.plural.to_owned())
    }
}

pub(super) const PODS: Resource = Resource::new("", "v1", "pods", "Pod");
pub(super) const EVENTS: Resource = Resource::new("", "v1", "events", "Event");
pub(super) const SERVICES: Resource = Resource::new("", "v1", "services", "Service");
pub(super) const ENDPOINTS: Resource = Resource::new("", "v1", "endpoints", "Endpoints");
pub(super) const ENDPOINT_SLICES: Resource =
    Resource::new("discovery.k8s.io", "v1", "endpointslices", "EndpointSlice");
pub(super) const CLAIMS: Resource =
    Resource::new("", "v1", "persistentvolumeclaims", "PersistentVolumeClaim");
pub(super) const VOLUMES: Resource =
    Resource::new("", "v1", "persistentvolumes", "PersistentVolume");
pub(super) const DEPLOYMENTS: Resource = Resource::new("apps", "v1", "deployments", "Deployment");
pub(super) const REPLICA_SETS: Resource = Resource::new("apps", "v1", "replicasets", "ReplicaSet");
pub(super) const STATEFUL_SETS: Resource =
    Resource::new("apps", "v1", "statefulsets", "StatefulSet");
pub(super) const REVISIONS: Resource =
    Resource::new("apps", "v1", "controllerrevisions", "ControllerRevision");
pub(super) const JOBS: Resource = Resource::new("batch", "v1", "jobs", "Job");
pub(super) const DEFINITIONS: Resource = Resource::new(
    "apiextensions.k8s.io",
    "v1",
    "customresourcedefinitions",
    "CustomResourceDefinition",
);
pub(super) const CRON_JOBS: Resource = Resource::new("batch", "v1", "cronjobs", "CronJob");

/// Who writes: a user, and the manager of the fields.
#[derive(Debug)]
pub(super) struct Client {
    user: &'static str,
    manager: &'static str,
}

impl Client {
    /// One of the controller manager, with its own account.
    pub(super) const fn controller(user: &'static str) -> Self {
        Self { user, manager: "kube-controller-manager" }
    }

    /// The scheduler.
    pub(super) const fn scheduler() -> Self {
        Self { user: "system:kube-scheduler", manager: "kube-scheduler" }
    }
}

/// The garbage collector.
pub(super) const COLLECTOR: Client =
    Client::controller("system:serviceaccount:kube-system:generic-garbage-collector");
/// What the API server does by itself.
pub(super) const API_SERVER: Client =
    Client { user: "system:apiserver", manager: "kube-apiserver" };
/// The kubelet of the one node.
pub(super) const KUBELET: Client = Client { user: "system:node:node-1", manager: "kubelet" };

impl Cluster {
    /// An object, if it is there.
    pub(super) fn read(&self, resource: &Resource, key: &Key) -> Option<Arc<Tracked>> {
        self.object(&resource.key(), key)
    }

    /// What an object controls of a kind, in the order of names.
    pub(super) fn controlled(&self, owner: &Value, resource: &Resource) -> Vec<Arc<Tracked>> {
        let (uid, kind) = (meta(owner, "uid"), resource.key());
        self.following
            .dependents(uid)
            .into_iter()
            .filter(|place| place.kind == kind)
            .filter_map(|place| self.object(&kind, &place.key))
            .filter(|object| controller(object).is_some_and(|one| one["uid"] == uid))
            .collect()
    }

    /// Makes an object. Gives it as it is stored, or what the server says against it.
    pub(super) fn create_as(
        &mut self,
        client: &Client,
        resource: &Resource,
        namespace: &str,
        mut object: Value,
    ) -> Result<Arc<Tracked>, String> {
        object["apiVersion"] = resource.api_version().into();
        object["kind"] = resource.kind.into();
        self.call(client, Verb::Create, &target(resource, namespace, "", ""), object)
    }

    /// Replaces an object, or with `subresource` a part of it. Gives it as it is stored, or what the server
    /// says against it.
    pub(super) fn replace_as(
        &mut self,
        client: &Client,
        resource: &Resource,
        subresource: &str,
        object: impl Into<Value>,
    ) -> Result<Arc<Tracked>, String> {
        let object = object.into();
        let (namespace, name) = (meta(&object, "namespace"), meta(&object, "name"));
        let target = target(resource, namespace, name, subresource);
        self.call(client, Verb::Replace, &target, object)
    }

    /// Deletes an object that is still the same. Says whether the server did.
    pub(super) fn delete_as(
        &mut self,
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
        self.call(client, Verb::Delete, &target(resource, namespace, name, ""), options).is_ok()
    }

    /// Deletes a Job without waiting for its Pods.
    pub(super) fn delete_in_background_as(
        &mut self,
        client: &Client,
        resource: &Resource,
        object: &Value,
    ) -> bool {
        let (namespace, name) = (meta(object, "namespace"), meta(object, "name"));
        let options = json!({
            "kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Background",
            "preconditions": {"uid": meta(object, "uid")},
        });
        self.call(client, Verb::Delete, &target(resource, namespace, name, ""), options).is_ok()
    }

    /// Writes as a client does, but without texts: what follows the reading of a request is the same.
    fn call(
        &mut self,
        client: &Client,
        verb: Verb,
        target: &Target,
        body: Value,
    ) -> Result<Arc<Tracked>, String> {
        let groups = vec!["system:masters".to_owned(), "system:authenticated".to_owned()];
        let request = Request {
            method: verb.method().to_owned(),
            path: String::new(),
            query: Query::default(),
            user: User::new(client.user, groups),
            acting: None,
            content_type: "application/json".to_owned(),
            accept: "application/json".to_owned(),
            agent: client.manager.to_owned(),
            body: Bytes::new(),
        };
        if self.keeps_log() {
            let (path, body) = (path(target), text_of(&body));
            self.note_request(&Request { path, body, ..request.clone() });
        }
        let written = self.write(verb, target, &request, body);
        if self.keeps_log() {
            self.note_answer(&match &written {
                Ok((code, object)) => Answer::bytes(*code, object.text().clone()),
                Err(error) => Answer::error(error),
            });
        }
        written.map(|(_, object)| object).map_err(|error| error.message().to_owned())
    }

    fn write(
        &mut self,
        verb: Verb,
        target: &Target,
        request: &Request,
        body: Value,
    ) -> Result<(u16, Arc<Tracked>), StatusError> {
        let kind = self.catalog.get(&target.group, &target.version, &target.resource);
        let kind = kind.cloned().ok_or_else(StatusError::no_resource)?;
        let ask = Ask::new(target, kind, &request.user, request);
        self.authorize(ask.user, verb.name(), target)?;
        let written = match verb {
            Verb::Create => self.create_object(&ask, body)?,
            Verb::Replace => self.update_object(&ask, body)?,
            Verb::Delete => {
                let object = self.delete_object(&ask, &body)?;
                return Ok((200, Arc::new(object)));
            }
        };
        Ok((written.code, written.object))
    }

    /// The time in so many seconds.
    pub(super) fn in_s(&self, seconds: i64) -> jiff::Timestamp {
        later(self.now(), SignedDuration::from_secs(seconds))
    }
}

/// What is done to an object.
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

/// The reference to the controller of an object.
pub(super) fn controller(object: &Value) -> Option<&Value> {
    let list = object["metadata"]["ownerReferences"].as_array();
    list.into_iter().flatten().find(|owner| owner["controller"] == true)
}

/// The reference by which an object controls another.
pub(super) fn owned_by(owner: &Value, resource: &Resource) -> Value {
    json!([{
        "apiVersion": resource.api_version(), "kind": resource.kind,
        "name": meta(owner, "name"), "uid": meta(owner, "uid"),
        "controller": true, "blockOwnerDeletion": true,
    }])
}

/// Where an object lies.
pub(super) fn key_of(object: &Value) -> Key {
    (meta(object, "namespace").to_owned(), meta(object, "name").to_owned())
}

/// A number, 0 if there is none.
pub(super) fn number(value: &Value) -> i64 {
    value.as_i64().unwrap_or(0)
}

/// A text, empty if there is none.
pub(super) fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// A time; the beginning of all if there is none.
pub(super) fn time(value: &Value) -> jiff::Timestamp {
    text(value).parse().unwrap_or(jiff::Timestamp::UNIX_EPOCH)
}

/// A map of those counts that are not 0, as Go writes them.
pub(super) fn counts(pairs: &[(&str, i64)]) -> Value {
    let map = pairs.iter().filter(|(_, count)| *count != 0);
    Value::Object(map.map(|(name, count)| ((*name).to_owned(), (*count).into())).collect())
}

/// The condition of a type.
pub(super) fn condition<'a>(object: &'a Value, name: &str) -> Option<&'a Value> {
    object["conditions"].as_array().into_iter().flatten().find(|one| one["type"] == name)
}
