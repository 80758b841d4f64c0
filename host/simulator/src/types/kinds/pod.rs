//! Rules of the built-in kinds that have Pod templates, and their immutable members.

use std::borrow::Cow;

use serde_json::{Value, json};

use crate::types::kind::Kind;
use crate::types::kinds::quantity;
use crate::types::status_error::FieldError;

/// What is wrong with an object.
pub(crate) fn rules(kind: &Kind, object: &Value, errors: &mut Vec<FieldError>) {
    let spec = &object["spec"];
    crate::types::kinds::enums::check(kind, object, errors);
    match (kind.group.as_str(), kind.name.as_str()) {
        ("", "ConfigMap" | "Secret") => {
            for member in ["data", "binaryData"] {
                for (key, _) in object[member].as_object().into_iter().flatten() {
                    let plain = |one: char| one.is_ascii_alphanumeric() || "-._".contains(one);
                    if key.is_empty() || !key.chars().all(plain) {
                        let why = "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')";
                        errors.push(FieldError::invalid(
                            format!("{member}[{key}]"),
                            key.as_str(),
                            why,
                        ));
                    }
                }
            }
        }
        ("apps", "Deployment" | "ReplicaSet" | "StatefulSet" | "DaemonSet") => {
            workload(spec, errors);
            if spec["strategy"]["type"] == "Recreate"
                && !spec["strategy"]["rollingUpdate"].is_null()
            {
                let why = "may not be specified when strategy `type` is 'Recreate'";
                errors.push(FieldError::forbidden("spec.strategy.rollingUpdate", why));
            }
        }
        ("apps", "ControllerRevision") => super::controller_revision::rules(object, errors),
        ("", "Service") => service(spec, errors),
        ("", "PersistentVolumeClaim") => crate::types::kinds::claim::rules(spec, errors),
        ("networking.k8s.io", "Ingress") => {
            let spec = &object["spec"];
            if spec["defaultBackend"].is_null() && spec["rules"].is_null() {
                let why = "either `defaultBackend` or `rules` must be specified";
                errors.push(FieldError::invalid("spec", Value::Null, why));
            }
            let backend = &spec["defaultBackend"];
            if !backend.is_null() && backend["service"].is_null() && backend["resource"].is_null() {
                let why = "cannot have an empty backend";
                errors.push(FieldError::required("spec.defaultBackend", why));
            }
            let port = &backend["service"]["port"];
            if !backend["service"].is_null() && port["name"].is_null() && port["number"].is_null() {
                errors.push(FieldError::required(
                    "spec.defaultBackend",
                    "port name or number is required",
                ));
            }
        }
        ("batch", "CronJob") => cron_job(spec, errors),
        ("batch", "Job") => {
            crate::types::kinds::job::rules(object, errors);
            job_template(&spec["template"]["spec"], "spec.template.spec", errors);
        }
        ("rbac.authorization.k8s.io", "RoleBinding" | "ClusterRoleBinding") => {
            binding(object, errors);
        }
        ("rbac.authorization.k8s.io", "Role" | "ClusterRole") => role(kind, object, errors),
        ("", "Pod") => containers(spec, "spec", errors),
        ("", "Event") => event(object, errors),
        _ => {}
    }
}

fn workload(spec: &Value, errors: &mut Vec<FieldError>) {
    if let Some(replicas) = spec["replicas"].as_i64().filter(|replicas| *replicas < 0) {
        let why = "must be greater than or equal to 0";
        errors.push(FieldError::invalid("spec.replicas", replicas, why));
    }
    let selector = &spec["selector"];
    let labels = &spec["template"]["metadata"]["labels"];
    let mut matched = selector["matchLabels"].as_object().into_iter().flatten().peekable();
    let empty = matched.peek().is_none() && selector["matchExpressions"].is_null();
    if selector.is_null() {
        errors.push(FieldError::required("spec.selector", ""));
    } else if empty {
        let why = "empty selector is invalid for deployment";
        errors.push(FieldError::invalid("spec.selector", selector.clone(), why));
    }
    let differs = matched.any(|(key, value)| labels.get(key) != Some(value));
    if selector.is_null() || (!empty && differs) {
        let why = "`selector` does not match template `labels`";
        errors.push(FieldError::invalid("spec.template.metadata.labels", labels.clone(), why));
    }
    let pod = with_claims(&spec["template"]["spec"], &spec["volumeClaimTemplates"]);
    containers(&pod, "spec.template.spec", errors);
}

