//! A policy that adds default resources and a default security context to the containers of Pods
//! and of templates of Pods, as the parameters of the Module say.
//!
//! It never changes what a user wrote, and adds nothing that Kubernetes would refuse next to it.
//! Ephemeral containers are left alone: they have no resources, and debug what is there.

mod member;
mod parameters;
mod quantity;
mod resources;
mod security_context;

use innkeeper_sdk::serde_json::Value;
use innkeeper_sdk::{
    Context, Describe, DescribePolicy, Manifest, Operation, RequestRule, Review, Reviewer, Verdict,
};
use pod_specs::PodSpecField;

pub use parameters::{Capabilities, Parameters, Resources, SeccompProfile, SecurityContext};
use security_context::PodContext;

/// The policy.
pub struct Policy;

impl Policy {
    fn decide(request: &Review<Value>) -> Result<Verdict, Verdict> {
        let parameters: Parameters = request.parameters()?;
        parameters.check()?;
        let Some(field) = changeable(request) else { return Ok(Verdict::allow()) };
        let mut object = request.raw()?;
        let is_changed = field.get_mut(&mut object).is_some_and(|spec| add(&parameters, spec));
        Ok(if is_changed { Verdict::change(object) } else { Verdict::allow() })
    }
}

/// Returns the field with the spec of the Pods, if the policy may change it in this request.
fn changeable(request: &Review<Value>) -> Option<PodSpecField> {
    let (object, kind) = (request.object()?, request.kind());
    let field = PodSpecField::of(kind)?;
    let is_deleted = !object["metadata"]["deletionTimestamp"].is_null();
    if is_deleted || !request.subresource().is_empty() {
        return None;
    }
    let is_pod = kind.kind == "Pod";
    // Its controller compares it with its own template; the Pods get the defaults.
    if !is_pod && is_controlled(object) {
        return None;
    }
    match request.old_object() {
        None => Some(field),
        // Kubernetes lets nobody change these.
        Some(_) if is_pod || kind.kind == "Job" => None,
        // An update of something else should roll out no new Pods.
        Some(old) => (field.get(old) != field.get(object)).then_some(field),
    }
}

fn is_controlled(object: &Value) -> bool {
    let owners = object["metadata"]["ownerReferences"].as_array();
    owners.into_iter().flatten().any(|owner| owner["controller"] == true)
}

/// Adds the defaults to the spec of a Pod. Returns whether it changed.
fn add(parameters: &Parameters, spec: &mut Value) -> bool {
    let Some(spec) = spec.as_object_mut() else { return false };
    let context = PodContext::of(spec);
    let with_resources = !Resources::are_of_pod(spec);
    let mut is_changed = false;
    for list in ["initContainers", "containers"] {
        let containers = spec.get_mut(list).and_then(Value::as_array_mut);
        for container in containers.into_iter().flatten().filter_map(Value::as_object_mut) {
            if with_resources {
                is_changed |= parameters.resources.add(container);
            }
            is_changed |= parameters.security_context.add(&context, container);
        }
    }
    is_changed
}

impl Reviewer for Policy {
    type Object = Value;

    fn describe() -> Manifest {
        let pods = RequestRule::of_resources("", ["pods"]).on([Operation::Create]);
        let policy = Describe::mutating_policy("pod-defaults", env!("CARGO_PKG_VERSION"));
        pod_specs::template_rules()
            .into_iter()
            .fold(policy.rule(pods), DescribePolicy::rule)
            // Another policy may add a container.
            .reinvoked()
            .parameters(Parameters::schema())
            .manifest()
    }

    fn review(_context: &Context, request: &Review<Value>) -> Verdict {
        Self::decide(request).unwrap_or_else(|failed| failed)
    }
}

innkeeper_sdk::export!(reviewer: Policy);
