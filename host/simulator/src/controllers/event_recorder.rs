//! Events, as users look at them.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::controllers::client;
use crate::controllers::client::{Client, EVENTS};
use crate::state::cluster::Cluster;
use crate::state::controller_set::Workload;
use crate::types::members::{number, text};
use crate::types::object::meta;

/// An Event to record.
pub(crate) struct EventSpec<'a> {
    /// The component that reports it.
    pub(crate) component: &'static str,
    pub(crate) reason: &'static str,
    pub(crate) message: &'a str,
    /// Whether it is a warning.
    pub(crate) warns: bool,
}

impl<'a> EventSpec<'a> {
    /// A normal Event.
    pub(crate) fn normal(component: &'static str, reason: &'static str, message: &'a str) -> Self {
        Self { component, reason, message, warns: false }
    }

    /// A warning.
    pub(crate) fn warning(component: &'static str, reason: &'static str, message: &'a str) -> Self {
        Self { component, reason, message, warns: true }
    }
}

/// Records an Event of an object. The same Event again is counted.
pub(crate) fn record(cluster: &mut Cluster, client: &Client, about: &Value, spec: &EventSpec<'_>) {
    if !cluster.controllers.workloads.has(Workload::Events) {
        return;
    }
    let (namespace, name) = (meta(about, "namespace"), meta(about, "name"));
    let id = format!("{} {} {}", meta(about, "uid"), spec.reason, spec.message);
    let known = cluster.kubelet.recorded_events.get(&id).cloned();
    if let Some(event) = known.and_then(|key| client::get(cluster, &EVENTS, &key)) {
        let mut event = Arc::unwrap_or_clone(event);
        event["count"] = (number(&event["count"]) + 1).into();
        event["lastTimestamp"] = cluster.time().into();
        let _ = client::replace(cluster, client, &EVENTS, "", event);
        return;
    }
    // The recorder names an Event by the nanosecond.
    let now = cluster.now().as_nanosecond() + i128::from(cluster.store.version());
    let event = json!({
        "metadata": {"name": format!("{name}.{now:x}"), "namespace": namespace},
        "involvedObject": {
            "apiVersion": about["apiVersion"], "kind": about["kind"], "namespace": namespace,
            "name": name, "uid": meta(about, "uid"),
            "resourceVersion": meta(about, "resourceVersion"),
        },
        "reason": spec.reason, "message": spec.message,
        "type": if spec.warns { "Warning" } else { "Normal" },
        "source": {"component": spec.component},
        "reportingComponent": spec.component,
        "firstTimestamp": cluster.time(), "lastTimestamp": cluster.time(), "count": 1,
    });
    if let Ok(event) = client::create(cluster, client, &EVENTS, namespace, event) {
        let key = (namespace.to_owned(), text(&event["metadata"]["name"]).to_owned());
        // Only warnings repeat, and Events of StatefulSets, whose Pods keep their names.
        if spec.warns || about["kind"] == "StatefulSet" {
            cluster.kubelet.recorded_events.insert(id, key);
        }
    }
}
