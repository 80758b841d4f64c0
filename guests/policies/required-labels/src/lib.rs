//! A policy that denies objects without the labels that the parameters of the Module require.
//!
//! It ratchets: an update that leaves a wrong label as it was is allowed with a warning, so that
//! the policy does not stop the controllers of objects that are older than it. An object that is
//! being deleted is always allowed, since its finalizers must go.

use innkeeper_sdk::serde_json::json;
use innkeeper_sdk::{
    Context, Describe, Manifest, Metadata, RequestRule, Review, Reviewer, Verdict,
};
use serde::Deserialize;

/// What the policy reads of an object of any kind.
#[derive(Clone, Debug, Deserialize)]
pub struct AnyObject {
    /// Metadata.
    pub metadata: Metadata,
}

/// The parameters of the Module.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Parameters {
    /// The labels that objects need.
    pub labels: Vec<RequiredLabel>,
}

/// A label that objects need.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RequiredLabel {
    /// The label's name, for example `team` or `example.com/team`.
    pub name: String,
    /// Its allowed values; all if empty.
    #[serde(default)]
    pub values: Vec<String>,
    /// The kinds that need it, for example `Deployment`; all that the policy reviews if empty.
    #[serde(default)]
    pub kinds: Vec<String>,
}

impl RequiredLabel {
    /// Returns what is wrong with the label of an object, and what to do; `None` if it is right.
    fn fault(&self, metadata: &Metadata) -> Option<String> {
        let name = &self.name;
        let allowed = match self.values.as_slice() {
            [] => String::new(),
            [one] => format!(" with the value {one:?}"),
            values => format!(" with one of the values {}", list(values)),
        };
        match metadata.labels.get(name) {
            None => Some(format!("the label {name} is missing; add it{allowed}")),
            Some(value) if !self.values.is_empty() && !self.values.contains(value) => {
                Some(format!("the label {name} is {value:?}; set it{allowed}"))
            }
            Some(_) => None,
        }
    }

    fn is_for(&self, kind: &str) -> bool {
        self.kinds.is_empty() || self.kinds.iter().any(|one| one == kind)
    }
}

fn list(values: &[String]) -> String {
    values.iter().map(|value| format!("{value:?}")).collect::<Vec<_>>().join(", ")
}

/// The policy.
pub struct Policy;

impl Policy {
    fn decide(request: &Review<AnyObject>) -> Result<Verdict, Verdict> {
        let parameters: Parameters = request.parameters()?;
        let Some(object) = request.object() else { return Ok(Verdict::allow()) };
        if object.metadata.deletion_timestamp.is_some() {
            return Ok(Verdict::allow());
        }
        let mut verdict = Verdict::allow();
        let mut faults = Vec::new();
        for label in parameters.labels.iter().filter(|label| label.is_for(&request.kind().kind)) {
            let Some(fault) = label.fault(&object.metadata) else { continue };
            let is_old = request.old_object().is_some_and(|old| {
                old.metadata.labels.get(&label.name) == object.metadata.labels.get(&label.name)
            });
            if is_old {
                verdict = verdict.warn(fault);
            } else {
                faults.push((format!("metadata.labels[{}]", label.name), fault));
            }
        }
        if faults.is_empty() {
            return Ok(verdict);
        }
        let messages: Vec<&str> = faults.iter().map(|(_, fault)| fault.as_str()).collect();
        let denied = Verdict::invalid(messages.join("; "));
        Ok(faults.into_iter().fold(denied, |denied, (field, fault)| denied.cause(field, fault)))
    }
}

impl Reviewer for Policy {
    type Object = AnyObject;

    fn describe() -> Manifest {
        let texts =
            |limit: usize| json!({"type": "array", "maxItems": limit, "items": {"type": "string"}});
        Describe::validating_policy("required-labels", env!("CARGO_PKG_VERSION"))
            .rule(RequestRule::of_resources("", ["namespaces", "services"]))
            .rule(RequestRule::of_resources("apps", ["daemonsets", "deployments", "statefulsets"]))
            .rule(RequestRule::of_resources("batch", ["cronjobs", "jobs"]))
            .parameters(json!({
                "type": "object",
                "required": ["labels"],
                "additionalProperties": false,
                "properties": {
                    "labels": {
                        "type": "array",
                        "minItems": 1,
                        "maxItems": 32,
                        "items": {
                            "type": "object",
                            "required": ["name"],
                            "additionalProperties": false,
                            "properties": {
                                "name": {"type": "string", "minLength": 1, "maxLength": 317},
                                "values": texts(64),
                                "kinds": texts(32),
                            },
                        },
                    },
                },
            }))
            .manifest()
    }

    fn review(_context: &Context, request: &Review<AnyObject>) -> Verdict {
        Self::decide(request).unwrap_or_else(|failed| failed)
    }
}

innkeeper_sdk::export!(reviewer: Policy);
