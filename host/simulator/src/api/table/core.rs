//! The other built-in kinds in tables.

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::api::table::age::since;
use crate::api::table::parts::{
    at, containers, count, is_true, items, labels, number, or_none, text, text_or,
};
use crate::api::table::{network, pod, volume};

/// The cells of a kind of the core group, of RBAC, of a Lease or an Event.
pub(crate) fn cells(kind: &str, object: &Value, now: Timestamp) -> Option<Vec<Value>> {
    let name = text(object, "metadata/name");
    let age = since(at(object, "metadata/creationTimestamp"), now);
    let cells = match kind {
        "Pod" => return Some(pod::cells(object, now)),
        "Service" | "Endpoints" => return network::cells(kind, object, now),
        "PersistentVolume" | "PersistentVolumeClaim" => return volume::cells(kind, object, now),
        "Event" => return Some(event(object, now)),
        "Node" => return Some(node(object, age)),
        "Namespace" => json!([name, text(object, "status/phase"), age]),
        "ConfigMap" => json!([name, count(object, "data") + count(object, "binaryData"), age]),
        "Secret" => json!([name, text(object, "type"), count(object, "data"), age]),
        "ServiceAccount" => json!([name, age]),
        "MutatingWebhookConfiguration" | "ValidatingWebhookConfiguration" => {
            json!([name, items(object, "webhooks").len(), age])
        }
        "ValidatingAdmissionPolicy" => {
            let spec = at(object, "spec");
            let kind = at(spec, "paramKind");
            let kind = match text(kind, "kind") {
                "" => "<unset>".to_owned(),
                name => format!("{}/{name}", text(kind, "apiVersion")),
            };
            json!([name, items(spec, "validations").len(), kind, age])
        }
        "ValidatingAdmissionPolicyBinding" => {
            let from = at(object, "spec/paramRef");
            let from = match (text(from, "namespace"), text(from, "name")) {
                (_, "") => "<unset>".to_owned(),
                ("", name) => format!("*/{name}"),
                (namespace, name) => format!("{namespace}/{name}"),
            };
            json!([name, text(object, "spec/policyName"), from, age])
        }
        "ComponentStatus" => {
            let health = items(object, "conditions").iter().find(|one| one["type"] == "Healthy");
            let health = health.unwrap_or(&Value::Null);
            let status = match text(health, "status") {
                "" => "Unknown",
                "True" => "Healthy",
                _ => "Unhealthy",
            };
            json!([name, status, text(health, "message"), text(health, "error")])
        }
        "PodTemplate" => {
            let template = &object["template"];
            let [names, images] = containers(&template["spec"]);
            json!([name, names, images, labels(at(template, "metadata/labels"))])
        }
        "ReplicationController" => {
            let status = |member: &str| number(&object["status"], member);
            let [names, images] = containers(at(object, "spec/template/spec"));
            let (wanted, chosen) = (number(object, "spec/replicas"), at(object, "spec/selector"));
            let (there, ready) = (status("replicas"), status("readyReplicas"));
            json!([name, wanted, there, ready, age, names, images, labels(chosen)])
        }
        "ResourceQuota" => {
            let [requests, limits] = quota(object);
            json!([name, requests, limits, age])
        }
        "RoleBinding" | "ClusterRoleBinding" => {
            let role = at(object, "roleRef");
            let role = format!("{}/{}", text(role, "kind"), text(role, "name"));
            let [users, groups, accounts] = ["User", "Group", "ServiceAccount"]
                .map(|kind| subjects(items(object, "subjects"), kind));
            json!([name, role, age, users, groups, accounts])
        }
        "Lease" => json!([name, text(object, "spec/holderIdentity"), age]),
        "LeaseCandidate" => json!([
            name,
            text(object, "spec/leaseName"),
            text(object, "spec/binaryVersion"),
            text(object, "spec/emulationVersion"),
            age
        ]),
        _ => return None,
    };
    cells.as_array().cloned()
}

fn subjects(list: &[Value], kind: &str) -> String {
    let of = list.iter().filter(|one| one["kind"] == kind);
    let names = of.map(|one| match text(one, "namespace") {
        namespace if kind == "ServiceAccount" && !namespace.is_empty() => {
            format!("{namespace}/{}", text(one, "name"))
        }
        _ => text(one, "name").to_owned(),
    });
    names.collect::<Vec<_>>().join(", ")
}

