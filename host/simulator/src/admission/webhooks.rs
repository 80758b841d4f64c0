//! Admission webhooks: programs that are asked before something is stored, here in process.

use std::ops::Deref as _;
use std::sync::Arc;

use crate::admission::admission_review::Verdict;
use crate::admission::attributes::{Attributes, Operation};
use crate::admission::webhook::{Hook, Wanted};
use crate::admission::{admission_review, match_conditions};
use crate::api::request_context::Ask;
use crate::state::cluster::Cluster;
use crate::state::managed_object::Tracked;
use crate::state::webhook_handlers::Reached;
use crate::types::object::meta;
use crate::types::status_error::StatusError;

const GROUP: &str = "admissionregistration.k8s.io";

/// Whether webhooks are to be asked at all.
fn has_webhooks(cluster: &Cluster, ask: &Ask<'_>, plural: &str) -> bool {
    // What says who is asked nobody is asked about.
    cluster.store.has_any(GROUP, plural) && ask.kind.group != GROUP
}

fn webhooks(cluster: &Cluster, plural: &str) -> Vec<Hook> {
    let kind = (GROUP.to_owned(), plural.to_owned());
    let configurations = cluster.store.collection(&kind).into_iter().flat_map(|one| &one.objects);
    configurations.flat_map(|(_, stored)| Hook::all(&stored.object())).collect()
}

/// Asks those who may change an object. What they make of it is in it afterwards.
pub(crate) fn mutate(
    cluster: &mut Cluster,
    ask: &Ask<'_>,
    operation: Operation,
    object: &mut Tracked,
    old: Option<&Tracked>,
) -> Result<(), StatusError> {
    if !has_webhooks(cluster, ask, "mutatingwebhookconfigurations") {
        return Ok(());
    }
    let hooks = webhooks(cluster, "mutatingwebhookconfigurations");
    let old = old.map(Tracked::whole);
    let old = old.as_ref();
    // Those who want to see what later ones change, and those who shall.
    let (mut seen, mut again) = (Vec::new(), Vec::new());
    for round in 0..2 {
        for (index, hook) in hooks.iter().enumerate() {
            if round == 1 && !again.contains(&index) {
                continue;
            }
            let before = object.whole();
            let shown = (operation != Operation::Delete).then_some(&before);
            let attributes = Attributes { ask, operation, object: shown, old };
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
                    let made = admission_review::patched(ask, &before, &patch)?;
                    let changed = made != before;
                    *object = Tracked::new(made);
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

/// Asks those who may refuse what is about to happen.
pub(crate) fn validate(
    cluster: &mut Cluster,
    ask: &Ask<'_>,
    operation: Operation,
    object: Option<&Tracked>,
    old: Option<&Tracked>,
) -> Result<(), StatusError> {
    if !has_webhooks(cluster, ask, "validatingwebhookconfigurations") {
        return Ok(());
    }
    let (object, old) = (object.map(Tracked::whole), old.map(Tracked::whole));
    let attributes = Attributes { ask, operation, object: object.as_ref(), old: old.as_ref() };
    // All are asked, whatever the first says.
    let mut refused = None;
    for hook in webhooks(cluster, "validatingwebhookconfigurations") {
        if let Err(error) = call_webhook(cluster, &hook, &attributes, false) {
            refused.get_or_insert(error);
        }
    }
    refused.map_or(Ok(()), Err)
}

/// Asks one, if it wants to be asked.
fn call_webhook(
    cluster: &mut Cluster,
    hook: &Hook,
    attributes: &Attributes<'_>,
    mutating: bool,
) -> Result<Option<Verdict>, StatusError> {
    let namespace = namespace_labels(cluster, attributes);
    let Some(Wanted { version }) = hook.wants(attributes, namespace.as_deref().map(Tracked::deref))
    else {
        return Ok(None);
    };
    let uid = cluster.uid();
    let review = admission_review::request(attributes, &version, &uid);
    if !match_conditions::all_hold(hook, attributes.ask, &review["request"])? {
        return Ok(None);
    }
    if attributes.ask.query.dry_run() && !hook.dry {
        let text = format!("admission webhook {:?} does not support dry run", hook.name);
        return Err(StatusError::bad_request(text));
    }
    let answer = match cluster.handlers.call(&hook.url, &review) {
        Reached::Answer(answer) => admission_review::read(&answer, &uid, mutating)
            .map_err(|why| format!("received invalid webhook response: {why}")),
        Reached::Silence => Err(hook.unanswered("context deadline exceeded")),
        Reached::Nobody => Err(hook.unanswered(&unreachable_reason(cluster, hook))),
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

/// The namespace as webhooks select it, if the object is in one or is one.
fn namespace_labels(cluster: &Cluster, attributes: &Attributes<'_>) -> Option<Arc<Tracked>> {
    let ask = attributes.ask;
    if ask.kind.is("", "Namespace") {
        return attributes.object.or(attributes.old).cloned().map(Tracked::new).map(Arc::new);
    }
    let name = ask.namespace();
    if name.is_empty() {
        return None;
    }
    let kind = (String::new(), "namespaces".to_owned());
    cluster.object(&kind, &(String::new(), name.to_owned()))
}

/// Why nobody is where a webhook should be.
fn unreachable_reason(cluster: &Cluster, hook: &Hook) -> String {
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
