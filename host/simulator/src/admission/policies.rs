//! Evaluates ValidatingAdmissionPolicies: the validations of each policy, for each binding that
//! selects the request, with each of its parameters.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::admission::admission_review;
use crate::admission::attributes::Attributes;
use crate::admission::policy_scope::PolicyScope;
use crate::admission::webhook::Webhook;
use crate::api::request_context::RequestContext;
use crate::apply::managed_object::ManagedObject;
use crate::state::cluster::Cluster;
use crate::types::crd::conversion;
use crate::types::object::meta;
use crate::types::selector::Selector;
use crate::types::status_error::StatusError;

const GROUP: &str = "admissionregistration.k8s.io";
const POLICIES: &str = "validatingadmissionpolicies";
const BINDINGS: &str = "validatingadmissionpolicybindings";

/// A refusal: its message, and its reason if the validation gives one.
struct Denial {
    message: String,
    reason: String,
}

/// Whether there are policies for this kind at all.
pub(crate) fn exist(cluster: &Cluster, context: &RequestContext<'_>) -> bool {
    // Policies are not evaluated for policies.
    cluster.store.has_any(GROUP, BINDINGS) && context.kind.group != GROUP
}

/// Evaluates all policies that select the request.
///
/// # Errors
/// The first denial.
pub(crate) fn validate(
    cluster: &mut Cluster,
    attributes: &Attributes<'_>,
) -> Result<(), StatusError> {
    if !exist(cluster, attributes.context) {
        return Ok(());
    }
    let namespace = attributes.namespace(cluster);
    let namespace: Option<&Value> = namespace.as_ref().map(|one| &***one);
    let selects = |resources: &Value| selects(resources, attributes, namespace);
    let review = admission_review::request(attributes, attributes.version(), "");
    let (policies, bindings) = (all(cluster, POLICIES), all(cluster, BINDINGS));
    let mut denials = Vec::new();
    for policy in policies.iter().filter(|one| selects(&one["spec"]["matchConstraints"])) {
        let name = meta(policy, "name");
        for binding in bindings.iter().filter(|one| one["spec"]["policyName"] == name) {
            let resources = &binding["spec"]["matchResources"];
            if resources.is_object() && !selects(resources) {
                continue;
            }
            let found = match params(cluster, attributes, policy, binding) {
                Ok(found) => found,
                Err(_) if policy["spec"]["failurePolicy"] == "Ignore" => continue,
                Err(why) => {
                    let message = format!("failed to configure binding: {why}");
                    denials.push(denial(policy, binding, &message, ""));
                    continue;
                }
            };
            for params in found {
                let scope = PolicyScope::new(&review["request"], namespace, &params);
                for Denial { message, reason } in evaluate(policy, &scope) {
                    let actions = binding["spec"]["validationActions"].as_array();
                    for action in actions.into_iter().flatten() {
                        if action == "Deny" {
                            denials.push(denial(policy, binding, &message, &reason));
                        } else if action == "Warn" {
                            let warning = format!(
                                "Validation failed for ValidatingAdmissionPolicy '{name}' with binding '{}': {message}",
                                meta(binding, "name")
                            );
                            cluster.warned.push(warning);
                        }
                    }
                }
            }
        }
    }
    let Some((message, reason)) = denials.into_iter().next() else { return Ok(()) };
    let (code, reason) = match reason.as_str() {
        "Forbidden" => (403, "Forbidden"),
        "Unauthorized" => (401, "Unauthorized"),
        "RequestEntityTooLarge" => (413, "RequestEntityTooLarge"),
        _ => (422, "Invalid"),
    };
    let name = review["request"]["name"].as_str().unwrap_or_default();
    let named = attributes.context.named(name);
    Err(StatusError::denied_by_policy(named, &message, code, reason))
}

/// The objects of a kind, in the order of their names.
fn all(cluster: &Cluster, plural: &str) -> Vec<Arc<ManagedObject>> {
    let kind = (GROUP.to_owned(), plural.to_owned());
    let stored = cluster.store.collection(&kind).into_iter().flat_map(|one| &one.objects);
    stored.map(|(_, stored)| stored.object()).collect()
}

