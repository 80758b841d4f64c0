//! Defaults of built-in kinds.

pub(crate) mod create;
pub(crate) mod fill;
pub(crate) mod pod;
pub(crate) mod policy;
pub(crate) mod workload;

use crate::types::kind::Kind;
use crate::types::kinds::defaults::fill::{each, or, or_text};
use crate::types::kinds::defaults::pod::{pod_addresses, pod_spec, requests_from_limits, template};
use crate::types::kinds::defaults::workload::{
    cron_job, daemon_set, deployment, job, label_job, stateful_set,
};
use serde_json::{Value, json};

/// Fills in absent members. Returns whether there are defaults for the kind at all.
pub(crate) fn apply(kind: &Kind, object: &mut Value) -> bool {
    match (kind.group.as_str(), kind.name.as_str()) {
        ("apps", "Deployment") => deployment(object),
        ("apps", "ReplicaSet") => {
            or(&mut object["spec"], "replicas", 1.into());
            template(&mut object["spec"]["template"]);
        }
        ("", "ReplicationController") => workload::replication_controller(object),
        ("apps", "StatefulSet") => stateful_set(object),
        ("apps", "DaemonSet") => {
            daemon_set(&mut object["spec"]);
            crate::types::kinds::daemon_set::read(object);
        }
        ("", "LimitRange") => each(&mut object["spec"], "limits", &mut limits),
        ("storage.k8s.io", "StorageClass") => {
            or_text(object, "reclaimPolicy", "Delete");
            or_text(object, "volumeBindingMode", "Immediate");
        }
        ("autoscaling", "HorizontalPodAutoscaler") if kind.version == "v1" => {
            or(&mut object["spec"], "minReplicas", 1.into());
        }
        ("autoscaling", "HorizontalPodAutoscaler") => {
            crate::types::kinds::autoscaler::default(object);
        }
        ("batch", "Job") => {
            job(&mut object["spec"]);
            label_job(object);
        }
        ("batch", "CronJob") => cron_job(object),
        ("", "Pod") => {
            pod_spec(&mut object["spec"]);
            or(&mut object["spec"], "enableServiceLinks", true.into());
            pod_addresses(object);
            // Templates are left as they are.
            for list in ["containers", "initContainers"] {
                each(&mut object["spec"], list, &mut requests_from_limits);
            }
        }
        ("", "Service") => service(object),
        ("", "Secret") => secret(object),
        ("", "Namespace") => namespace(object),
        ("", "PersistentVolumeClaim") => or_text(&mut object["spec"], "volumeMode", "Filesystem"),
        ("", "PersistentVolume") => {
            or_text(&mut object["spec"], "persistentVolumeReclaimPolicy", "Retain");
            or_text(&mut object["spec"], "volumeMode", "Filesystem");
            if object["spec"]["hostPath"].is_object() {
                or(&mut object["spec"]["hostPath"], "type", "".into());
            }
        }
        ("networking.k8s.io", "NetworkPolicy") => network_policy(object),
        ("rbac.authorization.k8s.io", "RoleBinding" | "ClusterRoleBinding") => binding(object),
        ("discovery.k8s.io", "EndpointSlice") => each(object, "ports", &mut |port| {
            or(port, "name", "".into());
            or(port, "protocol", "TCP".into());
        }),
        ("apiextensions.k8s.io", "CustomResourceDefinition") => definition(object),
        ("admissionregistration.k8s.io", "ValidatingWebhookConfiguration") => {
            each(object, "webhooks", &mut webhook);
        }
        ("admissionregistration.k8s.io", "MutatingWebhookConfiguration") => {
            each(object, "webhooks", &mut |one| {
                webhook(one);
                or_text(one, "reinvocationPolicy", "Never");
            });
        }
        ("admissionregistration.k8s.io", "ValidatingAdmissionPolicy") => {
            or_text(&mut object["spec"], "failurePolicy", "Fail");
            selection(&mut object["spec"]["matchConstraints"]);
        }
        ("admissionregistration.k8s.io", "ValidatingAdmissionPolicyBinding") => {
            selection(&mut object["spec"]["matchResources"]);
        }
        ("scheduling.k8s.io", "PriorityClass") => policy::priority_class(object),
        ("flowcontrol.apiserver.k8s.io", "FlowSchema") => policy::flow_schema(object),
        ("flowcontrol.apiserver.k8s.io", "PriorityLevelConfiguration") => {
            policy::priority_level(object);
        }
        ("resource.k8s.io", "ResourceClaim") => policy::resource_claim(&mut object["spec"]),
        ("resource.k8s.io", "ResourceClaimTemplate") => {
            policy::resource_claim(&mut object["spec"]["spec"]);
        }
        _ => return false,
    }
    true
}

