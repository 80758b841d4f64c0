//! Admission webhooks: programs that are asked before something is stored, here in process.

mod condition;
mod hook;
mod review;

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Deref as _;
use std::sync::Arc;

use serde_json::Value;

use self::hook::{Hook, Wanted};
use self::review::Verdict;
use crate::cluster::Cluster;
use crate::object::meta;
use crate::server::Ask;
use crate::status_error::StatusError;
use crate::tracked::Tracked;

/// Answers an `AdmissionReview` by one, or not at all.
pub(crate) type Handler = Box<dyn FnMut(&Value) -> Option<Value> + Send>;

/// Who answers where.
#[derive(Default)]
pub(crate) struct Handlers(BTreeMap<String, Handler>);

impl fmt::Debug for Handlers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

impl Handlers {
    /// From here on this one answers at the URL.
    pub(crate) fn set(&mut self, url: &str, handler: Handler) {
        self.0.insert(url.trim_end_matches('/').to_owned(), handler);
    }

    /// Asks who is there.
    fn call(&mut self, url: &str, review: &Value) -> Reached {
        match self.0.get_mut(url.trim_end_matches('/')).map(|handler| handler(review)) {
            Some(Some(answer)) => Reached::Answer(answer),
            Some(None) => Reached::Silence,
            None => Reached::Nobody,
        }
    }
}

/// Whom a call has reached.
enum Reached {
    Answer(Value),
    Silence,
    Nobody,
}

/// What is about to happen to an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    Create,
    Update,
    Delete,
}

impl Operation {
    /// As reviews say it.
    fn text(self) -> &'static str {
        match self {
            Self::Create => "CREATE",
            Self::Update => "UPDATE",
            Self::Delete => "DELETE",
        }
    }

    /// The kind of a request's options.
    fn options(self) -> &'static str {
        match self {
            Self::Create => "CreateOptions",
            Self::Update => "UpdateOptions",
            Self::Delete => "DeleteOptions",
        }
    }
}

/// A request as webhooks are asked about it.
pub(crate) struct Attributes<'a> {
    ask: &'a Ask<'a>,
    operation: Operation,
    object: Option<&'a Value>,
    old: Option<&'a Value>,
}

impl Attributes<'_> {
    /// Group and plural of what is written to: a scale is of another kind than its object.
    fn resource(&self) -> (&str, &str) {
        let Ask { kind, target, .. } = self.ask;
        if kind.plural.is_empty() {
            (&target.group, &target.resource)
        } else {
            (&kind.group, &kind.plural)
        }
    }

    /// The version in which it is.
    fn version(&self) -> &str {
        let Ask { kind, target, .. } = self.ask;
        if kind.plural.is_empty() { &target.version } else { &kind.version }
    }
}

const GROUP: &str = "admissionregistration.k8s.io";

impl Cluster {
    /// Whether webhooks are to be asked at all.
    fn has_hooks(&self, ask: &Ask<'_>, plural: &str) -> bool {
        // What says who is asked nobody is asked about.
        self.store.has_any(GROUP, plural) && ask.kind.group != GROUP
    }

    fn hooks(&self, plural: &str) -> Vec<Hook> {
        let kind = (GROUP.to_owned(), plural.to_owned());
        let configurations = self.store.collection(&kind).into_iter().flat_map(|one| &one.objects);
        configurations.flat_map(|(_, stored)| Hook::all(&stored.object())).collect()
    }

    /// Asks those who may change an object. What they make of it is in it afterwards.
    pub(crate) fn mutate(
        &mut self,
        ask: &Ask<'_>,
        operation: Operation,
        object: &mut Tracked,
        old: Option<&Tracked>,
    ) -> Result<(), StatusError> {
        if !self.has_hooks(ask, "mutatingwebhookconfigurations") {
            return Ok(());
        }
        let hooks = self.hooks("mutatingwebhookconfigurations");
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
                let changed = match self.ask_hook(hook, &attributes, true)? {
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
                        let made = review::patched(ask, &before, &patch)?;
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
    pub(crate) fn confirm(
        &mut self,
        ask: &Ask<'_>,
        operation: Operation,
        object: Option<&Tracked>,
        old: Option<&Tracked>,
    ) -> Result<(), StatusError> {
        if !self.has_hooks(ask, "validatingwebhookconfigurations") {
            return Ok(());
        }
        let (object, old) = (object.map(Tracked::whole), old.map(Tracked::whole));
        let attributes = Attributes { ask, operation, object: object.as_ref(), old: old.as_ref() };
        // All are asked, whatever the first says.
        let mut refused = None;
        for hook in self.hooks("validatingwebhookconfigurations") {
            if let Err(error) = self.ask_hook(&hook, &attributes, false) {
                refused.get_or_insert(error);
            }
        }
        refused.map_or(Ok(()), Err)
    }

    /// Asks one, if it wants to be asked.
    fn ask_hook(
        &mut self,
        hook: &Hook,
        attributes: &Attributes<'_>,
        mutating: bool,
    ) -> Result<Option<Verdict>, StatusError> {
        let namespace = self.namespace_labels(attributes);
        let Some(Wanted { version }) =
            hook.wants(attributes, namespace.as_deref().map(Tracked::deref))
        else {
            return Ok(None);
        };
        let uid = self.uid();
        let review = review::request(attributes, &version, &uid);
        if !condition::all_hold(hook, attributes.ask, &review["request"])? {
            return Ok(None);
        }
        if attributes.ask.query.dry_run() && !hook.dry {
            let text = format!("admission webhook {:?} does not support dry run", hook.name);
            return Err(StatusError::bad_request(text));
        }
        let answer = match self.handlers.call(&hook.url, &review) {
            Reached::Answer(answer) => review::read(&answer, &uid, mutating)
                .map_err(|why| format!("received invalid webhook response: {why}")),
            Reached::Silence => Err(hook.unanswered("context deadline exceeded")),
            Reached::Nobody => Err(hook.unanswered(&self.nobody(hook))),
        };
        match answer {
            Ok(answer) => {
                self.warned.extend(answer.warnings);
                match answer.denied {
                    Some(status) => Err(review::denial(&hook.name, &status)),
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
    fn namespace_labels(&self, attributes: &Attributes<'_>) -> Option<Arc<Tracked>> {
        let ask = attributes.ask;
        if ask.kind.is("", "Namespace") {
            return attributes.object.or(attributes.old).cloned().map(Tracked::new).map(Arc::new);
        }
        let name = ask.namespace();
        if name.is_empty() {
            return None;
        }
        let kind = (String::new(), "namespaces".to_owned());
        self.object(&kind, &(String::new(), name.to_owned()))
    }

    /// Why nobody is where a webhook should be.
    fn nobody(&self, hook: &Hook) -> String {
        let Some((namespace, name)) = &hook.service else {
            let host = hook.url.trim_start_matches("https://").split('/').next();
            return format!("dial tcp {}: connect: connection refused", host.unwrap_or_default());
        };
        let kind = (String::new(), "services".to_owned());
        match self.object(&kind, &(namespace.clone(), name.clone())) {
            Some(service) => {
                format!("no endpoints available for service {:?}", meta(&service, "name"))
            }
            None => format!("service {name:?} not found"),
        }
    }
}
