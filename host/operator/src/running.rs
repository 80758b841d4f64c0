//! One version of a module as it serves.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use innkeeper_cluster::{Session, View};
use innkeeper_contract::Kind;
use innkeeper_core::{Object, Selector};
use innkeeper_modules::{Served, Settings};
use innkeeper_sandbox::Guest;

/// One version of a module as it serves: replaced whole, never changed, so that a round that
/// began with one ends with the same.
#[derive(Debug)]
pub struct Running {
    /// The guest and its settings.
    served: Arc<Served>,
    /// The selector of primaries.
    pub selector: Selector,
    /// Requests as the module's ServiceAccount.
    pub session: Session,
    /// The caches, as the module's ServiceAccount may read them.
    pub view: View,
    /// The primary kind.
    pub primary: Arc<Kind>,
    /// The Module's parameters as JSON; empty for none.
    pub parameters: String,
    /// The kinds that the manifest declares, by group and version, and kind.
    kinds: BTreeMap<(String, String), Arc<Kind>>,
}

impl Running {
    /// A version that serves, with its identity and its caches.
    pub fn new(served: Arc<Served>, selector: Selector, session: Session, view: View) -> Self {
        let kinds: BTreeMap<_, _> = declared(&served.guest)
            .into_iter()
            .map(|kind| ((kind.api_version.clone(), kind.kind.clone()), Arc::new(kind)))
            .collect();
        let parameters = &served.settings.parameters;
        let parameters = if parameters.is_null() { String::new() } else { parameters.to_string() };
        let primary = Arc::new(served.guest.manifest().primary.clone());
        Self { served, selector, session, view, primary, parameters, kinds }
    }

    /// The module's name.
    pub fn name(&self) -> &Arc<str> {
        &self.served.module
    }

    /// The guest.
    pub fn guest(&self) -> &Guest {
        &self.served.guest
    }

    /// The Module's spec.
    pub fn settings(&self) -> &Settings {
        &self.served.settings
    }

    /// A declared kind.
    pub fn kind(&self, api_version: &str, kind: &str) -> Option<&Arc<Kind>> {
        self.kinds.get(&(api_version.to_owned(), kind.to_owned()))
    }

    /// All declared kinds, in order.
    pub fn kinds(&self) -> impl Iterator<Item = &Arc<Kind>> {
        self.kinds.values()
    }

    /// Whether the manifest says that a kind may be unserved.
    pub fn is_optional(&self, kind: &Kind) -> bool {
        self.guest().manifest().owned.iter().any(|owned| owned.optional && owned.kind == *kind)
    }

    /// Whether the module reconciles a primary: its namespace and its labels are selected.
    pub fn selects(&self, object: &Object) -> bool {
        let namespaces = &self.settings().namespaces;
        (namespaces.is_empty() || namespaces.contains(object.key.namespace()))
            && self.selector.matches(&object.labels)
    }

    /// The objects of the primary kind in the module's namespaces, by namespace and name. One that cannot
    /// be read is no reason to leave out the others.
    pub fn primaries(&self) -> Vec<Arc<Object>> {
        let frozen = self.view.freeze();
        let list = |namespace: Option<&str>| frozen.list(&self.primary, namespace, &|_| true);
        let namespaces = &self.settings().namespaces;
        let lists: Vec<_> = if namespaces.is_empty() || !self.primary.is_namespaced() {
            vec![list(None)]
        } else {
            namespaces.iter().map(|namespace| list(Some(namespace))).collect()
        };
        lists.into_iter().flatten().flatten().collect()
    }

    /// After which time an unchanged primary is run again.
    pub fn resync(&self) -> Option<Duration> {
        match self.settings().resync {
            Some(period) => Some(period).filter(|period| !period.is_zero()),
            None => self
                .guest()
                .manifest()
                .resync_seconds
                .filter(|seconds| *seconds > 0)
                .map(|seconds| Duration::from_secs(seconds.into())),
        }
    }
}

/// The kinds that a guest declares, each once: its primary, what it owns, what it reads.
pub fn declared(guest: &Guest) -> Vec<Kind> {
    let manifest = guest.manifest();
    let mut kinds = vec![manifest.primary.clone()];
    let others = manifest.owned.iter().map(|owned| &owned.kind).chain(&manifest.reads);
    for kind in others {
        if !kinds.contains(kind) {
            kinds.push(kind.clone());
        }
    }
    kinds
}
