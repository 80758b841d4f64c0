//! Calls admission webhooks before an object is stored. They answer in process.

use std::ops::Deref as _;

use crate::admission::admission_review::Verdict;
use crate::admission::attributes::{Attributes, Operation};
use crate::admission::webhook::{Webhook, WebhookCall};
use crate::admission::{admission_review, match_conditions, policies, unexpected_response};
use crate::api::request_context::RequestContext;
use crate::apply::managed_object::ManagedObject;
use crate::state::cluster::Cluster;
use crate::state::webhook_handlers::WebhookReply;
use crate::types::object::meta;
use crate::types::status_error::StatusError;

const GROUP: &str = "admissionregistration.k8s.io";

/// Whether webhooks are called for this kind at all.
fn has_webhooks(cluster: &Cluster, context: &RequestContext<'_>, plural: &str) -> bool {
    // Webhooks are not called for webhook configurations.
    cluster.store.has_any(GROUP, plural) && context.kind.group != GROUP
}

fn webhooks(cluster: &Cluster, plural: &str) -> Vec<Webhook> {
    let kind = (GROUP.to_owned(), plural.to_owned());
    let configurations = cluster.store.collection(&kind).into_iter().flat_map(|one| &one.objects);
    configurations.flat_map(|(_, stored)| Webhook::all(&stored.object())).collect()
}

/// Calls the mutating webhooks and applies their patches to the object.
pub(crate) fn mutate(
    cluster: &mut Cluster,
    context: &RequestContext<'_>,
    operation: Operation,
    object: &mut ManagedObject,
    old: Option<&ManagedObject>,
) -> Result<(), StatusError> {
    if !has_webhooks(cluster, context, "mutatingwebhookconfigurations") {
        return Ok(());
    }
    let hooks = webhooks(cluster, "mutatingwebhookconfigurations");
    let old = old.map(ManagedObject::whole);
    let old = old.as_ref();
    // The webhooks that may be called again, and those that must.
    let (mut seen, mut again) = (Vec::new(), Vec::new());
    for round in 0..2 {
        for (index, hook) in hooks.iter().enumerate() {
            if round == 1 && !again.contains(&index) {
                continue;
            }
            let before = object.whole();
            let shown = (operation != Operation::Delete).then_some(&before);
            let attributes = Attributes { context, operation, object: shown, old };
            let changed = match call_webhook(cluster, hook, &attributes, true)? {
                None => continue,
                Some(Verdict { patch: None }) => false,
                Some(Verdict { patch: Some(_) }) if operation == Operation::Delete => {
                    let text = format!(
                        "admission webhook {:?} attempted to modify the object, which is not supported for this operation",
                        hook.name
                    );
                    return Err(StatusError::internal(&text));
                }
                Some(Verdict { patch: Some(patch) }) => {
                    let made = admission_review::patched(context, &before, &patch)?;
                    let changed = made != before;
                    *object = ManagedObject::new(made);
                    changed
                }
            };
            if changed {
                again.append(&mut seen);
            }
            if hook.reinvoked {
                seen.push(index);
            }
        }
        seen.clear();
    }
    Ok(())
}

/// Evaluates the policies, then calls the validating webhooks.
pub(crate) fn validate(
    cluster: &mut Cluster,
    context: &RequestContext<'_>,
    operation: Operation,
    object: Option<&ManagedObject>,
    old: Option<&ManagedObject>,
) -> Result<(), StatusError> {
    let has_webhooks = has_webhooks(cluster, context, "validatingwebhookconfigurations");
    if !has_webhooks && !policies::exist(cluster, context) {
        return Ok(());
    }
    let (object, old) = (object.map(ManagedObject::whole), old.map(ManagedObject::whole));
    let attributes = Attributes { context, operation, object: object.as_ref(), old: old.as_ref() };
    policies::validate(cluster, &attributes)?;
    if !has_webhooks {
        return Ok(());
    }
    // All are called, whatever the first one decides.
    let mut refused = None;
    for hook in webhooks(cluster, "validatingwebhookconfigurations") {
        if let Err(error) = call_webhook(cluster, &hook, &attributes, false) {
            refused.get_or_insert(error);
        }
    }
    refused.map_or(Ok(()), Err)
}

/// Calls one webhook, if it selects the request.
fn call_webhook(
    cluster: &mut Cluster,
    hook: &Webhook,
    attributes: &Attributes<'_>,
    mutating: bool,
) -> Result<Option<Verdict>, StatusError> {
    let namespace = attributes.namespace(cluster);
    let Some(WebhookCall { version }) =
        hook.call_for(attributes, namespace.as_deref().map(ManagedObject::deref))
    else {
        return Ok(None);
    };
    let uid = cluster.uid();
    let review = admission_review::request(attributes, &version, &uid);
    if !match_conditions::all_hold(hook, attributes.context, &review["request"])? {
        return Ok(None);
    }
    if attributes.context.query.dry_run() && !hook.dry {
        let text = format!("admission webhook {:?} does not support dry run", hook.name);
        return Err(StatusError::bad_request(text));
    }
    let answer = match cluster.handlers.call(&hook.url, hook.timeout_s, &review) {
        Some(WebhookReply::Review(answer)) => admission_review::read(&answer, &uid, mutating)
            .map_err(|why| format!("received invalid webhook response: {why}")),
        Some(WebhookReply::Error { code, body }) => {
            Err(format!("failed to call webhook: {}", unexpected_response::message(code, &body)))
        }
        Some(WebhookReply::Timeout) => Err(hook.unanswered("context deadline exceeded")),
        None => Err(hook.unanswered(&unreachable_reason(cluster, hook))),
    };
    match answer {
        Ok(answer) => {
            cluster.warned.extend(answer.warnings);
            match answer.denied {
                Some(status) => Err(admission_review::denial(&hook.name, &status)),
                None => Ok(Some(Verdict { patch: answer.patch })),
            }
        }
        Err(_) if hook.ignored => Ok(None),
        Err(why) => {
            let text = format!("failed calling webhook {:?}: {why}", hook.name);
            Err(StatusError::internal(&text))
        }
    }
}

/// Why a webhook cannot be reached.
fn unreachable_reason(cluster: &Cluster, hook: &Webhook) -> String {
    let Some((namespace, name)) = &hook.service else {
        let host = hook.url.trim_start_matches("https://").split('/').next();
        return format!("dial tcp {}: connect: connection refused", host.unwrap_or_default());
    };
    let kind = (String::new(), "services".to_owned());
    match cluster.object(&kind, &(namespace.clone(), name.clone())) {
        Some(service) => {
            format!("no endpoints available for service {:?}", meta(&service, "name"))
        }
        None => format!("service {name:?} not found"),
    }
}