/// Whether the rules and selectors of a policy or a binding select the request.
fn selects(resources: &Value, attributes: &Attributes<'_>, namespace: Option<&Value>) -> bool {
    let name = attributes.object.or(attributes.old).map_or("", |one| meta(one, "name"));
    let rules = |member: &str| {
        let rules = resources[member].as_array().into_iter().flatten().filter(|rule| {
            let names = rule["resourceNames"].as_array().filter(|names| !names.is_empty());
            names.is_none_or(|names| names.iter().any(|one| one == name))
        });
        rules.cloned().collect::<Value>()
    };
    let hook = |rules: Value| {
        let hook = json!({
            "rules": rules, "matchPolicy": resources["matchPolicy"],
            "namespaceSelector": resources["namespaceSelector"],
            "objectSelector": resources["objectSelector"],
        });
        Webhook::all(&json!({ "webhooks": [hook] })).pop()
    };
    let wants = |rules: Value| {
        hook(rules).is_some_and(|hook| hook.call_for(attributes, namespace).is_some())
    };
    // A binding without rules selects what its policy selects.
    let everything = json!([{"operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"],
        "resources": ["*", "*/*"], "scope": "*"}]);
    let given = resources["resourceRules"].as_array().is_some_and(|rules| !rules.is_empty());
    wants(if given { rules("resourceRules") } else { everything })
        && !wants(rules("excludeResourceRules"))
}

/// The parameters of a binding; one Null if it has none.
fn params(
    cluster: &Cluster,
    attributes: &Attributes<'_>,
    policy: &Value,
    binding: &Value,
) -> Result<Vec<Value>, String> {
    let (kind, reference) = (&policy["spec"]["paramKind"], &binding["spec"]["paramRef"]);
    if !kind.is_object() || !reference.is_object() {
        return Ok(vec![Value::Null]);
    }
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let api_version = text(&kind["apiVersion"]);
    let (group, version) = api_version.split_once('/').unwrap_or(("", &api_version));
    let served = cluster.catalog.all().find(|one| {
        one.group == group && one.version == version && kind["kind"] == one.name.as_str()
    });
    let Some(served) = served else {
        return Err(format!(
            "failed to find resource referenced by paramKind: '{api_version}, Kind={}'",
            text(&kind["kind"])
        ));
    };
    let mut namespace = String::new();
    if served.namespaced {
        namespace = match text(&reference["namespace"]) {
            own if own.is_empty() => attributes.context.namespace().to_owned(),
            own => own,
        };
        if namespace.is_empty() {
            return Err("cannot use namespaced paramRef in policy binding that matches cluster-scoped resources".to_owned());
        }
    }
    let name = text(&reference["name"]);
    let selector = Selector::of(&reference["selector"]);
    let stored = cluster.store.collection(&served.key).into_iter().flat_map(|one| &one.objects);
    let mut found = Vec::new();
    for (_, stored) in stored.filter(|(key, _)| key.0 == namespace) {
        let mut object = stored.object().whole();
        if (name.is_empty() && selector.fits(&object)) || meta(&object, "name") == name {
            conversion::convert(served, &mut object);
            found.push(object);
        }
    }
    if found.is_empty() && reference["parameterNotFoundAction"] != "Allow" {
        return Err(
            "no params found for policy binding with `Deny` parameterNotFoundAction".to_owned()
        );
    }
    Ok(found)
}

/// The validations of a policy that do not hold; none if its match conditions do not select the
/// request.
fn evaluate(policy: &Value, scope: &PolicyScope<'_>) -> Vec<Denial> {
    let spec = &policy["spec"];
    let ignores = spec["failurePolicy"] == "Ignore";
    let of = |why: String| Denial { message: why, reason: String::new() };
    let list = |member: &str| spec[member].as_array().into_iter().flatten();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let mut failures = Vec::new();
    for condition in list("matchConditions") {
        match scope.holds(&text(&condition["expression"])) {
            Ok(true) => {}
            // A false one decides, even if others cannot be evaluated.
            Ok(false) => return Vec::new(),
            Err(why) => failures.push(why),
        }
    }
    match failures.as_slice() {
        [] => {}
        _ if ignores => return Vec::new(),
        [one] => return vec![of(one.clone())],
        many => return vec![of(format!("[{}]", many.join(", ")))],
    }
    let scope = scope.with_variables(list("variables"));
    let mut denials = Vec::new();
    for validation in list("validations") {
        let expression = text(&validation["expression"]);
        match scope.holds(&expression) {
            Ok(true) => {}
            Ok(false) => {
                let message = scope.message(&text(&validation["messageExpression"]));
                let message =
                    message.unwrap_or_else(|| match text(&validation["message"]).trim() {
                        "" => format!("failed expression: {}", expression.trim()),
                        message => message.to_owned(),
                    });
                denials.push(Denial { message, reason: text(&validation["reason"]) });
            }
            Err(_) if ignores => {}
            Err(why) => denials.push(of(why)),
        }
    }
    denials
}

/// The message of a denial, and its reason.
fn denial(policy: &Value, binding: &Value, message: &str, reason: &str) -> (String, String) {
    let message = format!(
        "ValidatingAdmissionPolicy '{}' with binding '{}' denied request: {message}",
        meta(policy, "name"),
        meta(binding, "name")
    );
    (message, reason.to_owned())
}
