//! The controller of `EndpointSlices` and Endpoints: the Pods of a Service.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::{Value, json};

use crate::apply::managed_object::ManagedObject;
use crate::controllers::client;
use crate::controllers::client::{Client, ENDPOINT_SLICES, ENDPOINTS, PODS, SERVICES, owned_by};
use crate::controllers::replica_set::{has_ended, is_ready};
use crate::state::cluster::Cluster;
use crate::types::members::{condition, key_of, number, text};
use crate::types::object::{is_terminating, meta};
use crate::types::object_key::Key;

/// The annotation with the time of the last change that triggered an update.
const TRIGGER: &str = "endpoints.kubernetes.io/last-change-trigger-time";
const CLIENT: Client =
    Client::controller("system:serviceaccount:kube-system:endpointslice-controller");
const OLD: Client = Client::controller("system:serviceaccount:kube-system:endpoint-controller");

/// Reconciles one object.
pub(crate) fn sync(cluster: &mut Cluster, key: &Key) {
    let Some(service) = client::get(cluster, &SERVICES, key) else {
        // Slices are deleted with their owner; Endpoints have none.
        if let Some(endpoints) = client::get(cluster, &ENDPOINTS, key)
            && endpoints["metadata"]["labels"]["endpoints.kubernetes.io/managed-by"]
                == "endpoint-controller"
        {
            client::delete(cluster, &OLD, &ENDPOINTS, &endpoints, None);
        }
        return;
    };
    let selector = &service["spec"]["selector"];
    if is_terminating(&service)
        || selector.as_object().is_none_or(serde_json::Map::is_empty)
        || service["spec"]["type"] == "ExternalName"
    {
        return;
    }
    let pods = selected_pods(cluster, &key.0, selector);
    write_slice(cluster, &service, &pods);
    write_endpoints(cluster, &service, &pods);
}

/// The selected Pods that have an address, in the order of names.
fn selected_pods(cluster: &Cluster, namespace: &str, selector: &Value) -> Vec<Arc<ManagedObject>> {
    let found = cluster.work_queue.labels.pods_of(namespace, selector).into_iter();
    let pods = found.filter_map(|key| client::get(cluster, &PODS, &key));
    pods.filter(|pod| !has_ended(pod) && pod["status"]["podIP"].is_string()).collect()
}

fn write_slice(cluster: &mut Cluster, service: &Value, pods: &[Arc<ManagedObject>]) {
    let known = client::controlled_by(cluster, service, &ENDPOINT_SLICES).into_iter().next();
    let endpoints: Vec<Value> = pods
        .iter()
        .map(|pod| {
            let terminating = is_terminating(pod);
            let all = service["spec"]["publishNotReadyAddresses"] == true;
            json!({
                "addresses": [pod["status"]["podIP"]],
                "conditions": {
                    "ready": all || (is_ready(pod) && !terminating),
                    "serving": is_ready(pod), "terminating": terminating,
                },
                "nodeName": pod["spec"]["nodeName"], "targetRef": target(pod),
            })
        })
        .collect();
    let ports: Vec<Value> = ports(service, pods);
    let name = meta(service, "name");
    let mut labels = service["metadata"]["labels"].clone();
    if !labels.is_object() {
        labels = json!({});
    }
    labels["kubernetes.io/service-name"] = name.into();
    labels["endpointslice.kubernetes.io/managed-by"] = "endpointslice-controller.k8s.io".into();
    if service["spec"]["clusterIP"] == "None" {
        labels["service.kubernetes.io/headless"] = "".into();
    }
    let Some(before) = known else {
        let since = &service["metadata"]["creationTimestamp"];
        let slice = json!({
            "metadata": {"generateName": format!("{name}-"), "labels": labels,
                "annotations": {TRIGGER: since}, "ownerReferences": owned_by(service, &SERVICES)},
            "addressType": "IPv4", "endpoints": endpoints, "ports": ports,
        });
        let _ =
            client::create(cluster, &CLIENT, &ENDPOINT_SLICES, meta(service, "namespace"), slice);
        return;
    };
    let mut slice = Value::clone(&before);
    slice["metadata"]["labels"] = labels;
    slice["endpoints"] = endpoints.into();
    slice["ports"] = ports.into();
    // The server stores an empty list as null: the two compare as equal.
    let same = |name: &str| {
        slice[name] == before[name]
            || (before[name].is_null() && slice[name].as_array().is_some_and(Vec::is_empty))
    };
    if !(same("endpoints")
        && same("ports")
        && slice["metadata"]["labels"] == before["metadata"]["labels"])
    {
        let known = before["endpoints"].as_array().into_iter().flatten();
        let known =
            known.map(|one| (text(&one["targetRef"]["uid"]), one["conditions"]["ready"] == true));
        note_trigger(&mut slice, pods, &known.collect());
        let _ = client::replace(cluster, &CLIENT, &ENDPOINT_SLICES, "", slice);
    }
}

