//! Defaults of workloads.

use crate::types::kinds::defaults::fill::{each, or, or_text};
use crate::types::kinds::defaults::pod::template;
use serde_json::{Map, Value, json};

/// A Job without labels has those of its Pods. Returns whether it got some.
pub(crate) fn label_job(object: &mut Value) -> bool {
    let none = object["metadata"]["labels"].as_object().is_none_or(Map::is_empty);
    let labels = &object["spec"]["template"]["metadata"]["labels"];
    let given = none && labels.is_object();
    if given {
        let labels = labels.clone();
        object["metadata"]["labels"] = labels;
    }
    given
}

pub(crate) fn deployment(object: &mut Value) {
    let spec = &mut object["spec"];
    or(spec, "replicas", 1.into());
    or(spec, "progressDeadlineSeconds", 600.into());
    or(spec, "revisionHistoryLimit", 10.into());
    let strategy = &mut spec["strategy"];
    or_text(strategy, "type", "RollingUpdate");
    if strategy["type"] == "RollingUpdate" {
        or(strategy, "rollingUpdate", json!({}));
        or(&mut strategy["rollingUpdate"], "maxSurge", "25%".into());
        or(&mut strategy["rollingUpdate"], "maxUnavailable", "25%".into());
    }
    template(&mut spec["template"]);
}

pub(crate) fn stateful_set(object: &mut Value) {
    let spec = &mut object["spec"];
    or(spec, "replicas", 1.into());
    or(spec, "revisionHistoryLimit", 10.into());
    or_text(spec, "podManagementPolicy", "OrderedReady");
    let strategy = &mut spec["updateStrategy"];
    or_text(strategy, "type", "RollingUpdate");
    if strategy["type"] == "RollingUpdate" {
        or(strategy, "rollingUpdate", json!({}));
        or(&mut strategy["rollingUpdate"], "partition", 0.into());
    }
    or(spec, "persistentVolumeClaimRetentionPolicy", json!({}));
    let policy = &mut spec["persistentVolumeClaimRetentionPolicy"];
    or_text(policy, "whenDeleted", "Retain");
    or_text(policy, "whenScaled", "Retain");
    each(spec, "volumeClaimTemplates", &mut |claim| {
        or_text(claim, "kind", "PersistentVolumeClaim");
        or_text(claim, "apiVersion", "v1");
        or_text(&mut claim["spec"], "volumeMode", "Filesystem");
        or(&mut claim["status"], "phase", "Pending".into());
    });
    template(&mut spec["template"]);
}

pub(crate) fn daemon_set(spec: &mut Value) {
    or(spec, "revisionHistoryLimit", 10.into());
    let strategy = &mut spec["updateStrategy"];
    or_text(strategy, "type", "RollingUpdate");
    if strategy["type"] == "RollingUpdate" {
        or(strategy, "rollingUpdate", json!({}));
        or(&mut strategy["rollingUpdate"], "maxUnavailable", 1.into());
        or(&mut strategy["rollingUpdate"], "maxSurge", 0.into());
    }
    template(&mut spec["template"]);
}

pub(crate) fn job(spec: &mut Value) {
    if spec["completions"].is_null() && spec["parallelism"].is_null() {
        spec["completions"] = 1.into();
    }
    or(spec, "parallelism", 1.into());
    or(spec, "backoffLimit", 6.into());
    or(spec, "completionMode", "NonIndexed".into());
    or(spec, "suspend", false.into());
    or(spec, "manualSelector", false.into());
    or(spec, "podReplacementPolicy", "TerminatingOrFailed".into());
    template(&mut spec["template"]);
}

pub(crate) fn cron_job(object: &mut Value) {
    let spec = &mut object["spec"];
    or_text(spec, "concurrencyPolicy", "Allow");
    or(spec, "suspend", false.into());
    or(spec, "successfulJobsHistoryLimit", 3.into());
    or(spec, "failedJobsHistoryLimit", 1.into());
    template(&mut spec["jobTemplate"]["spec"]["template"]);
}

/// The labels of its template select the Pods of a ReplicationController, and are its own.
pub(crate) fn replication_controller(object: &mut Value) {
    or(&mut object["spec"], "replicas", 1.into());
    if !object["spec"]["template"].is_object() {
        return;
    }
    template(&mut object["spec"]["template"]);
    let labels = object["spec"]["template"]["metadata"]["labels"].clone();
    if labels.as_object().is_none_or(serde_json::Map::is_empty) {
        return;
    }
    let is_empty = |map: &Value| map.as_object().is_none_or(serde_json::Map::is_empty);
    if is_empty(&object["spec"]["selector"]) {
        object["spec"]["selector"] = labels.clone();
    }
    if is_empty(&object["metadata"]["labels"]) {
        object["metadata"]["labels"] = labels;
    }
}
