//! What a guest sees of the cluster: one snapshot of the caches for each run, and the record of
//! everything that the run reads from it.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;

use innkeeper_cluster::cache::CacheReadError;
use innkeeper_cluster::{CacheLookup, CacheSnapshot};
use innkeeper_contract::{Kind, Unapplied};
use innkeeper_core::observed::{self, Observed};
use innkeeper_core::{Object, ObjectRef, plan, readiness};
use innkeeper_sandbox::{CallError, Host, Level, Outcome, ReadError, ResourceKind};
use jiff::Timestamp;

use crate::cluster_reads::{self, ClusterReads};
use crate::evaluate::{ClusterView, OwnedObjects};
use crate::modules::granted_secrets::GrantedSecrets;
use crate::modules::open_revision::OpenRevision;
use crate::watch::read_record::ReadRecord;

/// The cluster as one run sees it, and what the run has read so far.
pub struct Observation<'a> {
    revision: &'a OpenRevision,
    snapshot: &'a CacheSnapshot,
    primary: Arc<Object>,
    now: Timestamp,
    secrets: &'a GrantedSecrets,
    reads: ReadRecord,
    /// Objects that the guest read and that the host has to read live first.
    unknown: BTreeSet<ObjectRef>,
    /// What the guest logged in its call.
    log: Vec<LogLine>,
}

/// A line of the guest's log, masked.
struct LogLine {
    /// The earlier revision of the primary for which the guest was called.
    earlier: Option<String>,
    level: Level,
    message: String,
}

impl<'a> Observation<'a> {
    /// The observation of a primary at `now`, with the Secrets that the Module grants.
    pub fn new(
        revision: &'a OpenRevision,
        snapshot: &'a CacheSnapshot,
        primary: Arc<Object>,
        now: Timestamp,
        secrets: &'a GrantedSecrets,
    ) -> Self {
        Self {
            revision,
            snapshot,
            primary,
            now,
            secrets,
            reads: ReadRecord::default(),
            unknown: BTreeSet::new(),
            log: Vec::new(),
        }
    }

