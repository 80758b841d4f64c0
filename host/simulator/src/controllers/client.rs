//! How controllers read and write: as clients of the API server do.

use bytes::Bytes;
use jiff::SignedDuration;
use serde_json::{Value, json};

use crate::cluster::{Cluster, later};
use crate::http::query::Query;
use crate::object::meta;
use crate::request::{Answer, Request};
use crate::store::{Key, KindKey};
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
    const fn new(
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
/// The kubelet of the one node.
pub(super) const KUBELET: Client = Client { user: "system:node:node-1", manager: "kubelet" };

impl Cluster {
    /// An object, if it is there.
    pub(super) fn read(&self, resource: &Resource, key: &Key) -> Option<Value> {
        self.object(&resource.key(), key)
    }

    /// What an object controls of a kind, in the order of names.
    pub(super) fn controlled(&self, owner: &Value, resource: &Resource) -> Vec<Value> {
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
    ) -> Result<Value, String> {
        object["apiVersion"] = resource.api_version().into();
        object["kind"] = resource.kind.into();
        self.call(client, "POST", path(resource, namespace, "", ""), &object)
    }

    /// Replaces an object, or with `subresource` a part of it. Gives it as it is stored, or what the server
    /// says against it.
    pub(super) fn replace_as(
        &mut self,
        client: &Client,
        resource: &Resource,
        subresource: &str,
        object: &Value,
    ) -> Result<Value, String> {
        let (namespace, name) = (meta(object, "namespace"), meta(object, "name"));
        self.call(client, "PUT", path(resource, namespace, name, subresource), object)
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
        self.call(client, "DELETE", path(resource, namespace, name, ""), &options).is_ok()
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
        self.call(client, "DELETE", path(resource, namespace, name, ""), &options).is_ok()
    }

    fn call(
        &mut self,
        client: &Client,
        method: &str,
        path: String,
        body: &Value,
    ) -> Result<Value, String> {
        let groups = vec!["system:masters".to_owned(), "system:authenticated".to_owned()];
        let request = Request {
            method: method.to_owned(),
            path,
            query: Query::default(),
            user: User { name: client.user.to_owned(), groups },
            acting: None,
            content_type: "application/json".to_owned(),
            accept: "application/json".to_owned(),
            agent: client.manager.to_owned(),
            body: Bytes::from(body.to_string()),
        };
        match self.answer(&request) {
            Answer::Json { code, body, .. } | Answer::Of { code, body, .. } => {
                let body: Value = serde_json::from_slice(&body).unwrap_or_default();
                if code < 300 {
                    return Ok(body);
                }
                Err(body["message"].as_str().unwrap_or_default().to_owned())
            }
            Answer::Text { body, .. } => Err(body),
            Answer::Watch(_) => Err(String::new()),
        }
    }

    /// The time in so many seconds.
    pub(super) fn in_s(&self, seconds: i64) -> jiff::Timestamp {
        later(self.now(), SignedDuration::from_secs(seconds))
    }
}

fn path(resource: &Resource, namespace: &str, name: &str, subresource: &str) -> String {
    let mut path = if resource.group.is_empty() { "/api/" } else { "/apis/" }.to_owned();
    path += &resource.api_version();
    if !namespace.is_empty() {
        path += "/namespaces/";
        path += namespace;
    }
    for part in [resource.plural, name, subresource] {
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
