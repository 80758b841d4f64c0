//! Defaults of Pods and of Pod templates.

use crate::types::kinds::defaults::fill::{each, or, or_text};
use serde_json::{Map, Value, json};

/// `podIP` is the first of `podIPs`; `podIP` wins if both are given.
pub(crate) fn pod_addresses(object: &mut Value) {
    let Some(status) = object.get_mut("status").filter(|status| status.is_object()) else { return };
    let pod_ip = status["podIP"].as_str().unwrap_or_default().to_owned();
    let first = status["podIPs"][0]["ip"].as_str().unwrap_or_default().to_owned();
    if !pod_ip.is_empty() && pod_ip != first {
        status["podIPs"] = json!([{ "ip": pod_ip }]);
    } else if pod_ip.is_empty() && !first.is_empty() {
        status["podIP"] = first.into();
    }
}

pub(crate) fn template(template: &mut Value) {
    if template["spec"].is_object() {
        pod_spec(&mut template["spec"]);
    }
}

/// The defaults of a Pod.
pub(crate) fn pod_spec(spec: &mut Value) {
    or_text(spec, "restartPolicy", "Always");
    or_text(spec, "dnsPolicy", "ClusterFirst");
    or_text(spec, "schedulerName", "default-scheduler");
    or(spec, "terminationGracePeriodSeconds", 30.into());
    or(spec, "securityContext", json!({}));
    if let Some(account) = spec["serviceAccountName"].as_str().map(str::to_owned) {
        or_text(spec, "serviceAccount", &account);
    } else if let Some(account) = spec["serviceAccount"].as_str().map(str::to_owned) {
        or_text(spec, "serviceAccountName", &account);
    }
    let host = spec["hostNetwork"] == true;
    for list in ["containers", "initContainers"] {
        each(spec, list, &mut |container| self::container(container, host));
    }
    each(spec, "volumes", &mut volume);
}

pub(crate) fn container(container: &mut Value, host: bool) {
    or_text(container, "terminationMessagePath", "/dev/termination-log");
    or_text(container, "terminationMessagePolicy", "File");
    let image = container["image"].as_str().unwrap_or_default().to_owned();
    let last = image.rsplit('/').next().unwrap_or_default();
    let tag = last.split('@').next().and_then(|name| name.split_once(':')).map(|(_, tag)| tag);
    let latest = tag == Some("latest") || (tag.is_none() && !last.contains('@'));
    or_text(container, "imagePullPolicy", if latest { "Always" } else { "IfNotPresent" });
    for list in ["limits", "requests"] {
        if container["resources"][list].as_object().is_some_and(Map::is_empty)
            && let Some(map) = container["resources"].as_object_mut()
        {
            map.remove(list);
        }
    }
    each(container, "ports", &mut |port| {
        or_text(port, "protocol", "TCP");
        if host && port["hostPort"].is_null() {
            port["hostPort"] = port["containerPort"].clone();
        }
    });
    for probe in ["livenessProbe", "readinessProbe", "startupProbe"] {
        if container[probe].is_object() {
            self::probe(&mut container[probe]);
        }
    }
    for hook in ["postStart", "preStop"] {
        if container["lifecycle"][hook]["httpGet"].is_object() {
            http_get(&mut container["lifecycle"][hook]["httpGet"]);
        }
    }
    each(container, "env", &mut |env| {
        if env["valueFrom"]["fieldRef"].is_object() {
            or_text(&mut env["valueFrom"]["fieldRef"], "apiVersion", "v1");
        }
    });
}

/// A limit without a request becomes the request.
pub(crate) fn requests_from_limits(container: &mut Value) {
    let limits = container["resources"]["limits"].as_object().cloned().unwrap_or_default();
    for (name, value) in limits {
        let requests = &mut container["resources"]["requests"];
        if requests.get(&name).is_none() {
            requests[&name] = value;
        }
    }
}

pub(crate) fn http_get(action: &mut Value) {
    or_text(action, "path", "/");
    or_text(action, "scheme", "HTTP");
}

pub(crate) fn probe(probe: &mut Value) {
    for (name, value) in [
        ("timeoutSeconds", 1),
        ("periodSeconds", 10),
        ("successThreshold", 1),
        ("failureThreshold", 3),
    ] {
        or(probe, name, value.into());
    }
    if probe["httpGet"].is_object() {
        http_get(&mut probe["httpGet"]);
    }
    if probe["grpc"].is_object() {
        or(&mut probe["grpc"], "service", "".into());
    }
}

pub(crate) fn volume(volume: &mut Value) {
    let mode = json!(0o644);
    let sources = volume.as_object().map_or(0, Map::len);
    if sources <= 1 {
        volume["emptyDir"] = json!({});
    }
    for kind in ["secret", "configMap", "downwardAPI", "projected"] {
        if volume[kind].is_object() {
            or(&mut volume[kind], "defaultMode", mode.clone());
        }
    }
    if volume["hostPath"].is_object() {
        or(&mut volume["hostPath"], "type", "".into());
    }
    let fields = |list: &mut Value| {
        each(list, "items", &mut |item| {
            if item["fieldRef"].is_object() {
                or_text(&mut item["fieldRef"], "apiVersion", "v1");
            }
        });
    };
    if volume["downwardAPI"].is_object() {
        fields(&mut volume["downwardAPI"]);
    }
    each(&mut volume["projected"], "sources", &mut |source| {
        if source["serviceAccountToken"].is_object() {
            or(&mut source["serviceAccountToken"], "expirationSeconds", 3600.into());
        }
        if source["downwardAPI"].is_object() {
            fields(&mut source["downwardAPI"]);
        }
    });
}
