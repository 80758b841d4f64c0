//! One revision of a module with its client and its caches.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use innkeeper_cluster::{ApiClient, View};
use innkeeper_contract::{Kind, ValueSourceKind};
use innkeeper_core::consent::{self, RESYNC_ANNOTATION};
use innkeeper_core::finalizer::FinalizerAction;
use innkeeper_core::host_names::Grants;
use innkeeper_core::object_change::HostReads;
use innkeeper_core::ownership::PrimaryOwner;
use innkeeper_core::{
    Finalizer, KindMasks, KnownMasks, Object, ObjectKey, ObjectRef, PrimarySelector, control,
    object,
};
use innkeeper_modules::{Revision, ValidatedSpec, resync_period};
use innkeeper_sandbox::Guest;

use crate::execution::CallPace;
use crate::guest_log::GuestLog;

/// How far the teardown of a module is, whose Module is being deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TeardownPhase {
    /// No teardown.
    None,
    /// The host removes the module's finalizer from all primaries; from those that are being
    /// deleted once the guest has finished with them.
    Finalizing,
    /// The host removes the module's finalizer from all primaries.
    Immediate,
}

/// One revision of a module that reconciles primaries, with the client and the caches with which it
/// runs: the active revision, the one before it, or a candidate that is previewed. It never
/// changes, and a swap replaces it whole, so that a reconcile ends with the revision that it began
/// with.
#[derive(Clone, Debug)]
pub struct OpenRevision {
    /// The guest and its spec.
    revision: Arc<Revision>,
    /// The primaries that the guest and the Module both select.
    pub selector: PrimarySelector,
    /// Requests as the module's ServiceAccount.
    pub client: ApiClient,
    /// The caches, as the module's ServiceAccount may read them.
    pub view: Arc<View>,
    /// The primary kind.
    pub primary_kind: Arc<Kind>,
    /// The Module's parameters as JSON; empty for none.
    pub parameters: String,
    /// The guest's log.
    pub log: Arc<GuestLog>,
    /// Whether the guest's calls are short.
    pub pace: Arc<CallPace>,
    /// The masks of the guest's last answers, so that equal ones are not read again.
    pub known_masks: Arc<KnownMasks>,
    /// The module's finalizer on its primaries.
    pub finalizer: Finalizer,
    /// The guest decorates its primaries: it gives no status.
    pub decorates: bool,
    /// How far the teardown is.
    pub teardown: TeardownPhase,
    /// The kinds that the manifest declares, in order of group and version, and kind.
    kinds: Box<[Arc<Kind>]>,
    /// The fields that the guest gets of objects of some kinds, with those of their identity.
    read_masks: KindMasks,
    /// The kinds that earlier revisions declared: of them the host only prunes what was made.
    retired_kinds: Vec<Arc<Kind>>,
}

impl OpenRevision {
    /// A revision that reconciles objects of `primary_kind`, with its identity and its caches.
    pub fn new(
        revision: Arc<Revision>,
        primary_kind: Kind,
        selector: PrimarySelector,
        client: ApiClient,
        view: View,
    ) -> Self {
        let kinds: BTreeMap<_, _> = declared(&revision.guest)
            .into_iter()
            .map(|kind| ((kind.api_version.clone(), kind.kind.clone()), Arc::new(kind)))
            .collect();
        let kinds = kinds.into_values().collect();
        let parameters = &revision.spec.parameters;
        let parameters = if parameters.is_null() { String::new() } else { parameters.to_string() };
        let manifest = revision.guest.manifest();
        let primary_kind = Arc::new(primary_kind);
        let view = Arc::new(view);
        let log = Arc::new(GuestLog::new(client.env()));
        let finalizer = Finalizer::new(&revision.module, manifest.finalizer.as_deref());
        let retired_kinds = revision.retired_kinds.iter().cloned().map(Arc::new).collect();
        let decorates = control::decorates(manifest);
        let read_masks = KindMasks::of_manifest(manifest);
        Self {
            revision,
            selector,
            client,
            view,
            primary_kind,
            parameters,
            log,
            pace: Arc::default(),
            known_masks: Arc::default(),
            finalizer,
            decorates,
            teardown: TeardownPhase::None,
            kinds,
            read_masks,
            retired_kinds,
        }
    }

