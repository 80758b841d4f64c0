//! Addresses of Services.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use crate::api::request_context::RequestContext;
use crate::state::cluster::Cluster;
use crate::types::object::{copy, meta};
use crate::types::status_error::{FieldError, StatusError};

/// The ports of nodes that Services can have.
const PORTS: std::ops::RangeInclusive<u64> = 30_000..=32_767;

/// The addresses and ports of other Services.
#[derive(Default)]
struct Used {
    addresses: BTreeSet<String>,
    ports: BTreeSet<u64>,
}

fn is_external(spec: &Value) -> bool {
    spec["type"] == "ExternalName"
}

fn has_node_ports(spec: &Value) -> bool {
    matches!(spec["type"].as_str(), Some("NodePort" | "LoadBalancer"))
}

fn is_reached_from_outside(spec: &Value) -> bool {
    let own = spec["externalIPs"].as_array().is_some_and(|list| !list.is_empty());
    has_node_ports(spec) || (spec["type"] == "ClusterIP" && own)
}

fn ports_of(spec: &Value) -> impl Iterator<Item = u64> {
    let ports = spec["ports"].as_array().into_iter().flatten();
    ports.filter_map(|port| port["nodePort"].as_u64()).filter(|port| *port != 0)
}

fn unset(spec: &mut Value, name: &str) {
    if let Some(spec) = spec.as_object_mut() {
        spec.remove(name);
    }
}

/// Keeps the addresses that a change does not mention.
fn keep(spec: &mut Value, was: &Value) {
    if is_external(spec) || is_external(was) {
        return;
    }
    if spec["clusterIP"] != was["clusterIP"] && spec["clusterIPs"] == was["clusterIPs"] {
        // A change of one of the two members changes the other too.
        unset(spec, "clusterIPs");
    }
    for name in ["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"] {
        if spec[name].as_str().unwrap_or_default().is_empty() && !spec[name].is_array() {
            let changed = name == "clusterIPs" && spec["clusterIP"] != was["clusterIP"];
            if !changed {
                copy(was, spec, name);
            }
        }
    }
    if !has_node_ports(spec) || !has_node_ports(was) {
        return;
    }
    let new_ports: BTreeSet<u64> = ports_of(spec).collect();
    let both: BTreeSet<u64> = ports_of(was).filter(|port| new_ports.contains(port)).collect();
    let known = was["ports"].as_array().into_iter().flatten();
    let known: BTreeMap<&str, u64> = known
        .filter_map(|port| {
            Some((port["name"].as_str().unwrap_or_default(), port["nodePort"].as_u64()?))
        })
        .collect();
    for port in spec["ports"].as_array_mut().into_iter().flatten() {
        if port["nodePort"].as_u64().unwrap_or(0) == 0 {
            let before = known.get(port["name"].as_str().unwrap_or_default());
            if let Some(before) = before.filter(|before| !both.contains(before)) {
                port["nodePort"] = (*before).into();
            }
        }
    }
}

/// Drops unchanged members that the new type of a Service does not have.
fn drop_dependent(object: &mut Value, was: &Value) {
    let balances = |spec: &Value| spec["type"] == "LoadBalancer";
    let checks = |spec: &Value| balances(spec) && spec["externalTrafficPolicy"] == "Local";
    let now = object["spec"].clone();
    let spec = &mut object["spec"];
    let mut drop = |names: &[&str]| {
        for name in names {
            if spec[*name] == was[*name] {
                unset(spec, name);
            }
        }
    };
    if is_external(&now) && !is_external(was) {
        if now["clusterIP"] == was["clusterIP"] && now["clusterIPs"] == was["clusterIPs"] {
            drop(&["clusterIP", "clusterIPs"]);
        }
        drop(&["ipFamilies", "ipFamilyPolicy"]);
    }
    if checks(was) && !checks(&now) {
        drop(&["healthCheckNodePort"]);
    }
    if balances(was) && !balances(&now) {
        drop(&["allocateLoadBalancerNodePorts", "loadBalancerClass"]);
    }
    if is_reached_from_outside(was) && !is_reached_from_outside(&now) {
        drop(&["externalTrafficPolicy"]);
    }
    let same = ports_of(&now).collect::<BTreeSet<_>>() == ports_of(was).collect();
    if has_node_ports(was) && !has_node_ports(&now) && same {
        for port in spec["ports"].as_array_mut().into_iter().flatten() {
            unset(port, "nodePort");
        }
    }
    if !balances(&now) {
        object["status"]["loadBalancer"] = json!({});
    }
}

