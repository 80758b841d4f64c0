//! Services, Ingresses and endpoints in tables.

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::api::table::age::since;
use crate::api::table::parts::{
    at, each, items, labels, number, or_none, selector, text, text_or, with_more,
};

/// How many ports, hosts and addresses are shown.
const MOST: usize = 3;

/// The cells of a Service, or of a kind of `networking.k8s.io` or `discovery.k8s.io`.
pub(crate) fn cells(kind: &str, object: &Value, now: Timestamp) -> Option<Vec<Value>> {
    let name = text(object, "metadata/name");
    let age = since(at(object, "metadata/creationTimestamp"), now);
    let cells = match kind {
        "Service" => {
            let own = items(object, "spec/clusterIPs").first().and_then(Value::as_str);
            let kind = text(object, "spec/type");
            let chosen = labels(at(object, "spec/selector"));
            json!([
                name,
                kind,
                own.unwrap_or("<none>"),
                outside(object),
                ports(object),
                age,
                chosen
            ])
        }
        "Endpoints" => json!([name, endpoints(object), age]),
        "EndpointSlice" => {
            let ports: Vec<String> = items(object, "ports").iter().map(slice_port).collect();
            let addresses =
                items(object, "endpoints").iter().flat_map(|one| items(one, "addresses"));
            let addresses: Vec<String> =
                addresses.filter_map(Value::as_str).map(str::to_owned).collect();
            let shown = |list: &[String]| match list {
                [] => "<unset>".to_owned(),
                list => with_more(list, MOST),
            };
            json!([name, text(object, "addressType"), shown(&ports), shown(&addresses), age])
        }
        "Ingress" => {
            let class = text_or(object, "spec/ingressClassName", "<none>");
            let ports = if items(object, "spec/tls").is_empty() { "80" } else { "80, 443" };
            json!([name, class, hosts(object), balancers(object).join(","), ports, age])
        }
        "IngressClass" => {
            let parameters = at(object, "spec/parameters");
            let parameters_text = match (text(parameters, "kind"), text(parameters, "apiGroup")) {
                ("", _) => "<none>".to_owned(),
                (kind, "") => format!("{kind}/{}", text(parameters, "name")),
                (kind, group) => format!("{kind}.{group}/{}", text(parameters, "name")),
            };
            json!([name, text(object, "spec/controller"), parameters_text, age])
        }
        "NetworkPolicy" => json!([name, or_none(selector(at(object, "spec/podSelector"))), age]),
        "ServiceCIDR" => {
            let ranges: Vec<&str> =
                items(object, "spec/cidrs").iter().filter_map(Value::as_str).collect();
            json!([name, ranges.join(","), age])
        }
        "IPAddress" => json!([name, parent(at(object, "spec/parentRef")), age]),
        _ => return None,
    };
    cells.as_array().cloned()
}

/// The addresses that a load balancer assigned.
fn balancers(object: &Value) -> Vec<&str> {
    let given = items(object, "status/loadBalancer/ingress").iter();
    let given: BTreeSet<&str> = given
        .map(|one| text_or(one, "ip", text(one, "hostname")))
        .filter(|one| !one.is_empty())
        .collect();
    given.into_iter().collect()
}

/// The external addresses of a Service.
fn outside(service: &Value) -> String {
    let own = items(service, "spec/externalIPs").iter().filter_map(Value::as_str);
    match text(service, "spec/type") {
        "ClusterIP" | "NodePort" => or_none(own.collect::<Vec<_>>().join(",")),
        "LoadBalancer" => {
            let all: Vec<&str> = balancers(service).into_iter().chain(own).collect();
            if all.is_empty() { "<pending>".to_owned() } else { all.join(",") }
        }
        "ExternalName" => text(service, "spec/externalName").to_owned(),
        _ => "<unknown>".to_owned(),
    }
}

fn ports(service: &Value) -> String {
    let ports = items(service, "spec/ports").iter().map(|port| {
        let (number, protocol) = (number(port, "port"), text(port, "protocol"));
        match port["nodePort"].as_i64() {
            Some(node @ 1..) => format!("{number}:{node}/{protocol}"),
            _ => format!("{number}/{protocol}"),
        }
    });
    or_none(ports.collect::<Vec<_>>().join(","))
}

fn endpoints(object: &Value) -> String {
    let subsets = items(object, "subsets");
    if subsets.is_empty() {
        return "<none>".to_owned();
    }
    let mut all = Vec::new();
    for subset in subsets {
        let addresses = each(items(subset, "addresses"), "ip");
        let ports = items(subset, "ports");
        if ports.is_empty() {
            all.extend(addresses.into_iter().map(str::to_owned));
            continue;
        }
        for port in ports.iter().map(|port| number(port, "port")) {
            all.extend(addresses.iter().map(|address| {
                if address.contains(':') {
                    format!("[{address}]:{port}")
                } else {
                    format!("{address}:{port}")
                }
            }));
        }
    }
    with_more(&all, MOST)
}

fn slice_port(port: &Value) -> String {
    match (port["port"].as_i64(), text(port, "name")) {
        (Some(number), _) => number.to_string(),
        (None, _) if !port["name"].is_string() => "*".to_owned(),
        (None, name) => name.to_owned(),
    }
}

fn hosts(ingress: &Value) -> String {
    let rules = items(ingress, "spec/rules");
    let (mut list, mut more) = (Vec::new(), false);
    for host in each(rules, "host") {
        more = more || list.len() == MOST;
        if !more && !host.is_empty() {
            list.push(host);
        }
    }
    match (list.is_empty(), more) {
        (true, _) => "*".to_owned(),
        (false, false) => list.join(","),
        (false, true) => format!("{} + {} more...", list.join(","), rules.len() - MOST),
    }
}

fn parent(reference: &Value) -> String {
    if reference.is_null() {
        return "<none>".to_owned();
    }
    let part = |name: &str| text(reference, name);
    let mut text_of_group = match part("group") {
        "" => part("resource").to_lowercase(),
        group => format!("{}.{group}", part("resource")).to_lowercase(),
    };
    for name in ["namespace", "name"] {
        if !part(name).is_empty() {
            text_of_group = format!("{text_of_group}/{}", part(name));
        }
    }
    text_of_group
}
