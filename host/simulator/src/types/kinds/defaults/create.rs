//! Adds to a new object what its defaults do not have: a status, and the values of admission.

use crate::types::kind::Kind;
use crate::types::kinds::defaults::fill::{or, or_text};
use crate::types::kinds::job;
use serde_json::{Value, json};

/// The initial status.
pub(crate) fn status(kind: &Kind, object: &mut Value) {
    match (kind.group.as_str(), kind.name.as_str()) {
        ("", "PersistentVolumeClaim") => object["status"] = json!({"phase": "Pending"}),
        ("", "PersistentVolume") => {
            let now = object["metadata"]["creationTimestamp"].clone();
            object["status"] = json!({"phase": "Pending", "lastPhaseTransitionTime": now});
        }
        ("", "Pod") => {
            let class = crate::types::kinds::pod::quality(&object["spec"]);
            object["status"] = json!({"phase": "Pending", "qosClass": class});
        }
        ("", "Namespace") => object["status"] = json!({"phase": "Active"}),
        ("", "Service") | ("networking.k8s.io", "Ingress") => {
            object["status"] = json!({"loadBalancer": {}});
        }
        ("apps", "ReplicaSet" | "StatefulSet") | ("", "ReplicationController") => {
            object["status"] = json!({"replicas": 0});
        }
        ("apps", "DaemonSet") => {
            object["status"] = json!({"currentNumberScheduled": 0, "desiredNumberScheduled": 0, "numberMisscheduled": 0, "numberReady": 0});
        }
        ("autoscaling", "HorizontalPodAutoscaler") if kind.version == "v1" => {
            object["status"] = json!({"currentReplicas": 0, "desiredReplicas": 0});
        }
        ("autoscaling", "HorizontalPodAutoscaler") => {
            object["status"] = json!({"currentMetrics": null, "desiredReplicas": 0});
        }
        ("policy", "PodDisruptionBudget") => {
            object["status"] = json!({"disruptionsAllowed": 0, "currentHealthy": 0, "desiredHealthy": 0, "expectedPods": 0});
        }
        ("apiextensions.k8s.io", "CustomResourceDefinition") => {
            let versions = object["spec"]["versions"].as_array().into_iter().flatten();
            let stored: Vec<Value> = versions
                .filter(|version| version["storage"] == true)
                .map(|version| version["name"].clone())
                .collect();
            let names = json!({"plural": "", "kind": ""});
            object["status"] =
                json!({"conditions": null, "acceptedNames": names, "storedVersions": stored});
        }
        _ if kind.custom.is_none() => object["status"] = json!({}),
        _ => {}
    }
    if kind.is("apps", "StatefulSet") {
        object["status"]["availableReplicas"] = 0.into();
    }
}

/// Counts the version in which a definition's objects are stored among those in which some may be.
pub(crate) fn store_version(kind: &Kind, object: &mut Value) {
    if !kind.is("apiextensions.k8s.io", "CustomResourceDefinition") {
        return;
    }
    let versions = object["spec"]["versions"].as_array().into_iter().flatten();
    let storage = versions.into_iter().find(|version| version["storage"] == true);
    let Some(name) = storage.map(|version| version["name"].clone()) else { return };
    let mut stored = object["status"]["storedVersions"].as_array().cloned().unwrap_or_default();
    if !stored.contains(&name) {
        stored.push(name);
    }
    object["status"]["storedVersions"] = stored.into();
}

/// The values that admission sets on a new object.
pub(crate) fn created(kind: &Kind, object: &mut Value, shares_labels: bool) {
    if kind.is("", "PersistentVolumeClaim") || kind.is("", "PersistentVolume") {
        let name = if kind.name == "PersistentVolume" {
            "kubernetes.io/pv-protection"
        } else {
            "kubernetes.io/pvc-protection"
        };
        let mut finalizers = crate::types::object::finalizers(object);
        if !finalizers.iter().any(|one| one == name) {
            finalizers.push(name.to_owned());
            crate::types::object::set_finalizers(object, &finalizers);
        }
    }
    if kind.is("", "Namespace") {
        let mut finalizers = object["spec"]["finalizers"].as_array().cloned().unwrap_or_default();
        if !finalizers.iter().any(|one| one == "kubernetes") {
            finalizers.push("kubernetes".into());
        }
        object["spec"]["finalizers"] = finalizers.into();
    }
    if kind.is("batch", "Job") {
        job_created(object, shares_labels);
    }
    if kind.is("", "Pod") {
        pod_created(&mut object["spec"]);
    }
}

/// The values that admission sets on a Pod: a ServiceAccount, a priority, and tolerations of a
/// missing node.
pub(crate) fn pod_created(spec: &mut Value) {
    or_text(spec, "serviceAccountName", "default");
    let account = spec["serviceAccountName"].clone();
    or(spec, "serviceAccount", account);
    or(spec, "priority", 0.into());
    or_text(spec, "preemptionPolicy", "PreemptLowerPriority");
    let mut tolerations = spec["tolerations"].as_array().cloned().unwrap_or_default();
    for key in ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"] {
        let borne = tolerations.iter().any(|one| {
            let all = one["key"].as_str().unwrap_or_default().is_empty();
            (all || one["key"] == key)
                && matches!(one["effect"].as_str(), None | Some("" | "NoExecute"))
        });
        if !borne {
            tolerations.push(json!({"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}));
        }
    }
    spec["tolerations"] = tolerations.into();
}

pub(crate) fn job_created(object: &mut Value, shares_labels: bool) {
    if object["spec"]["manualSelector"] == true {
        return;
    }
    let generated: Vec<_> =
        job::generated(object).into_iter().map(|(name, value)| (name, value.to_owned())).collect();
    let uid = crate::types::object::meta(object, "uid").to_owned();
    let labels = &mut object["spec"]["template"]["metadata"]["labels"];
    // Given values stay, and validation refuses them later.
    for (name, value) in generated {
        or(labels, name, value.into());
    }
    // Labels that came from the template are the same ones, and get these too.
    if shares_labels {
        let labels = labels.clone();
        object["metadata"]["labels"] = labels;
    }
    or(&mut object["spec"]["selector"]["matchLabels"], job::CONTROLLER_UID, uid.into());
}
