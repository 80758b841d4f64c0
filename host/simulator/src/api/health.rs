//! Answers health checks: `/healthz`, `/livez`, `/readyz`, and their single checks.

use crate::api::http::query::Query;
use crate::api::request::Response;

/// The checks of a real server, in its order. The simulator has no parts that could fail.
const CHECKS: [&str; 31] = [
    "ping",
    "log",
    "etcd",
    "poststarthook/start-apiserver-admission-initializer",
    "poststarthook/generic-apiserver-start-informers",
    "poststarthook/priority-and-fairness-config-consumer",
    "poststarthook/priority-and-fairness-filter",
    "poststarthook/storage-object-count-tracker-hook",
    "poststarthook/start-apiextensions-informers",
    "poststarthook/start-apiextensions-controllers",
    "poststarthook/crd-informer-synced",
    "poststarthook/start-system-namespaces-controller",
    "poststarthook/start-cluster-authentication-info-controller",
    "poststarthook/start-kube-apiserver-identity-lease-controller",
    "poststarthook/start-kube-apiserver-identity-lease-garbage-collector",
    "poststarthook/start-legacy-token-tracking-controller",
    "poststarthook/start-service-ip-repair-controllers",
    "poststarthook/rbac/bootstrap-roles",
    "poststarthook/scheduling/bootstrap-system-priority-classes",
    "poststarthook/priority-and-fairness-config-producer",
    "poststarthook/bootstrap-controller",
    "poststarthook/start-kubernetes-service-cidr-controller",
    "poststarthook/start-kube-aggregator-informers",
    "poststarthook/apiservice-status-local-available-controller",
    "poststarthook/apiservice-status-remote-available-controller",
    "poststarthook/apiservice-registration-controller",
    "poststarthook/apiservice-discovery-controller",
    "poststarthook/kube-apiserver-autoregistration",
    "autoregister-completion",
    "poststarthook/apiservice-openapi-controller",
    "poststarthook/apiservice-openapiv3-controller",
];

/// Those that only `/readyz` has, after `etcd` and at the end.
const STORAGE_READY: &str = "etcd-readiness";
const INFORMERS_READY: &str = "informer-sync";
const SHUTDOWN: &str = "shutdown";

/// Answers a path of a health check; `None` for another path.
pub(crate) fn answer(path: &str, query: &Query) -> Option<Response> {
    let (endpoint, check) = path.strip_prefix('/')?.split_once('/').unwrap_or((&path[1..], ""));
    let checks = checks(endpoint)?;
    let ok = || Some(Response::Text { code: 200, body: "ok".to_owned() });
    if !check.is_empty() {
        return checks.contains(&check).then(ok)?;
    }
    if !query.has("verbose") {
        return ok();
    }
    let excluded: Vec<&str> = query.all("exclude").collect();
    let mut lines: Vec<String> = Vec::new();
    for check in &checks {
        let state = if excluded.contains(check) { "excluded: ok" } else { "ok" };
        lines.push(format!("[+]{check} {state}"));
    }
    let unknown = excluded.iter().filter(|name| !checks.contains(name));
    let unknown: Vec<String> = unknown.map(|name| format!("{name:?}")).collect();
    if !unknown.is_empty() {
        let unknown = unknown.join(",");
        lines
            .push(format!("warn: some health checks cannot be excluded: no matches for {unknown}"));
    }
    lines.push(format!("{endpoint} check passed\n"));
    Some(Response::Text { code: 200, body: lines.join("\n") })
}

/// The checks of an endpoint.
fn checks(endpoint: &str) -> Option<Vec<&'static str>> {
    let mut checks = CHECKS.to_vec();
    match endpoint {
        "healthz" | "livez" => {}
        "readyz" => {
            let after = checks.iter().position(|check| *check == "etcd").map_or(0, |at| at + 1);
            checks.splice(after..after, [STORAGE_READY, INFORMERS_READY]);
            checks.push(SHUTDOWN);
        }
        _ => return None,
    }
    Some(checks)
}