/// The specification of a Pod with a volume for each claim of a StatefulSet, which replaces a
/// volume of the template with the same name.
fn with_claims<'a>(pod: &'a Value, claims: &Value) -> Cow<'a, Value> {
    let Some(claims) = claims.as_array().filter(|claims| !claims.is_empty()) else {
        return Cow::Borrowed(pod);
    };
    let mut pod = pod.clone();
    let named = |volume: &Value| claims.iter().any(|one| one["metadata"]["name"] == volume["name"]);
    let mut volumes = pod["volumes"].as_array().cloned().unwrap_or_default();
    volumes.retain(|volume| !named(volume));
    volumes.extend(claims.iter().map(|claim| {
        let name = &claim["metadata"]["name"];
        json!({"name": name, "persistentVolumeClaim": {"claimName": name}})
    }));
    if pod.is_object() {
        pod["volumes"] = volumes.into();
    }
    Cow::Owned(pod)
}

fn cron_job(spec: &Value, errors: &mut Vec<FieldError>) {
    let schedule = spec["schedule"].as_str().unwrap_or_default();
    if schedule.is_empty() {
        errors.push(FieldError::required("spec.schedule", ""));
    } else if crate::types::cron::Schedule::parse(schedule).is_none() {
        errors.push(FieldError::invalid("spec.schedule", schedule, "it cannot be read"));
    }
    job_template(
        &spec["jobTemplate"]["spec"]["template"]["spec"],
        "spec.jobTemplate.spec.template.spec",
        errors,
    );
}

fn job_template(spec: &Value, path: &str, errors: &mut Vec<FieldError>) {
    containers(spec, path, errors);
    if spec["restartPolicy"] == "Always" {
        let why = "valid values: \"OnFailure\", \"Never\"";
        errors.push(FieldError::required(format!("{path}.restartPolicy"), why));
    }
}

/// The ports of a container have numbers, and names of their own.
fn ports(container: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let mut names: Vec<&Value> = Vec::new();
    for (index, port) in container["ports"].as_array().into_iter().flatten().enumerate() {
        let path = format!("{path}.ports[{index}]");
        let name = &port["name"];
        if name.as_str().is_some_and(|name| !name.is_empty()) {
            if names.contains(&name) {
                errors.push(FieldError::duplicate(format!("{path}.name"), name.clone()));
            }
            names.push(name);
        }
        let field = format!("{path}.containerPort");
        match port["containerPort"].as_i64().unwrap_or(0) {
            0 => errors.push(FieldError::required(field, "")),
            1..=65535 => {}
            number => errors.push(FieldError::invalid(field, number, PORT)),
        }
    }
}

