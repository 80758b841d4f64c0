//! Which requests are affected by which fault.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::fault::Fault;
use crate::request_info::{RequestInfo, Verb};

/// Faults for the requests of a client. A request is affected by the first fault that selects it
/// and has not run out.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct FaultPlan {
    /// The faults.
    #[serde(default)]
    pub faults: Vec<PlannedFault>,
}

/// A fault, and the requests that it affects.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PlannedFault {
    /// Which requests it may affect.
    #[serde(default)]
    pub requests: RequestSelector,
    /// The first of them that it affects, counted from 1.
    #[serde(default = "one")]
    pub from: u32,
    /// How many of them it affects; 0 for all.
    #[serde(default = "one")]
    pub count: u32,
    /// What happens to them.
    pub fault: Fault,
}

fn one() -> u32 {
    1
}

impl PlannedFault {
    /// A fault of the nth write, counted from 1.
    pub fn at_write(nth: u32, fault: Fault) -> Self {
        Self { requests: RequestSelector::default(), from: nth, count: 1, fault }
    }

    /// A fault of all watches of a resource, such as `apps/deployments`.
    pub fn of_watches(resource: &str, fault: Fault) -> Self {
        let requests = RequestSelector {
            verbs: vec![Verb::Watch],
            resource: resource.to_owned(),
            ..RequestSelector::default()
        };
        Self { requests, from: 1, count: 0, fault }
    }

    /// Whether it is about a request. A fault of a watch is about watches only.
    pub(crate) fn selects(&self, request: &RequestInfo) -> bool {
        let is_of_watch = matches!(self.fault, Fault::Watch(_));
        let may_be = !is_of_watch || request.verb == Verb::Watch;
        may_be && self.requests.selects(request)
    }

    /// Whether it affects the nth of the requests that it selects.
    pub(crate) fn affects(&self, nth: u32) -> bool {
        let from = self.from.max(1);
        nth >= from && (self.count == 0 || nth - from < self.count)
    }
}

/// Requests of a client. An empty member selects all.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RequestSelector {
    /// The verbs; if there are none, all writes except those of Events, Leases and access reviews.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub verbs: Vec<Verb>,
    /// Group and plural, such as `apps/deployments` or `pods`; a subresource follows the plural, as
    /// in `apps/deployments/status`. Without one all subresources are selected, too.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub resource: String,
    /// The namespace.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// The name of the object.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// The impersonated user.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub user: String,
}

impl RequestSelector {
    /// Whether it selects a request.
    pub fn selects(&self, request: &RequestInfo) -> bool {
        let is_verb = if self.verbs.is_empty() {
            request.is_write()
        } else {
            self.verbs.contains(&request.verb)
        };
        let is = |wanted: &str, text: &str| wanted.is_empty() || wanted == text;
        is_verb
            && self.selects_resource(request)
            && is(&self.namespace, &request.namespace)
            && is(&self.name, &request.name)
            && is(&self.user, &request.user)
    }

    fn selects_resource(&self, request: &RequestInfo) -> bool {
        if self.resource.is_empty() {
            return true;
        }
        let whole = match request.group.as_str() {
            "" => request.resource.clone(),
            group => format!("{group}/{}", request.resource),
        };
        match self.resource.strip_prefix(whole.as_str()) {
            Some("") => true,
            Some(rest) => rest.strip_prefix('/') == Some(request.subresource.as_str()),
            None => false,
        }
    }
}

impl fmt::Display for PlannedFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { requests, from, count, fault } = self;
        match count {
            0 if *from == 1 => write!(f, "each {requests}: {fault}"),
            0 => write!(f, "each {requests} from number {from} on: {fault}"),
            1 => write!(f, "{requests} number {from}: {fault}"),
            _ => {
                let last = from.saturating_add(count - 1);
                write!(f, "{requests} number {from} to {last}: {fault}")
            }
        }
    }
}

impl fmt::Display for RequestSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.verbs.is_empty() {
            f.write_str("write")?;
        }
        for (index, verb) in self.verbs.iter().enumerate() {
            write!(f, "{}{verb}", if index > 0 { " or " } else { "" })?;
        }
        if !self.resource.is_empty() {
            write!(f, " of {}", self.resource)?;
        }
        match (self.namespace.as_str(), self.name.as_str()) {
            ("", "") => Ok(()),
            ("", name) => write!(f, " {name}"),
            (namespace, name) => write!(f, " {namespace}/{name}"),
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may fail by it")]
mod tests {
    use super::*;

    #[test]
    fn resource_with_and_without_subresource_is_selected() {
        let request = RequestInfo {
            verb: Verb::Patch,
            group: "apps".to_owned(),
            resource: "deployments".to_owned(),
            subresource: "status".to_owned(),
            namespace: "a".to_owned(),
            name: "web".to_owned(),
            user: String::new(),
            is_dry_run: false,
        };
        let selects = |resource: &str| {
            let resource = resource.to_owned();
            RequestSelector { resource, ..RequestSelector::default() }.selects(&request)
        };
        for resource in ["", "apps/deployments", "apps/deployments/status"] {
            assert!(selects(resource), "{resource}");
        }
        for resource in ["deployments", "apps/deployments/scale", "apps/deploymentsx", "apps"] {
            assert!(!selects(resource), "{resource}");
        }
    }

    #[test]
    fn plan_prints_as_it_was_read() {
        let text = r#"{"faults":[
            {"from":3,"fault":{"crash":{"point":"beforeAnswer"}}},
            {"requests":{"verbs":["watch"],"resource":"apps/deployments"},"count":0,
                "fault":{"watch":{"lag":{"events":2,"milliseconds":5000}}}},
            {"requests":{"resource":"apps/deployments","namespace":"a","name":"web"},"from":2,
                "fault":{"refuse":{"code":409}}}]}"#;
        let plan: FaultPlan = serde_json::from_str(text).unwrap();
        let lines: Vec<String> = plan.faults.iter().map(ToString::to_string).collect();
        assert_eq!(
            lines,
            [
                "write number 3: the client crashes after it, before the answer",
                "each watch of apps/deployments: it is 2 events behind, at most for 5000 ms",
                "write of apps/deployments a/web number 2: the API server answers 409 Conflict",
            ]
        );
        let again = serde_json::to_string(&plan).unwrap();
        assert_eq!(serde_json::from_str::<FaultPlan>(&again).unwrap(), plan);
    }
}