fn event(object: &Value, now: Timestamp) -> Vec<Value> {
    // The two groups name the same members differently.
    let either = |one: &str, other: &str| match at(object, one) {
        Value::Null => at(object, other).clone(),
        value => value.clone(),
    };
    let about = either("involvedObject", "regarding");
    let source = either("source", "deprecatedSource");
    let first = match either("firstTimestamp", "deprecatedFirstTimestamp") {
        Value::Null => at(object, "eventTime").clone(),
        time => time,
    };
    let series = &object["series"];
    let (last, times) = if series.is_object() {
        (series["lastObservedTime"].clone(), number(series, "count"))
    } else {
        let last = either("lastTimestamp", "deprecatedLastTimestamp");
        let times = either("count", "deprecatedCount").as_i64().unwrap_or(0);
        (if last.is_null() { first.clone() } else { last }, times.max(1))
    };
    let kind = text(&about, "kind").to_lowercase();
    let target = match text(&about, "name") {
        "" => kind,
        name => format!("{kind}/{name}"),
    };
    let component = text_or(&source, "component", text(object, "reportingComponent"));
    let component =
        if component.is_empty() { text(object, "reportingController") } else { component };
    let host = text_or(&source, "host", text(object, "reportingInstance"));
    let from = if host.is_empty() { component.to_owned() } else { format!("{component}, {host}") };
    let message = either("message", "note");
    vec![
        since(&last, now),
        text(object, "type").into(),
        text(object, "reason").into(),
        target.into(),
        text(&about, "fieldPath").into(),
        from.into(),
        message.as_str().unwrap_or_default().trim().into(),
        since(&first, now),
        times.into(),
        text(object, "metadata/name").into(),
    ]
}

fn node(object: &Value, age: Value) -> Vec<Value> {
    let conditions = items(object, "status/conditions");
    let mut status = match conditions.iter().any(|one| one["type"] == "Ready") {
        true if is_true(object, "Ready") => "Ready",
        true => "NotReady",
        false => "Unknown",
    }
    .to_owned();
    if at(object, "spec/unschedulable") == true {
        status.push_str(",SchedulingDisabled");
    }
    let mut roles = BTreeSet::new();
    for (label, value) in at(object, "metadata/labels").as_object().into_iter().flatten() {
        let value = value.as_str().unwrap_or_default();
        let role = label.strip_prefix("node-role.kubernetes.io/").unwrap_or_default();
        let role = if label == "kubernetes.io/role" { value } else { role };
        if !role.is_empty() {
            roles.insert(role);
        }
    }
    let roles = or_none(roles.into_iter().collect::<Vec<_>>().join(","));
    let info = |member: &str| text_or(at(object, "status/nodeInfo"), member, "<unknown>").into();
    let address = |kind: &str| {
        let of = items(object, "status/addresses").iter().find(|one| one["type"] == kind);
        of.map_or("<none>", |one| text(one, "address")).into()
    };
    vec![
        text(object, "metadata/name").into(),
        status.into(),
        roles.into(),
        age,
        text(object, "status/nodeInfo/kubeletVersion").into(),
        address("InternalIP"),
        address("ExternalIP"),
        info("osImage"),
        info("kernelVersion"),
        info("containerRuntimeVersion"),
    ]
}

/// The used part of a quota: requests, and limits.
fn quota(object: &Value) -> [String; 2] {
    let hard = at(object, "status/hard").as_object();
    let mut names: Vec<&String> = hard.into_iter().flatten().map(|(name, _)| name).collect();
    names.sort();
    let listed = |limits: bool| {
        let of = names.iter().filter(|name| name.starts_with("limits.") == limits);
        let each = of.map(|name| {
            let [used, hard] =
                ["status/used", "status/hard"].map(|path| &at(object, path)[name.as_str()]);
            let [used, hard] = [used, hard].map(|value| value.as_str().unwrap_or("0"));
            format!("{name}: {used}/{hard}")
        });
        each.collect::<Vec<_>>().join(", ")
    };
    [listed(false), listed(true)]
}