    /// The module.
    pub fn revision(&self) -> &'a OpenRevision {
        self.revision
    }

    /// The primary.
    pub fn primary(&self) -> &Arc<Object> {
        &self.primary
    }

    /// The time that the guest sees.
    pub fn now(&self) -> Timestamp {
        self.now
    }

    /// The kinds that the guest can do without and that the API server does not serve, as texts.
    pub fn unserved_optional(&self) -> Vec<String> {
        self.unserved()
            .iter()
            .filter(|kind| self.revision.is_optional(kind))
            .map(ToString::to_string)
            .collect()
    }

    /// The kinds that have to be readable and are not, see [`ClusterView::is_readable`].
    pub fn unreadable(&self) -> Vec<(Arc<Kind>, CacheReadError)> {
        let unreadable = |kind: &Arc<Kind>| {
            let error = self.snapshot.unreadable(kind)?;
            let may_be_absent =
                error == CacheReadError::NotServed && self.revision.is_optional(kind);
            (!may_be_absent).then(|| (kind.clone(), error))
        };
        self.revision.kinds().filter_map(unreadable).collect()
    }

    /// The kinds of which objects of the primary may exist unseen after its deletion, each with the
    /// error of its cache.
    ///
    /// Kubernetes deletes objects with an owner reference to the primary. Objects out of its reach,
    /// in other namespaces, have none. A kind that the API server does not serve has no objects,
    /// and an optional kind may lack rights.
    pub fn unseen_beyond_owner(&self) -> Vec<(Arc<Kind>, CacheReadError)> {
        let home = self.primary.key.namespace();
        let is_beyond = |kind: &Kind| match home {
            "" => kind.is_namespaced(),
            _ => self.revision.spec().allow_cross_namespace,
        };
        let unseen = |kind: &Arc<Kind>| {
            let error = self.snapshot.unreadable(kind)?;
            (error != CacheReadError::NotServed).then(|| (kind.clone(), error))
        };
        let owned = self.revision.kinds().filter(|kind| self.revision.is_owned(kind));
        owned
            .chain(self.revision.retired_kinds())
            .filter(|kind| is_beyond(kind) && !self.revision.is_optional(kind))
            .filter_map(unseen)
            .collect()
    }

    /// Drops what an earlier call logged, whose result does not count.
    pub fn begin_call(&mut self) {
        self.log.clear();
    }

    /// Writes what the guest logged to the host's log.
    pub fn write_log(&mut self) {
        let (active, key) = (self.revision, &self.primary.key);
        let (env, name) = (active.client.env(), active.name());
        for LogLine { earlier, level, message } in self.log.drain(..) {
            match earlier {
                None => active.log.write(env, name, key, (level, &message)),
                Some(revision) => active.log.write_earlier(env, name, key, (&revision, &message)),
            }
        }
    }

    /// Everything that the run has read.
    pub fn into_reads(self) -> ReadRecord {
        self.reads
    }

    /// The declared kinds that the API server does not serve.
    fn unserved(&self) -> Vec<Kind> {
        self.revision
            .kinds()
            .filter(|kind| self.snapshot.unreadable(kind) == Some(CacheReadError::NotServed))
            .map(|kind| (**kind).clone())
            .collect()
    }

    /// Whether the primary can own an object, or be merged into it, in the object's namespace.
    ///
    /// An owner reference counts within one namespace. In another namespace anybody who writes
    /// there can name this primary as an owner, or use the name of its manager.
    fn is_within_reach(&self, object: &Object) -> bool {
        let (home, uid) = (self.primary.key.namespace(), &*self.primary.uid);
        let has_entry = || object.entries.iter().any(|entry| entry.manager.uid() == Some(uid));
        home.is_empty()
            || object.key.namespace() == home
            || self.revision.spec().allow_cross_namespace && has_entry()
    }

    /// The object of this name in the snapshot; the read is recorded.
    fn read(&mut self, object_ref: &ObjectRef) -> CacheLookup {
        // The record stays until the next run: all primaries share the kind of the revision.
        let kind = self.revision.shared_kind(&object_ref.kind);
        self.reads.get(kind, &object_ref.key);
        self.snapshot.get(&object_ref.kind, &object_ref.key)
    }

    /// An object as the guest sees it: within the mask of its kind, and a granted value source
    /// without the digests of its values.
    fn shown<'o>(&self, kind: &Kind, object: &'o Object) -> Cow<'o, Object> {
        let shown = if self.revision.is_value_source(kind, &object.key) {
            Cow::Owned(object.as_value_source())
        } else {
            Cow::Borrowed(object)
        };
        self.masked(kind, shown)
    }

    /// The fields of an object that the manifest says the guest reads.
    fn masked<'o>(&self, kind: &Kind, object: Cow<'o, Object>) -> Cow<'o, Object> {
        let masks = self.revision.read_masks();
        match object {
            Cow::Borrowed(object) => masks.shown(kind, object),
            Cow::Owned(object) => Cow::Owned(masks.shown(kind, &object).into_owned()),
        }
    }
}

impl ClusterReads for Observation<'_> {
    fn snapshot(&self) -> Result<&CacheSnapshot, ReadError> {
        Ok(self.snapshot)
    }

    fn declared(&self, api_version: &str, kind: &str) -> Option<Arc<Kind>> {
        self.revision.kind(api_version, kind).cloned()
    }

    fn record(&mut self) -> &mut ReadRecord {
        &mut self.reads
    }

    /// A Secret that the cache has lost is gone, even if a live read granted it before.
    fn found<'o>(&'o self, kind: &Kind, object: &'o Object) -> Cow<'o, Object> {
        match self.secrets.get(kind, &object.key) {
            Some(granted) => self.masked(kind, Cow::Borrowed(granted)),
            None => self.shown(kind, object),
        }
    }

    fn listed<'o>(&'o self, kind: &Kind, object: &'o Object) -> Cow<'o, Object> {
        self.shown(kind, object)
    }

    /// The host reads it live first, and runs the guest again.
    fn unknown(&mut self, object_ref: ObjectRef) -> ReadError {
        self.unknown.insert(object_ref);
        ReadError::NotFound
    }
}