fn webhook(one: &mut Value) {
    or_text(one, "failurePolicy", "Fail");
    or_text(one, "matchPolicy", "Equivalent");
    or(one, "namespaceSelector", json!({}));
    or(one, "objectSelector", json!({}));
    or(one, "timeoutSeconds", 10.into());
    each(one, "rules", &mut |rule| or_text(rule, "scope", "*"));
    if let Some(service) = one.pointer_mut("/clientConfig/service")
        && service.is_object()
    {
        or(service, "port", 443.into());
    }
}

/// What a policy selects, if it selects anything.
fn selection(one: &mut Value) {
    if !one.is_object() {
        return;
    }
    or_text(one, "matchPolicy", "Equivalent");
    or(one, "namespaceSelector", json!({}));
    or(one, "objectSelector", json!({}));
    for rules in ["resourceRules", "excludeResourceRules"] {
        each(one, rules, &mut |rule| or_text(rule, "scope", "*"));
    }
}

/// Of containers the bounds are defaults too.
fn limits(item: &mut Value) {
    if item["type"] != "Container" {
        return;
    }
    for (from, to) in [("max", "default"), ("default", "defaultRequest"), ("min", "defaultRequest")]
    {
        for (name, quantity) in item[from].as_object().cloned().into_iter().flatten() {
            or(&mut item[to], &name, quantity);
        }
    }
}

fn service(object: &mut Value) {
    let spec = &mut object["spec"];
    or_text(spec, "sessionAffinity", "None");
    if spec["sessionAffinity"] == "None"
        && let Some(map) = spec.as_object_mut()
    {
        map.remove("sessionAffinityConfig");
    }
    if spec["sessionAffinity"] == "ClientIP"
        && spec["sessionAffinityConfig"]["clientIP"]["timeoutSeconds"].is_null()
    {
        spec["sessionAffinityConfig"] = json!({"clientIP": {"timeoutSeconds": 10800}});
    }
    or_text(spec, "type", "ClusterIP");
    each(spec, "ports", &mut |port| {
        or_text(port, "protocol", "TCP");
        let target = &port["targetPort"];
        if target.is_null() || *target == 0 || *target == "" {
            port["targetPort"] = port["port"].clone();
        }
    });
    let external = matches!(spec["type"].as_str(), Some("NodePort" | "LoadBalancer"));
    if external {
        or_text(spec, "externalTrafficPolicy", "Cluster");
    }
    if spec["type"] == "LoadBalancer" {
        or(spec, "allocateLoadBalancerNodePorts", true.into());
    }
    if spec["type"] != "ExternalName" {
        or(spec, "internalTrafficPolicy", "Cluster".into());
    }
}

fn secret(object: &mut Value) {
    use base64::Engine as _;
    or_text(object, "type", "Opaque");
    if let Some(Value::Object(texts)) =
        object.as_object_mut().and_then(|map| map.remove("stringData"))
    {
        or(object, "data", json!({}));
        for (key, value) in texts {
            let bytes = value.as_str().unwrap_or_default();
            object["data"][key] = base64::engine::general_purpose::STANDARD.encode(bytes).into();
        }
    }
}

fn namespace(object: &mut Value) {
    let name = crate::types::object::meta(object, "name").to_owned();
    if !name.is_empty() {
        or(&mut object["metadata"], "labels", json!({}));
        object["metadata"]["labels"]["kubernetes.io/metadata.name"] = name.into();
    }
    or(&mut object["status"], "phase", "Active".into());
}

fn network_policy(object: &mut Value) {
    let spec = &mut object["spec"];
    if spec["policyTypes"].as_array().is_none_or(Vec::is_empty) {
        let mut types = vec!["Ingress"];
        if spec["egress"].is_array() {
            types.push("Egress");
        }
        spec["policyTypes"] = types.into();
    }
    for (list, peers) in [("ingress", "from"), ("egress", "to")] {
        let _ = peers;
        each(spec, list, &mut |rule| {
            each(rule, "ports", &mut |port| or(port, "protocol", "TCP".into()));
        });
    }
}

fn binding(object: &mut Value) {
    or_text(&mut object["roleRef"], "apiGroup", "rbac.authorization.k8s.io");
    each(object, "subjects", &mut |subject| {
        let group =
            if subject["kind"] == "ServiceAccount" { "" } else { "rbac.authorization.k8s.io" };
        if !group.is_empty() {
            or_text(subject, "apiGroup", group);
        }
    });
}

fn definition(object: &mut Value) {
    let spec = &mut object["spec"];
    let names = &mut spec["names"];
    let kind = names["kind"].as_str().unwrap_or_default().to_owned();
    or_text(names, "singular", &kind.to_lowercase());
    or_text(names, "listKind", &format!("{kind}List"));
    or(spec, "conversion", json!({"strategy": "None"}));
}