/// Allocates the addresses that a Service asks for.
pub(crate) fn allocate(
    cluster: &mut Cluster,
    context: &RequestContext<'_>,
    object: &mut Value,
    old: Option<&Value>,
) -> Result<(), StatusError> {
    if !context.kind.is("", "Service") || !context.target.subresource.is_empty() {
        return Ok(());
    }
    let nothing = Value::Null;
    let was = old.map_or(&nothing, |old| &old["spec"]);
    if old.is_some() {
        keep(&mut object["spec"], was);
        drop_dependent(object, was);
    }
    let name = meta(object, "name").to_owned();
    let spec = &mut object["spec"];
    if is_external(spec) {
        unset(spec, "internalTrafficPolicy");
        return Ok(());
    }
    let used = used_by_others(cluster, context.namespace(), &name);
    let mut errors = Vec::new();
    let address = match spec["clusterIP"].as_str() {
        Some(address) if !address.is_empty() => address.to_owned(),
        _ => free_address(cluster, &used),
    };
    if used.addresses.contains(&address) && was["clusterIP"] != address.as_str() {
        let why = format!("failed to allocate IP {address}: provided IP is already allocated");
        errors.push(FieldError::invalid("spec.clusterIPs", json!([address]), why));
    }
    spec["clusterIP"] = address.as_str().into();
    if spec["clusterIPs"][0] != address.as_str() {
        spec["clusterIPs"] = json!([address]);
    }
    // A Service with neither address nor selector has no known backend.
    let open = address == "None" && spec["selector"].as_object().is_none_or(Map::is_empty);
    if spec["ipFamilyPolicy"].is_null() {
        spec["ipFamilyPolicy"] = if open { "RequireDualStack" } else { "SingleStack" }.into();
    }
    if spec["ipFamilies"].is_null() {
        let both = open && spec["ipFamilyPolicy"] == "RequireDualStack";
        spec["ipFamilies"] = if both { json!(["IPv4", "IPv6"]) } else { json!(["IPv4"]) };
    }
    let balanced = spec["type"] == "LoadBalancer" && spec["allocateLoadBalancerNodePorts"] != false;
    if balanced || spec["type"] == "NodePort" {
        node_ports(cluster, spec, was, &used, &mut errors);
    }
    if errors.is_empty() {
        return Ok(());
    }
    Err(StatusError::invalid(context.named_kind(&name), &errors))
}

fn used_by_others(cluster: &Cluster, namespace: &str, name: &str) -> Used {
    let mut used = Used::default();
    let kind = (String::new(), "services".to_owned());
    let all = cluster.store.collection(&kind).map(|one| one.objects.iter());
    for (key, stored) in all.into_iter().flatten() {
        if key.0 == namespace && key.1 == name {
            continue;
        }
        let spec = &stored.object()["spec"];
        let address = spec["clusterIP"].as_str().filter(|address| *address != "None");
        used.addresses.extend(address.map(str::to_owned));
        used.ports.extend(ports_of(spec));
    }
    used
}

fn free_address(cluster: &Cluster, used: &Used) -> String {
    // By the version, so that it is the same in each run and another each time.
    let first = cluster.store.version();
    let address = |number: u64| {
        let number = (first + number) % 65_000 + 10;
        format!("10.96.{}.{}", number / 256, number % 256)
    };
    let free = (0..65_000).map(address).find(|address| !used.addresses.contains(address));
    free.unwrap_or_else(|| address(0))
}

fn node_ports(
    cluster: &Cluster,
    spec: &mut Value,
    was: &Value,
    used: &Used,
    errors: &mut Vec<FieldError>,
) {
    let mut taken: BTreeSet<u64> = used.ports.iter().copied().chain(ports_of(spec)).collect();
    let own: BTreeSet<u64> = ports_of(was).collect();
    // A port of two protocols is one port of the nodes.
    let mut given: BTreeMap<u64, u64> = BTreeMap::new();
    let size = PORTS.end() - PORTS.start() + 1;
    let first = cluster.store.version() % 2_000;
    for (index, port) in spec["ports"].as_array_mut().into_iter().flatten().enumerate() {
        let number = port["port"].as_u64().unwrap_or(0);
        let requested = port["nodePort"].as_u64().unwrap_or(0);
        if requested == 0 {
            let free = || {
                let all = (0..size).map(|offset| PORTS.start() + (first + offset) % size);
                all.into_iter().find(|port| !taken.contains(port))
            };
            if let Some(free) = given.get(&number).copied().or_else(free) {
                port["nodePort"] = free.into();
                taken.insert(free);
                given.insert(number, free);
            }
            continue;
        }
        given.insert(number, requested);
        let field = format!("spec.ports[{index}].nodePort");
        if !PORTS.contains(&requested) {
            let why =
                "provided port is not in the valid range. The range of valid ports is 30000-32767";
            errors.push(FieldError::invalid(field, requested, why));
        } else if used.ports.contains(&requested) && !own.contains(&requested) {
            let why = "provided port is already allocated";
            errors.push(FieldError::invalid(field, requested, why));
        }
    }
}