fn write_endpoints(cluster: &mut Cluster, service: &Value, pods: &[Arc<ManagedObject>]) {
    let key = key_of(service);
    let known = client::get(cluster, &ENDPOINTS, &key);
    let all = service["spec"]["publishNotReadyAddresses"] == true;
    let address = |pod: &Arc<ManagedObject>| json!({"ip": pod["status"]["podIP"], "nodeName": pod["spec"]["nodeName"], "targetRef": target(pod)});
    let live = || pods.iter().filter(|pod| !is_terminating(pod));
    let ready: Vec<Value> = live().filter(|pod| all || is_ready(pod)).map(address).collect();
    let unready: Vec<Value> = live().filter(|pod| !(all || is_ready(pod))).map(address).collect();
    let mut subsets = Vec::new();
    if !ready.is_empty() || !unready.is_empty() {
        let mut subset = json!({});
        for (name, list) in [("addresses", ready), ("notReadyAddresses", unready)] {
            if !list.is_empty() {
                subset[name] = list.into();
            }
        }
        let ports = ports(service, pods);
        if !ports.is_empty() {
            subset["ports"] = ports.into();
        }
        subsets.push(subset);
    }
    let mut labels = service["metadata"]["labels"].clone();
    if !labels.is_object() {
        labels = json!({});
    }
    labels["endpoints.kubernetes.io/managed-by"] = "endpoint-controller".into();
    if service["spec"]["clusterIP"] == "None" {
        labels["service.kubernetes.io/headless"] = "".into();
    }
    let Some(before) = known else {
        let since = &service["metadata"]["creationTimestamp"];
        let mut new =
            json!({"metadata": {"name": key.1, "labels": labels, "annotations": {TRIGGER: since}}});
        if !subsets.is_empty() {
            new["subsets"] = subsets.into();
        }
        let _ = client::create(cluster, &OLD, &ENDPOINTS, &key.0, new);
        return;
    };
    let mut endpoints = Value::clone(&before);
    endpoints["metadata"]["labels"] = labels;
    if subsets.is_empty() {
        if let Some(map) = endpoints.as_object_mut() {
            map.remove("subsets");
        }
    } else {
        endpoints["subsets"] = subsets.into();
    }
    if endpoints != **before {
        let mut known = BTreeSet::new();
        for (name, ready) in [("addresses", true), ("notReadyAddresses", false)] {
            let subsets = before["subsets"].as_array().into_iter().flatten();
            let addresses = subsets.flat_map(|one| one[name].as_array().into_iter().flatten());
            known.extend(addresses.map(|one| (text(&one["targetRef"]["uid"]), ready)));
        }
        note_trigger(&mut endpoints, pods, &known);
        let _ = client::replace(cluster, &OLD, &ENDPOINTS, "", endpoints);
    }
}

/// Records the trigger time of a change: the earliest readiness change of the new or changed Pods.
fn note_trigger(object: &mut Value, pods: &[Arc<ManagedObject>], known: &BTreeSet<(&str, bool)>) {
    let since = pods
        .iter()
        .filter(|pod| !known.contains(&(meta(pod, "uid"), is_ready(pod))))
        .filter_map(|pod| condition(pod, "Ready")?["lastTransitionTime"].as_str())
        .min();
    match since {
        Some(since) => object["metadata"]["annotations"][TRIGGER] = since.into(),
        None => {
            if let Some(Value::Object(all)) = object.pointer_mut("/metadata/annotations") {
                all.remove(TRIGGER);
            }
        }
    }
}

fn target(pod: &Value) -> Value {
    json!({"kind": "Pod", "namespace": meta(pod, "namespace"), "name": meta(pod, "name"), "uid": meta(pod, "uid")})
}

/// The ports of a Service, resolved for its Pods.
fn ports(service: &Value, pods: &[Arc<ManagedObject>]) -> Vec<Value> {
    let list = service["spec"]["ports"].as_array().into_iter().flatten();
    list.filter_map(|port| {
        let wanted = &port["targetPort"];
        let found = match wanted.as_str() {
            None => number(wanted),
            Some(name) => {
                let containers = pods
                    .iter()
                    .flat_map(|pod| pod["spec"]["containers"].as_array().into_iter().flatten());
                let mut named = containers
                    .flat_map(|one| one["ports"].as_array().into_iter().flatten())
                    .filter(|one| one["name"] == name && one["protocol"] == port["protocol"]);
                number(&named.next()?["containerPort"])
            }
        };
        let mut one = json!({"port": found, "protocol": port["protocol"]});
        one["name"] = text(&port["name"]).into();
        if let Some(protocol) = port.get("appProtocol") {
            one["appProtocol"] = protocol.clone();
        }
        Some(one)
    })
    .collect()
}
