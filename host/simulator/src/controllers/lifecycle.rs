//! Namespaces, definitions, and the time that Pods are given to end.

use std::sync::Arc;

use serde_json::{Value, json};

use super::workload::Workload;
use crate::cluster::Cluster;
use crate::object::{finalizers, is_terminating, meta};
use crate::server::Ask;
use crate::status_error::{Named, StatusError};
use crate::store::{Key, KindKey};
use crate::tracked::Tracked;

fn namespaces() -> KindKey {
    (String::new(), "namespaces".to_owned())
}

impl Cluster {
    /// Whether something may be created in a namespace.
    pub(crate) fn check_lifecycle(&self, ask: &Ask<'_>, object: &Value) -> Result<(), StatusError> {
        Self::check_definition(ask, meta(object, "name"))?;
        let name = ask.namespace();
        if name.is_empty() {
            return Ok(());
        }
        let key = (String::new(), name.to_owned());
        if self.store.get(&namespaces(), &key).is_none() {
            return Err(StatusError::not_found(Named { group: "", what: "namespaces", name }));
        }
        if !self.following.terminating.contains(name) {
            return Ok(());
        }
        let named = ask.named(meta(object, "name"));
        let resource = match named.group {
            "" => named.what.to_owned(),
            group => format!("{}.{group}", named.what),
        };
        let message = format!(
            "{resource} {:?} is forbidden: unable to create new content in namespace {name} because it is being terminated",
            named.name
        );
        let mut details = json!({
            "name": named.name,
            "kind": named.what,
            "causes": [{
                "reason": "NamespaceTerminating",
                "message": format!("namespace {name} is being terminated"),
                "field": "metadata.namespace",
            }],
        });
        if !named.group.is_empty() {
            details["group"] = named.group.into();
        }
        Err(StatusError::new(403, "Forbidden", message).details(details))
    }

    /// Whether the account that a new Pod names is there. `default` is taken to be: it comes with time.
    pub(crate) fn check_account(&self, ask: &Ask<'_>, object: &Value) -> Result<(), StatusError> {
        let spec = &object["spec"];
        let text = |name: &str| spec[name].as_str().unwrap_or_default();
        let account = match text("serviceAccountName") {
            "" => text("serviceAccount"),
            account => account,
        };
        if !ask.kind.is("", "Pod") || matches!(account, "" | "default") {
            return Ok(());
        }
        let accounts = (String::new(), "serviceaccounts".to_owned());
        if self.object(&accounts, &(ask.namespace().to_owned(), account.to_owned())).is_some() {
            return Ok(());
        }
        let name = meta(object, "name");
        let message = format!(
            "pods {name:?} is forbidden: error looking up service account {}/{account}: serviceaccount {account:?} not found",
            ask.namespace()
        );
        let details = json!({"name": name, "kind": "pods"});
        Err(StatusError::new(403, "Forbidden", message).details(details))
    }

    /// What follows from a write at once.
    pub(crate) fn after_write(&mut self, ask: &Ask<'_>, object: &Value) {
        if ask.kind.is("apiextensions.k8s.io", "CustomResourceDefinition") {
            self.establish(object);
        }
    }

    /// What follows from a removal at once.
    pub(crate) fn after_removal(&mut self, ask: &Ask<'_>, object: &Value) {
        if ask.kind.is("apiextensions.k8s.io", "CustomResourceDefinition") {
            self.retire(object);
        } else if ask.kind.custom.is_some() {
            self.finish_definitions();
        }
    }

    /// Namespaces and definitions are deleted in ways of their own. Gives what the delete answers, or nothing if the
    /// kind is deleted like any other.
    pub(crate) fn delete_specially(
        &mut self,
        ask: &Ask<'_>,
        object: &Tracked,
        dry_run: bool,
    ) -> Result<Option<(Tracked, bool)>, StatusError> {
        if ask.kind.is("apiextensions.k8s.io", "CustomResourceDefinition")
            && !is_terminating(object)
        {
            return Ok(Some((self.begin_to_retire(object, dry_run), false)));
        }
        if !ask.kind.is("", "Namespace") {
            return Ok(None);
        }
        let name = meta(object, "name").to_owned();
        if matches!(name.as_str(), "default" | "kube-system" | "kube-public") {
            let message =
                format!("namespaces {name:?} is forbidden: this namespace may not be deleted");
            let details = json!({"name": name, "kind": "namespaces"});
            return Err(StatusError::new(403, "Forbidden", message).details(details));
        }
        let mut object = object.clone();
        if !is_terminating(&object) {
            object["metadata"]["deletionTimestamp"] = self.time().into();
            object["status"]["phase"] = "Terminating".into();
            if !dry_run {
                let stored = self.put(&namespaces(), &(String::new(), name), object);
                object = Arc::unwrap_or_clone(stored);
            }
        }
        Ok(Some((object, false)))
    }

    /// Empties a namespace that is being deleted, and lets it go when it is empty.
    pub(super) fn empty_namespaces(&mut self) -> bool {
        let terminating: Vec<Key> =
            self.following.terminating.iter().map(|name| (String::new(), name.clone())).collect();
        let mut worked = false;
        for key in terminating {
            for (kind, inner) in self.inside(&key.1) {
                worked |= self.delete_quietly(&kind, &inner);
            }
            worked |= self.say_what_is_left(&key);
            if self.inside(&key.1).is_empty() {
                worked |= self.finalize(&key);
            }
        }
        worked
    }

    /// Ends the Pods whose time is over.
    pub(crate) fn expire_graces(&mut self) {
        // Where Pods live, their kubelet ends them.
        if self.controllers.workloads.has(Workload::Pods) {
            return;
        }
        let kind = (String::new(), "pods".to_owned());
        let Some(pods) = self.store.collection(&kind) else { return };
        let over: Vec<(Key, Arc<Tracked>)> = pods
            .objects
            .iter()
            .map(|(key, stored)| (key.clone(), stored.object()))
            .filter(|(_, pod)| {
                let ends = meta(pod, "deletionTimestamp").parse::<jiff::Timestamp>();
                ends.is_ok_and(|ends| ends <= self.now()) && finalizers(pod).is_empty()
            })
            .collect();
        for (key, pod) in over {
            self.remove(&kind, &key, &mut Arc::unwrap_or_clone(pod));
        }
    }
}