    /// The same revision in another phase of its teardown.
    #[must_use]
    pub fn in_teardown(&self, teardown: TeardownPhase) -> Self {
        // Masks that are given again would look as if no run had reported since.
        Self { teardown, known_masks: Arc::default(), ..self.clone() }
    }

    /// Whether the Module is being deleted.
    pub fn is_in_teardown(&self) -> bool {
        self.teardown != TeardownPhase::None
    }

    /// The module's name.
    pub fn name(&self) -> &Arc<str> {
        &self.revision.module
    }

    /// The guest and its spec.
    pub fn revision(&self) -> &Arc<Revision> {
        &self.revision
    }

    /// The guest.
    pub fn guest(&self) -> &Guest {
        &self.revision.guest
    }

    /// The Module's spec.
    pub fn spec(&self) -> &ValidatedSpec {
        &self.revision.spec
    }

    /// A declared kind.
    pub fn kind(&self, api_version: &str, kind: &str) -> Option<&Arc<Kind>> {
        // Every read asks: a map of texts would need a copy of both.
        let order = |one: &Arc<Kind>| (&*one.api_version, &*one.kind).cmp(&(api_version, kind));
        self.kinds.get(self.kinds.binary_search_by(order).ok()?)
    }

    /// The kinds that earlier revisions declared and this one does not.
    pub fn retired_kinds(&self) -> &[Arc<Kind>] {
        &self.retired_kinds
    }

    /// A kind of which there may be objects that the module made.
    pub fn known_kind(&self, kind: &Kind) -> Option<&Arc<Kind>> {
        let declared = self.kind(&kind.api_version, &kind.kind);
        declared.or_else(|| self.retired_kinds.iter().find(|one| ***one == *kind))
    }

    /// The same kind, of which the revision has one for all its primaries, if it declares it.
    pub fn shared_kind<'a>(&'a self, kind: &'a Arc<Kind>) -> &'a Arc<Kind> {
        self.known_kind(kind).filter(|known| *known == kind).unwrap_or(kind)
    }

    /// All declared kinds, in order.
    pub fn kinds(&self) -> impl Iterator<Item = &Arc<Kind>> {
        self.kinds.iter()
    }

    /// Whether the manifest says that the guest makes objects of a kind.
    pub fn is_owned(&self, kind: &Kind) -> bool {
        self.guest().manifest().owned.iter().any(|owned| owned.kind == *kind)
    }

    /// The masks of the kinds of whose objects the guest does not get every field.
    pub fn read_masks(&self) -> &KindMasks {
        &self.read_masks
    }

    /// What the host itself needs of objects of a kind when they change; `None` if changes of them
    /// always count: the module is in teardown, or does not know the kind.
    pub fn host_reads(&self, kind: &Kind) -> Option<HostReads> {
        if self.is_in_teardown() || self.known_kind(kind).is_none() {
            return None;
        }
        let is_retired = || self.retired_kinds.iter().any(|one| **one == *kind);
        Some(if *self.primary_kind == *kind {
            // A selector may compare any field.
            let is_whole = !self.decorates || self.selector.reads_fields();
            if is_whole { HostReads::Whole } else { HostReads::Written }
        } else if self.is_owned(kind) || is_retired() {
            HostReads::Written
        } else {
            HostReads::Head
        })
    }

    /// Whether the manifest says that a kind may be unserved.
    pub fn is_optional(&self, kind: &Kind) -> bool {
        self.guest().manifest().owned.iter().any(|owned| owned.optional && owned.kind == *kind)
    }

    /// Whether the module reconciles a primary: the Module selects its namespace, and both the
    /// Module and the guest select it by its labels, annotations and fields. One that belongs to
    /// Innkeeper itself is no module's.
    pub fn selects(&self, object: &Object) -> bool {
        let scope = (&self.spec().namespaces, &self.selector);
        is_selected(&self.client, &self.primary_kind, scope, object)
    }