fn containers(spec: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let list = spec["containers"].as_array();
    if list.is_none_or(Vec::is_empty) {
        errors.push(FieldError::required(format!("{path}.containers"), ""));
    }
    for (index, volume) in spec["volumes"].as_array().into_iter().flatten().enumerate() {
        let path = format!("{path}.volumes[{index}]");
        let sources = volume.as_object().into_iter().flatten().filter(|(name, _)| *name != "name");
        for (name, _) in sources.skip(1) {
            let why = "may not specify more than 1 volume type";
            errors.push(FieldError::forbidden(format!("{path}.{name}"), why));
        }
        if volume["secret"].is_object() && volume["secret"]["secretName"].is_null() {
            errors.push(FieldError::required(format!("{path}.secret.secretName"), ""));
        }
    }
    let mut names: Vec<&Value> = Vec::new();
    let volumes: Vec<&Value> =
        spec["volumes"].as_array().into_iter().flatten().map(|one| &one["name"]).collect();
    for (index, container) in list.into_iter().flatten().enumerate() {
        let path = format!("{path}.containers[{index}]");
        if container["name"].as_str().unwrap_or_default().is_empty() {
            errors.push(FieldError::required(format!("{path}.name"), ""));
        }
        if container["image"].as_str().unwrap_or_default().is_empty() {
            errors.push(FieldError::required(format!("{path}.image"), ""));
        }
        let name = &container["name"];
        if names.contains(&name) {
            errors.push(FieldError::duplicate(format!("{path}.name"), name.clone()));
        }
        names.push(name);
        ports(container, &path, errors);
        for probe in ["livenessProbe", "readinessProbe", "startupProbe"] {
            let handlers = ["httpGet", "exec", "tcpSocket", "grpc"];
            let probed = &container[probe];
            if probed.is_object() && handlers.iter().all(|handler| probed[*handler].is_null()) {
                let why = "must specify a handler type";
                errors.push(FieldError::required(format!("{path}.{probe}"), why));
            }
            let port = &probed["httpGet"]["port"];
            let none = port.is_null() || *port == 0 || *port == "";
            if probed["httpGet"].is_object() && none {
                errors.push(FieldError::invalid(format!("{path}.{probe}.httpGet.port"), 0, PORT));
            }
        }
        let resources = &container["resources"];
        for (name, request) in resources["requests"].as_object().into_iter().flatten() {
            let amount = |value: &Value| quantity::billionths(value.as_str().unwrap_or_default());
            let limit = amount(&resources["limits"][name]);
            if limit.is_some() && amount(request) > limit {
                let why = format!("must be less than or equal to {name} limit");
                errors.push(FieldError::invalid(
                    format!("{path}.resources.requests"),
                    request.clone(),
                    why,
                ));
            }
        }
        for (number, mount) in
            container["volumeMounts"].as_array().into_iter().flatten().enumerate()
        {
            let path = format!("{path}.volumeMounts[{number}]");
            let mounted = &mount["mountPath"];
            let earlier = container["volumeMounts"].as_array().into_iter().flatten().take(number);
            if earlier.into_iter().any(|one| one["mountPath"] == *mounted) {
                errors.push(FieldError::invalid(
                    format!("{path}.mountPath"),
                    mounted.clone(),
                    "must be unique",
                ));
            }
            let name = &mount["name"];
            if name.as_str().unwrap_or_default().is_empty() {
                errors.push(FieldError::required(format!("{path}.name"), ""));
            }
            if !volumes.contains(&name) {
                errors.push(FieldError::not_found(format!("{path}.name"), name.clone()));
            }
            if mount["mountPath"].as_str().unwrap_or_default().is_empty() {
                errors.push(FieldError::required(format!("{path}.mountPath"), ""));
            }
        }
    }
}

const PORT: &str = "must be between 1 and 65535, inclusive";

fn service(spec: &Value, errors: &mut Vec<FieldError>) {
    let ports = spec["ports"].as_array();
    if ports.is_none_or(Vec::is_empty)
        && spec["type"] != "ExternalName"
        && spec["clusterIP"] != "None"
    {
        errors.push(FieldError::required("spec.ports", ""));
    }
    let several = ports.is_some_and(|ports| ports.len() > 1);
    let mut names: Vec<&str> = Vec::new();
    for (index, port) in ports.into_iter().flatten().enumerate() {
        let path = format!("spec.ports[{index}]");
        let name = port["name"].as_str().unwrap_or_default();
        if several && name.is_empty() {
            errors.push(FieldError::required(format!("{path}.name"), ""));
        } else if !name.is_empty() && names.contains(&name) {
            errors.push(FieldError::duplicate(format!("{path}.name"), name));
        }
        names.push(name);
        for member in ["port", "targetPort"] {
            let number = port[member].as_i64();
            if let Some(number) = number.filter(|number| !(1..=65535).contains(number)) {
                errors.push(FieldError::invalid(format!("{path}.{member}"), number, PORT));
            }
        }
    }
}

