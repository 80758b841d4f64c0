//! Events, as users look at them.

use std::sync::Arc;

use serde_json::{Value, json};

use super::client::{Client, EVENTS, number, text};
use super::workload::Workload;
use crate::cluster::Cluster;
use crate::object::meta;

/// What an Event says.
pub(super) struct Said<'a> {
    /// Who says it.
    pub(super) component: &'static str,
    pub(super) reason: &'static str,
    pub(super) message: &'a str,
    /// Whether something is wrong.
    pub(super) warns: bool,
}

impl<'a> Said<'a> {
    /// Something that is as it should be.
    pub(super) fn normal(component: &'static str, reason: &'static str, message: &'a str) -> Self {
        Self { component, reason, message, warns: false }
    }

    /// Something that is wrong.
    pub(super) fn warning(component: &'static str, reason: &'static str, message: &'a str) -> Self {
        Self { component, reason, message, warns: true }
    }
}

impl Cluster {
    /// Says something of an object; the same again is counted.
    pub(super) fn say(&mut self, client: &Client, about: &Value, said: &Said<'_>) {
        if !self.controllers.workloads.has(Workload::Events) {
            return;
        }
        let (namespace, name) = (meta(about, "namespace"), meta(about, "name"));
        let id = format!("{} {} {}", meta(about, "uid"), said.reason, said.message);
        let known = self.pods.told.get(&id).cloned();
        if let Some(event) = known.and_then(|key| self.read(&EVENTS, &key)) {
            let mut event = Arc::unwrap_or_clone(event);
            event["count"] = (number(&event["count"]) + 1).into();
            event["lastTimestamp"] = self.time().into();
            let _ = self.replace_as(client, &EVENTS, "", event);
            return;
        }
        // The recorder names an Event by the nanosecond.
        let now = self.now().as_nanosecond() + i128::from(self.store.version());
        let event = json!({
            "metadata": {"name": format!("{name}.{now:x}"), "namespace": namespace},
            "involvedObject": {
                "apiVersion": about["apiVersion"], "kind": about["kind"], "namespace": namespace,
                "name": name, "uid": meta(about, "uid"),
                "resourceVersion": meta(about, "resourceVersion"),
            },
            "reason": said.reason, "message": said.message,
            "type": if said.warns { "Warning" } else { "Normal" },
            "source": {"component": said.component},
            "reportingComponent": said.component,
            "firstTimestamp": self.time(), "lastTimestamp": self.time(), "count": 1,
        });
        if let Ok(event) = self.create_as(client, &EVENTS, namespace, event) {
            let key = (namespace.to_owned(), text(&event["metadata"]["name"]).to_owned());
            // Only what is wrong is said again and again, and of sets, whose Pods keep their names.
            if said.warns || about["kind"] == "StatefulSet" {
                self.pods.told.insert(id, key);
            }
        }
    }
}