    /// A primary as the owner of what the module makes for it.
    pub fn owner(&self, primary: &Object) -> PrimaryOwner {
        let object_ref = ObjectRef::new(self.primary_kind.clone(), primary.key.clone());
        PrimaryOwner::new(self.name(), object_ref, &primary.uid).decorating(self.decorates)
    }

    /// What the host does about the finalizer of a primary.
    pub fn finalizer_action(&self, primary: &Object) -> FinalizerAction {
        let stays = match self.teardown {
            TeardownPhase::None => true,
            TeardownPhase::Finalizing => primary.is_terminating(),
            TeardownPhase::Immediate => false,
        };
        self.finalizer.next_action(primary, stays && self.selects(primary))
    }

    /// What the Module allows its guest beyond objects of its own in the primary's namespace.
    pub fn grants(&self) -> Grants<'_> {
        let spec = self.spec();
        Grants {
            cross_namespace: spec.allow_cross_namespace,
            finalizers: spec.allow_finalizers,
            host_namespace: self.client.host_namespace(),
            value_sources: &spec.value_sources,
        }
    }

    /// Whether the Module grants a Secret as a value source.
    pub fn is_value_source(&self, kind: &Kind, key: &ObjectKey) -> bool {
        let sources = &self.spec().value_sources;
        object::holds_secrets(kind)
            && sources
                .iter()
                .any(|grant| grant.kind == ValueSourceKind::Secret && grant.key == *key)
    }

    /// The objects of the primary kind in the module's namespaces, by namespace and name. One that
    /// cannot be read is no reason to leave out the others.
    pub fn primaries(&self) -> Vec<Arc<Object>> {
        primaries_in(&self.view, &self.primary_kind, &self.spec().namespaces)
    }

    /// After which time an unchanged primary is reconciled again: set by its annotation, else by
    /// the Module, else by the guest.
    pub fn resync(&self, primary: &Object) -> Option<Duration> {
        let of_module = || {
            self.spec().resync.or_else(|| {
                let seconds = self.guest().manifest().resync_seconds?;
                Some(Duration::from_secs(seconds.into()))
            })
        };
        let period = match Self::own_resync(primary) {
            Some(Ok(period)) => Some(period),
            Some(Err(_)) | None => of_module(),
        };
        period.filter(|period| !period.is_zero())
    }

    /// The resync period that a primary's annotation sets, or why it cannot be used; `None` without
    /// an annotation.
    pub fn own_resync(primary: &Object) -> Option<Result<Duration, String>> {
        consent::of_user(primary, RESYNC_ANNOTATION).map(|text| resync_period(&text))
    }
}

/// Whether namespaces (empty for all) and a selector select an object of a kind. One that belongs
/// to Innkeeper itself is no module's.
pub fn is_selected(
    client: &ApiClient,
    kind: &Kind,
    (namespaces, selector): (&BTreeSet<String>, &PrimarySelector),
    object: &Object,
) -> bool {
    !client.is_reserved(kind, &object.key)
        && (namespaces.is_empty() || namespaces.contains(object.key.namespace()))
        && selector.matches(object)
}

/// The objects of a kind in namespaces (empty for all), by namespace and name.
pub fn primaries_in(view: &View, kind: &Kind, namespaces: &BTreeSet<String>) -> Vec<Arc<Object>> {
    let snapshot = view.snapshot();
    let list = |namespace: Option<&str>| snapshot.list(kind, namespace, &|_| true);
    let lists: Vec<_> = if namespaces.is_empty() || !kind.is_namespaced() {
        vec![list(None)]
    } else {
        namespaces.iter().map(|namespace| list(Some(namespace))).collect()
    };
    lists.into_iter().flatten().flatten().collect()
}

/// The kinds that a guest declares, each once: its primary if it has one, what it owns, what it
/// reads.
pub fn declared(guest: &Guest) -> Vec<Kind> {
    let manifest = guest.manifest();
    let mut kinds = Vec::from_iter(manifest.primary.clone());
    let others = manifest.owned.iter().map(|owned| &owned.kind).chain(&manifest.reads);
    for kind in others {
        if !kinds.contains(kind) {
            kinds.push(kind.clone());
        }
    }
    kinds
}
