//! Rules of the built-in kinds that have Pod templates, and what of them cannot change.

use serde_json::Value;

use crate::catalog::Kind;
use crate::status_error::FieldError;

/// What is wrong with an object.
pub(super) fn rules(kind: &Kind, object: &Value, errors: &mut Vec<FieldError>) {
    let spec = &object["spec"];
    match (kind.group.as_str(), kind.kind.as_str()) {
        ("", "ConfigMap" | "Secret") => {
            for member in ["data", "binaryData"] {
                for (key, _) in object[member].as_object().into_iter().flatten() {
                    let plain = |one: char| one.is_ascii_alphanumeric() || "-._".contains(one);
                    if key.is_empty() || !key.chars().all(plain) {
                        let why = "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')";
                        errors.push(FieldError::invalid(format!("{member}[{key}]"), key.as_str(), why));
                    }
                }
            }
        }
        ("apps", "Deployment" | "ReplicaSet" | "StatefulSet" | "DaemonSet") => workload(spec, errors),
        ("", "Service") => {
            if spec["ports"].as_array().is_none_or(Vec::is_empty)
                && spec["type"] != "ExternalName"
                && spec["clusterIP"] != "None"
            {
                errors.push(FieldError::required("spec.ports", ""));
            }
        }
        _ => {}
    }
}

fn workload(spec: &Value, errors: &mut Vec<FieldError>) {
    if let Some(replicas) = spec["replicas"].as_i64().filter(|replicas| *replicas < 0) {
        let why = "must be greater than or equal to 0";
        errors.push(FieldError::invalid("spec.replicas", replicas, why));
    }
    let selector = &spec["selector"];
    if selector.is_null() {
        errors.push(FieldError::required("spec.selector", ""));
        return;
    }
    let labels = &spec["template"]["metadata"]["labels"];
    let matched = selector["matchLabels"].as_object().into_iter().flatten();
    let mut matched = matched.peekable();
    if matched.peek().is_none() && selector["matchExpressions"].is_null() {
        let why = "empty selector is invalid for deployment";
        errors.push(FieldError::invalid("spec.selector", selector.clone(), why));
    } else if matched.any(|(key, value)| labels.get(key) != Some(value)) {
        let labels = if labels.is_null() { Value::Null } else { labels.clone() };
        let why = "`selector` does not match template `labels`";
        errors.push(FieldError::invalid("spec.template.metadata.labels", labels, why));
    }
    containers(&spec["template"]["spec"], "spec.template.spec", errors);
}

fn containers(spec: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let list = spec["containers"].as_array();
    if list.is_none_or(Vec::is_empty) {
        errors.push(FieldError::required(format!("{path}.containers"), ""));
    }
    for (index, container) in list.into_iter().flatten().enumerate() {
        let path = format!("{path}.containers[{index}]");
        if container["name"].as_str().unwrap_or_default().is_empty() {
            errors.push(FieldError::required(format!("{path}.name"), ""));
        }
        if container["image"].as_str().unwrap_or_default().is_empty() {
            errors.push(FieldError::required(format!("{path}.image"), ""));
        }
    }
}

/// What cannot change in some kinds.
pub(super) fn immutable(kind: &Kind, new: &Value, old: &Value, errors: &mut Vec<FieldError>) {
    let mut fixed = |field: &str, names: &[&str]| {
        let find = |object: &Value| {
            names.iter().fold(object.clone(), |place, name| place[*name].clone())
        };
        let now = find(new);
        if now != find(old) {
            errors.push(FieldError::invalid(field, now, "field is immutable"));
        }
    };
    match (kind.group.as_str(), kind.kind.as_str()) {
        ("apps", "Deployment" | "ReplicaSet" | "DaemonSet") => fixed("spec.selector", &["spec", "selector"]),
        ("rbac.authorization.k8s.io", "RoleBinding" | "ClusterRoleBinding") => {
            fixed("roleRef", &["roleRef"]);
        }
        ("batch", "Job") => fixed("spec.template", &["spec", "template"]),
        ("", "Secret") => {
            fixed("type", &["type"]);
            if old["immutable"] == true {
                fixed("data", &["data"]);
            }
        }
        ("", "ConfigMap") if old["immutable"] == true => {
            if new["data"] != old["data"] || new["binaryData"] != old["binaryData"] {
                let why = "field is immutable when `immutable` is set";
                errors.push(FieldError::forbidden("data", why));
            }
        }
        _ => {}
    }
}