impl ClusterView for Observation<'_> {
    /// Also objects of kinds that only previous revisions declared; the read is recorded.
    fn owned(&mut self) -> OwnedObjects {
        let home = self.primary.key.namespace();
        let within = if self.revision.spec().allow_cross_namespace { "" } else { home };
        self.reads.owned(&self.primary.uid, within);
        self.snapshot
            .owned_by(&self.primary.uid)
            .into_iter()
            .filter(|(_, object)| self.is_within_reach(object))
            .filter_map(|(kind, object)| {
                let kind = self.revision.known_kind(&kind)?.clone();
                Some((ObjectRef::new(kind, object.key.clone()), object))
            })
            .collect()
    }

    /// An object that the primary is only merged into is not among the owned objects that the guest
    /// sees. The size is checked before the texts are joined.
    fn document(
        &self,
        primary: &Object,
        owned: &[(ObjectRef, Arc<Object>)],
        unapplied: &[Unapplied],
        bytes_max: usize,
    ) -> Result<String, CallError> {
        let declared = |object_ref: &ObjectRef| {
            self.revision.kind(&object_ref.kind.api_version, &object_ref.kind.kind).is_some()
        };
        let owned: Vec<_> =
            own(owned, primary).filter(|(object_ref, _)| declared(object_ref)).collect();
        let texts = observed::bytes(owned.iter().map(|(_, object)| &**object));
        let messages: usize = unapplied.iter().map(|one| one.message.len()).sum();
        if texts.saturating_add(primary.text.len()).saturating_add(messages) > bytes_max {
            return Err(CallError::ObservedTooLarge { limit: bytes_max });
        }
        let owned: Vec<_> = owned
            .into_iter()
            .map(|(object_ref, object)| {
                let readiness = readiness::of(&object_ref.kind, object);
                (self.shown(&object_ref.kind, object), readiness)
            })
            .collect();
        let document = Observed {
            object: &self.shown(&self.revision.primary_kind, primary),
            owned: &owned,
            unapplied,
            unserved: &self.unserved(),
            parameters: &self.revision.parameters,
            deleting: primary.is_terminating(),
        };
        Ok(document.document())
    }

    fn lookup(&mut self, object_ref: &ObjectRef) -> plan::Lookup {
        match self.read(object_ref) {
            CacheLookup::Found(object) => plan::Lookup::Found(object),
            CacheLookup::Absent => plan::Lookup::Absent,
            CacheLookup::Unknown => plan::Lookup::Unknown,
            CacheLookup::Unreadable(CacheReadError::NotServed) => plan::Lookup::NotServed,
            CacheLookup::Unreadable(error) => plan::Lookup::Unreadable(error.to_string()),
        }
    }

    /// An optional kind may be unserved.
    fn is_readable(&self) -> bool {
        self.unreadable().is_empty()
    }

    fn take_unknown(&mut self) -> BTreeSet<ObjectRef> {
        std::mem::take(&mut self.unknown)
    }

    fn log_earlier(&mut self, revision: &str, message: &str) {
        let (earlier, message) = (Some(revision.to_owned()), self.secrets.mask(message));
        self.log.push(LogLine { earlier, level: Level::Debug, message });
    }

    fn mask(&self, outcome: &mut Outcome) {
        self.secrets.mask_outcome(outcome);
    }
}

impl Host for Observation<'_> {
    fn get(
        &mut self,
        kind: &ResourceKind,
        namespace: &str,
        name: &str,
        room: usize,
    ) -> Result<String, ReadError> {
        cluster_reads::get(self, kind, (namespace, name), room)
    }

    fn list(
        &mut self,
        kind: &ResourceKind,
        namespace: &str,
        label_selector: &str,
        room: usize,
    ) -> Result<String, ReadError> {
        cluster_reads::list(self, kind, (namespace, label_selector), room)
    }

    fn now_ms(&mut self) -> u64 {
        u64::try_from(self.now.as_millisecond()).unwrap_or(0)
    }

    fn log(&mut self, level: Level, message: &str) {
        let message = self.secrets.mask(message);
        self.log.push(LogLine { earlier: None, level, message });
    }
}

/// The objects that a primary owns, without those that it is only merged into.
pub fn own<'a>(
    owned: &'a [(ObjectRef, Arc<Object>)],
    primary: &Object,
) -> impl Iterator<Item = &'a (ObjectRef, Arc<Object>)> {
    owned.iter().filter(|(_, object)| object.is_made_for(&primary.uid))
}