fn event(object: &Value, errors: &mut Vec<FieldError>) {
    let about = object["involvedObject"]["namespace"].as_str().unwrap_or_default();
    let own = object["metadata"]["namespace"].as_str().unwrap_or_default();
    let wanted = if about.is_empty() { "default" } else { about };
    if own != wanted {
        let why = "does not match event.namespace";
        errors.push(FieldError::invalid("involvedObject.namespace", about, why));
    }
}

fn role(kind: &Kind, object: &Value, errors: &mut Vec<FieldError>) {
    let aggregation = &object["aggregationRule"];
    if aggregation.is_object()
        && aggregation["clusterRoleSelectors"].as_array().is_none_or(Vec::is_empty)
    {
        let why = "at least one clusterRoleSelector required if aggregationRule is non-nil";
        errors.push(FieldError::required("aggregationRule.clusterRoleSelectors", why));
    }
    for (index, rule) in object["rules"].as_array().into_iter().flatten().enumerate() {
        let given = |name: &str| rule[name].as_array().is_some_and(|list| !list.is_empty());
        if given("nonResourceURLs") {
            let field = format!("rules[{index}].nonResourceURLs");
            if kind.namespaced {
                let why = "namespaced rules cannot apply to non-resource URLs";
                errors.push(FieldError::invalid(field, rule["nonResourceURLs"].clone(), why));
            } else if given("apiGroups") || given("resources") || given("resourceNames") {
                let why = "rules cannot apply to both regular resources and non-resource URLs";
                errors.push(FieldError::invalid(field, rule["nonResourceURLs"].clone(), why));
            }
            if !given("verbs") {
                let why = "verbs must contain at least one value";
                errors.push(FieldError::required(format!("rules[{index}].verbs"), why));
            }
            continue;
        }
        for (name, why) in [
            ("verbs", "verbs must contain at least one value"),
            ("apiGroups", "resource rules must supply at least one api group"),
            ("resources", "resource rules must supply at least one resource"),
        ] {
            if rule[name].as_array().is_none_or(Vec::is_empty) {
                errors.push(FieldError::required(format!("rules[{index}].{name}"), why));
            }
        }
    }
}

fn binding(object: &Value, errors: &mut Vec<FieldError>) {
    let role = &object["roleRef"];
    if role["kind"].as_str().unwrap_or_default().is_empty() {
        let known = ["Role".to_owned(), "ClusterRole".to_owned()];
        errors.push(FieldError::unsupported("roleRef.kind", "", &known));
    }
    if role["name"].as_str().unwrap_or_default().is_empty() {
        errors.push(FieldError::required("roleRef.name", ""));
    }
}

/// The quality of service class of a Pod.
pub(crate) fn quality(spec: &Value) -> &'static str {
    let containers = ["containers", "initContainers"];
    let containers =
        containers.iter().flat_map(|list| spec[*list].as_array().into_iter().flatten());
    let (mut none, mut all) = (true, true);
    for container in containers {
        for resource in ["cpu", "memory"] {
            let amount = |kind: &str| {
                let text = container["resources"][kind][resource].as_str().unwrap_or_default();
                quantity::billionths(text).filter(|amount| *amount > 0)
            };
            let (request, limit) = (amount("requests"), amount("limits"));
            none &= request.is_none() && limit.is_none();
            all &= limit.is_some() && request == limit;
        }
    }
    match (none, all) {
        (true, _) => "BestEffort",
        (_, true) => "Guaranteed",
        _ => "Burstable",
    }
}

