//! Subresources that connect to a container: log, exec, attach, port-forward, proxy.

use serde_json::Value;

use crate::api::request::Response;
use crate::api::request_context::not_allowed;
use crate::api::request_context::{Outcome, RequestContext, present};
use crate::auth::token;
use crate::state::cluster::Cluster;
use crate::types::status_error::StatusError;

/// The containers of a Pod, init containers included.
fn containers(pod: &Value) -> Vec<&str> {
    ["initContainers", "containers", "ephemeralContainers"]
        .into_iter()
        .flat_map(|list| pod["spec"][list].as_array().into_iter().flatten())
        .filter_map(|container| container["name"].as_str())
        .collect()
}

/// Answers for the containers that do not run: logs are empty, and connections fail.
pub(crate) fn connect(cluster: &mut Cluster, context: &RequestContext<'_>) -> Outcome {
    let (sub, name) = (context.target.subresource.as_str(), context.target.name.as_str());
    if sub == "token" {
        return token::create_token(cluster, context);
    }
    if !matches!(sub, "log" | "exec" | "attach" | "portforward" | "proxy") {
        return Err(not_allowed());
    }
    let Some(object) = present(cluster, context) else {
        return Err(StatusError::not_found(context.named(name)));
    };
    let node = object["spec"]["nodeName"].as_str().unwrap_or_default();
    if context.kind.is("", "Pod") && sub != "proxy" && sub != "portforward" {
        let (all, wanted) = (containers(&object), context.query.get("container"));
        let many = object["spec"]["containers"].as_array().is_some_and(|list| list.len() > 1);
        let default = &object["metadata"]["annotations"]["kubectl.kubernetes.io/default-container"];
        if wanted.is_empty() && many && (sub == "log" || default.is_null()) {
            let own = object["spec"]["containers"].as_array().into_iter().flatten();
            let own: Vec<&str> = own.filter_map(|one| one["name"].as_str()).collect();
            return Err(StatusError::bad_request(format!(
                "a container name must be specified for pod {name}, choose one of: [{}]",
                own.join(" ")
            )));
        }
        if !wanted.is_empty() && !all.contains(&wanted) {
            let message = format!("container {wanted} is not valid for pod {name}");
            return Err(StatusError::bad_request(message));
        }
    }
    if sub == "log" {
        return Ok(Response::Text { code: 204, body: String::new() });
    }
    if context.kind.is("", "Pod") && sub != "proxy" && node.is_empty() {
        let message = format!("pod {name} does not have a host assigned");
        return Err(StatusError::bad_request(message));
    }
    let message = format!("nothing runs in a simulated cluster that {sub} could reach");
    Err(StatusError::new(503, "ServiceUnavailable", message))
}
