//! The existing objects that a policy reviews, from caches of its own account.

use std::sync::{Arc, LazyLock};

use innkeeper_cluster::{
    ApiClient, ApiError, CacheLookup, CacheSnapshot, Caches, Namespaces, View,
};
use innkeeper_contract::Kind;
use innkeeper_core::{Labels, Object, ObjectKey};
use innkeeper_modules::module::PolicyMode;

use super::active_policy::ActivePolicy;
use super::background_review::is_never_reviewed;
use super::matched_kinds::{LeftOut, matched_kinds};
use super::review_scope::ReviewScope;
use crate::modules::event::HOST_MODULE;

/// The kind of Namespaces.
static NAMESPACE: LazyLock<Kind> = LazyLock::new(|| Kind::cluster("v1", "Namespace", "namespaces"));

/// An existing object that a policy reviews.
#[derive(Clone, Debug)]
pub struct ExistingObject {
    /// Its kind.
    pub kind: Arc<Kind>,
    /// The object, as the account of the policy reads it.
    pub object: Arc<Object>,
    /// The mode in which the policy reviews it.
    pub mode: PolicyMode,
}

/// The caches with the existing objects that a policy reviews. Dropping them closes them.
pub struct ExistingObjects {
    scope: ReviewScope,
    host_namespace: Option<String>,
    /// The objects, as the account may read them.
    view: View,
    /// The metadata of Namespaces, as the host reads it; `None` if no label decides.
    namespaces: Option<View>,
    kinds: Vec<Arc<Kind>>,
    left_out: Vec<LeftOut>,
}

impl ExistingObjects {
    /// Opens the caches of the kinds that the rules of a policy match. `reader` acts as the account
    /// of the policy, which needs `list` and `watch` on the kinds; [`Self::list`] names the others.
    /// `host` asks discovery and reads the labels of namespaces.
    ///
    /// # Errors
    /// If discovery does not answer.
    pub async fn open(
        caches: &Caches,
        host: &ApiClient,
        reader: &ApiClient,
        policy: &ActivePolicy,
    ) -> Result<Self, ApiError> {
        Self::open_with(caches, host, reader, policy, None).await
    }

    /// The same with the labels by which another policy selects namespaces, for
    /// [`mode_in`](Self::mode_in).
    ///
    /// # Errors
    /// If discovery does not answer.
    pub async fn open_with(
        caches: &Caches,
        host: &ApiClient,
        reader: &ApiClient,
        policy: &ActivePolicy,
        other: Option<&ReviewScope>,
    ) -> Result<Self, ApiError> {
        let scope = ReviewScope::of(policy);
        let matched = matched_kinds(host, scope.rules()).await?;
        let within = policy.settings.read_namespaces();
        let view = caches.open(reader, &policy.module, &matched.kinds, &within);
        let of_names = std::slice::from_ref::<Kind>(&NAMESPACE);
        let needs_labels = scope.needs_labels() || other.is_some_and(ReviewScope::needs_labels);
        let namespaces = needs_labels
            .then(|| caches.open_metadata(host, HOST_MODULE, of_names, &Namespaces::All));
        Ok(Self {
            scope,
            host_namespace: host.host_namespace().map(str::to_owned),
            view,
            namespaces,
            kinds: matched.kinds.into_iter().map(Arc::new).collect(),
            left_out: matched.left_out,
        })
    }

    /// Waits until each kind has been listed, or cannot be.
    pub async fn settled(&self) {
        self.view.settled().await;
        if let Some(namespaces) = &self.namespaces {
            namespaces.settled().await;
        }
    }

    /// The kinds whose objects are reviewed.
    pub fn kinds(&self) -> &[Arc<Kind>] {
        &self.kinds
    }

    /// The object of this kind and key, if the policy reviews it now.
    pub fn find(&self, kind: &Arc<Kind>, key: &ObjectKey) -> Option<ExistingObject> {
        let CacheLookup::Found(object) = self.view.snapshot().get(kind, key) else { return None };
        let namespaces = self.namespaces.as_ref().map(View::snapshot);
        let mode = self.mode(kind, &object, namespaces.as_ref())?;
        Some(ExistingObject { kind: kind.clone(), object, mode })
    }

    /// The mode in which the policy reviews an object; `None` if it does not.
    fn mode(
        &self,
        kind: &Kind,
        object: &Object,
        namespaces: Option<&CacheSnapshot>,
    ) -> Option<PolicyMode> {
        let labels = |name: &str| labels_of(namespaces?, name);
        let is_left_out = object.is_terminating()
            || is_never_reviewed(kind, &object.key, self.host_namespace.as_deref());
        self.scope.mode(kind, object, &labels).filter(|_| !is_left_out)
    }

    /// The objects that the policy reviews now, by kind, namespace and name, and what is left out:
    /// kinds that cannot be read (yet). Objects that are being deleted are not among them.
    pub fn list(&self) -> (Vec<ExistingObject>, Vec<LeftOut>) {
        let (mut objects, mut left_out) = (Vec::new(), self.left_out.clone());
        let snapshot = self.view.snapshot();
        let namespaces = self.namespaces.as_ref().map(View::snapshot);
        if let Some(why) = namespaces.as_ref().and_then(|all| all.unreadable(&NAMESPACE)) {
            left_out.push(LeftOut::new(
                "namespaces",
                format_args!("the host cannot read their labels, which spec.policy selects by, so it leaves out what is in them: {why}"),
            ));
        }
        for kind in &self.kinds {
            let all = match snapshot.list(kind, None, &|_| true) {
                Ok(all) => all,
                Err(error) => {
                    left_out.push(LeftOut::new(kind.resource(), error));
                    continue;
                }
            };
            for object in all {
                if let Some(mode) = self.mode(kind, &object, namespaces.as_ref()) {
                    objects.push(ExistingObject { kind: kind.clone(), object, mode });
                }
            }
        }
        (objects, left_out)
    }

    /// The mode in which another policy reviews an object.
    pub fn mode_in(&self, scope: &ReviewScope, existing: &ExistingObject) -> Option<PolicyMode> {
        let snapshot = self.namespaces.as_ref().map(View::snapshot);
        let labels = |name: &str| labels_of(snapshot.as_ref()?, name);
        scope.mode(&existing.kind, &existing.object, &labels)
    }

    /// The mode in which a policy reviews requests in a namespace; an empty namespace is that of
    /// cluster-scoped objects.
    pub fn mode_in_namespace(&self, scope: &ReviewScope, namespace: &str) -> Option<PolicyMode> {
        let snapshot = self.namespaces.as_ref().map(View::snapshot);
        scope.mode_in(namespace, &|name| labels_of(snapshot.as_ref()?, name))
    }

    /// Whether a policy certainly reviews no request in a namespace.
    pub fn leaves_out(&self, scope: &ReviewScope, namespace: &str) -> bool {
        let snapshot = self.namespaces.as_ref().map(View::snapshot);
        scope.leaves_out(namespace, &|name| labels_of(snapshot.as_ref()?, name))
    }
}

/// The labels of a namespace, if it is known.
fn labels_of(namespaces: &CacheSnapshot, name: &str) -> Option<Labels> {
    match namespaces.get(&NAMESPACE, &ObjectKey::new("", name)) {
        CacheLookup::Found(namespace) => Some(namespace.labels.clone()),
        CacheLookup::Absent | CacheLookup::Unknown | CacheLookup::Unreadable(_) => None,
    }
}