/// What is wrong with a status.
pub(crate) fn status(kind: &Kind, object: &Value, errors: &mut Vec<FieldError>) {
    let status = &object["status"];
    let count = |name: &str| status[name].as_i64().unwrap_or(0);
    let mut most = |name: &str, bound: &str| {
        if count(name) > count(bound) {
            let why = format!("cannot be greater than status.{bound}");
            errors.push(FieldError::invalid(format!("status.{name}"), count(name), why));
        }
    };
    if kind.is("apps", "Deployment") {
        most("updatedReplicas", "replicas");
        most("readyReplicas", "replicas");
        most("availableReplicas", "replicas");
        most("availableReplicas", "readyReplicas");
    } else if kind.is("apps", "ReplicaSet") {
        most("fullyLabeledReplicas", "replicas");
        most("readyReplicas", "replicas");
        most("availableReplicas", "replicas");
        most("availableReplicas", "readyReplicas");
    }
}

/// The immutable members of some kinds.
pub(crate) fn immutable(kind: &Kind, new: &Value, old: &Value, errors: &mut Vec<FieldError>) {
    let mut fixed = |field: &str, names: &[&str]| {
        let find =
            |object: &Value| names.iter().fold(object.clone(), |place, name| place[*name].clone());
        let now = find(new);
        if now != find(old) {
            errors.push(FieldError::invalid(field, now, "field is immutable"));
        }
    };
    match (kind.group.as_str(), kind.name.as_str()) {
        ("apps", "Deployment" | "ReplicaSet" | "DaemonSet") => {
            fixed("spec.selector", &["spec", "selector"]);
        }
        ("rbac.authorization.k8s.io", "RoleBinding" | "ClusterRoleBinding") => {
            fixed("roleRef", &["roleRef"]);
        }
        ("apps", "StatefulSet") => {
            let rest = |object: &Value| {
                let mut spec = object["spec"].as_object().cloned().unwrap_or_default();
                for name in [
                    "replicas",
                    "ordinals",
                    "template",
                    "updateStrategy",
                    "revisionHistoryLimit",
                    "persistentVolumeClaimRetentionPolicy",
                    "minReadySeconds",
                ] {
                    spec.remove(name);
                }
                spec
            };
            if rest(new) != rest(old) {
                let why = "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden";
                errors.push(FieldError::forbidden("spec", why));
            }
        }
        ("batch", "Job") => {
            for name in [
                "selector",
                "completionMode",
                "podFailurePolicy",
                "backoffLimitPerIndex",
                "managedBy",
                "successPolicy",
            ] {
                fixed(&format!("spec.{name}"), &["spec", name]);
            }
            crate::types::kinds::job::immutable(&new["spec"], old, errors);
        }
        ("", "Pod") => {
            // Images and a few more may change.
            let rest = |object: &Value| {
                let mut spec = object["spec"].clone();
                for list in ["containers", "initContainers"] {
                    for container in spec[list].as_array_mut().into_iter().flatten() {
                        container["image"] = Value::Null;
                    }
                }
                spec["activeDeadlineSeconds"] = Value::Null;
                spec["tolerations"] = Value::Null;
                spec
            };
            if rest(new) != rest(old) {
                let why = "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)";
                errors.push(FieldError::forbidden("spec", why));
            }
        }
        ("", "Secret") => {
            fixed("type", &["type"]);
            sealed(new, old, &["data"], errors);
        }
        ("", "PersistentVolumeClaim") => crate::types::kinds::claim::immutable(new, old, errors),
        ("apps", "ControllerRevision") => super::controller_revision::immutable(new, old, errors),
        ("", "ConfigMap") => sealed(new, old, &["data", "binaryData"], errors),
        _ => {}
    }
}

/// `immutable: true` cannot be unset.
fn sealed(new: &Value, old: &Value, members: &[&str], errors: &mut Vec<FieldError>) {
    const WHY: &str = "field is immutable when `immutable` is set";
    if old["immutable"] != true {
        return;
    }
    if new["immutable"] != true {
        errors.push(FieldError::forbidden("immutable", WHY));
    }
    for name in members.iter().copied().filter(|name| new[*name] != old[*name]) {
        errors.push(FieldError::forbidden(name, WHY));
    }
}
