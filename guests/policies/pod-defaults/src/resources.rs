use innkeeper_sdk::serde_json::{Map, Value};

use crate::member::{fill, written};
use crate::parameters::Resources;
use crate::quantity::Quantity;

impl Resources {
    /// Returns whether the spec of a Pod has resources of its own, which those of its containers
    /// must fit into. Such a Pod gets no defaults.
    pub(crate) fn are_of_pod(spec: &Map<String, Value>) -> bool {
        let members = ["requests", "limits"];
        members.iter().any(|member| written(spec, &["resources", member]).is_some())
    }

    /// Adds default resources to a container. Returns whether it changed.
    ///
    /// A request without a limit of the same resource gets a limit only if the limit is not below
    /// it. A limit without a request gets no request: Kubernetes takes the limit as the request.
    pub(crate) fn add(&self, container: &mut Map<String, Value>) -> bool {
        let has = |container: &Map<String, Value>, member: &str, name: &str| {
            written(container, &["resources", member, name]).is_some()
        };
        let free: Vec<(&String, &String)> = self
            .requests
            .iter()
            .filter(|(name, _)| {
                !has(container, "requests", name) && !has(container, "limits", name)
            })
            .collect();
        let mut is_changed = false;
        for (name, limit) in &self.limits {
            let request = written(container, &["resources", "requests", name]);
            let fits = request.is_none_or(|request| is_at_most(request, limit));
            if fits && !has(container, "limits", name) {
                is_changed |= fill(container, &["resources", "limits", name], limit.clone().into());
            }
        }
        for (name, request) in free {
            is_changed |= fill(container, &["resources", "requests", name], request.clone().into());
        }
        is_changed
    }
}

/// Whether a request is known to be at most a limit.
fn is_at_most(request: &Value, limit: &str) -> bool {
    // A file may have a number in place of the text.
    let request = request.as_str().map_or_else(|| request.to_string(), str::to_owned);
    match (Quantity::parse(&request), Quantity::parse(limit)) {
        (Some(request), Some(limit)) => request <= limit,
        _ => false,
    }
}
