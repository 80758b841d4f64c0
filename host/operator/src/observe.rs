//! Observing: one frozen snapshot a run, and the record of what was read from it.

use std::collections::BTreeSet;
use std::sync::Arc;

use innkeeper_cluster::cache::CacheReadError;
use innkeeper_cluster::{CacheSnapshot, Lookup};
use innkeeper_contract::{Kind, Unapplied};
use innkeeper_core::observed::{self, Observed};
use innkeeper_core::{Object, ObjectKey, ObjectRef, Selector, names, readiness};
use innkeeper_sandbox::{CallError, Host, Level, ReadError, ResourceKind};
use jiff::Timestamp;

use crate::modules::active_module::ActiveModule;
use crate::modules::granted_secrets::GrantedSecrets;
use crate::record::ReadRecord;

/// What one run sees, and what it has read so far.
pub struct Observation<'a> {
    active: &'a ActiveModule,
    snapshot: &'a CacheSnapshot,
    primary: Arc<Object>,
    now: Timestamp,
    secrets: &'a GrantedSecrets,
    reads: ReadRecord,
    /// What was read and has to be read live first.
    unknown: BTreeSet<ObjectRef>,
}

impl<'a> Observation<'a> {
    /// The observation of a primary at `now`, with the Secrets that the Module grants.
    pub fn new(
        active: &'a ActiveModule,
        snapshot: &'a CacheSnapshot,
        primary: Arc<Object>,
        now: Timestamp,
        secrets: &'a GrantedSecrets,
    ) -> Self {
        Self {
            active,
            snapshot,
            primary,
            now,
            secrets,
            reads: ReadRecord::default(),
            unknown: BTreeSet::new(),
        }
    }

    /// The module.
    pub fn active(&self) -> &'a ActiveModule {
        self.active
    }

    /// The primary.
    pub fn primary(&self) -> &Object {
        &self.primary
    }

    /// The Secrets that the guest sees whole.
    pub fn secrets(&self) -> &'a GrantedSecrets {
        self.secrets
    }

    /// The objects that the primary owns, made or merged into, in order, also of kinds that only
    /// versions before declared; recorded as read.
    pub fn owned(&mut self) -> Vec<(ObjectRef, Arc<Object>)> {
        let home = self.primary.key.namespace();
        let within = if self.active.settings().allow_cross_namespace { "" } else { home };
        self.reads.owned(&self.primary.uid, within);
        self.snapshot
            .owned_by(&self.primary.uid)
            .into_iter()
            .filter(|(_, object)| self.is_within_reach(object))
            .filter_map(|(kind, object)| {
                let kind = self.active.known_kind(&kind)?.clone();
                Some((ObjectRef::new(kind, object.key.clone()), object))
            })
            .collect()
    }

    /// Whether the primary can have an object where it lies. An owner owns in its own namespace
    /// only, and whoever writes in another one can name this primary there, as an owner or by its
    /// manager.
    fn is_within_reach(&self, object: &Object) -> bool {
        let (home, uid) = (self.primary.key.namespace(), &*self.primary.uid);
        let has_entry = || object.entries.iter().any(|entry| entry.manager.uid() == Some(uid));
        home.is_empty()
            || object.key.namespace() == home
            || self.active.settings().allow_cross_namespace && has_entry()
    }

    /// Declared kinds that are not served.
    pub fn unserved(&self) -> Vec<Kind> {
        self.active
            .kinds()
            .filter(|kind| self.snapshot.unreadable(kind) == Some(CacheReadError::NotServed))
            .map(|kind| (**kind).clone())
            .collect()
    }

    /// The `observed` document. What is only merged into is not the primary's own.
    ///
    /// # Errors
    /// [`CallError::ObservedTooLarge`] if it would have more than `limit` bytes, before it is
    /// joined.
    pub fn document(
        &self,
        made: &[(ObjectRef, Arc<Object>)],
        unapplied: &[Unapplied],
        limit: usize,
    ) -> Result<String, CallError> {
        let declared = |object_ref: &ObjectRef| {
            self.active.kind(&object_ref.kind.api_version, &object_ref.kind.kind).is_some()
        };
        let owned: Vec<_> =
            own(made, &self.primary).filter(|(object_ref, _)| declared(object_ref)).collect();
        let texts = observed::bytes(owned.iter().map(|(_, object)| &**object));
        let messages: usize = unapplied.iter().map(|one| one.message.len()).sum();
        if texts.saturating_add(self.primary.text.len()).saturating_add(messages) > limit {
            return Err(CallError::ObservedTooLarge { limit });
        }
        let owned: Vec<_> = owned
            .into_iter()
            .map(|(object_ref, object)| (&**object, readiness::of(&object_ref.kind, object)))
            .collect();
        let document = Observed {
            object: &self.primary,
            owned: &owned,
            unapplied,
            unserved: &self.unserved(),
            parameters: &self.active.parameters,
            deleting: self.primary.is_terminating(),
        };
        Ok(document.document())
    }

    /// What is at a name; recorded as read.
    pub fn lookup(&mut self, object_ref: &ObjectRef) -> Lookup {
        self.reads.get(&object_ref.kind, &object_ref.key);
        self.snapshot.get(&object_ref.kind, &object_ref.key)
    }

    /// What the guest read that is not known: the run is worth nothing then, until live reads
    /// have settled it.
    pub fn take_unknown(&mut self) -> BTreeSet<ObjectRef> {
        std::mem::take(&mut self.unknown)
    }

    /// All that was read.
    pub fn into_reads(self) -> ReadRecord {
        self.reads
    }

    fn kind(&self, kind: &ResourceKind) -> Result<Arc<Kind>, ReadError> {
        self.active.kind(&kind.api_version, &kind.kind).cloned().ok_or(ReadError::Undeclared)
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
        let kind = self.kind(kind)?;
        // The API server has no object of such a name either; asked for it, it would be a path.
        if !names::is_name_of(&kind, name) || !is_namespace(namespace) {
            return Err(ReadError::NotFound);
        }
        let object_ref = ObjectRef::new(kind, ObjectKey::new(namespace, name));
        match self.lookup(&object_ref) {
            Lookup::Found(object) => {
                // What is gone from the cache is gone, whatever was read live.
                let object = match self.secrets.get(&object_ref.kind, &object_ref.key) {
                    Some(granted) => granted,
                    None => &object,
                };
                if observed::bytes([object]) > room {
                    return Err(ReadError::TooLarge);
                }
                Ok(observed::object_document(object, &readiness::of(&object_ref.kind, object)))
            }
            Lookup::Absent => Err(ReadError::NotFound),
            Lookup::Unknown => {
                self.unknown.insert(object_ref);
                Err(ReadError::NotFound)
            }
            Lookup::Unreadable(why) => Err(refused(why)),
        }
    }

    fn list(
        &mut self,
        kind: &ResourceKind,
        namespace: &str,
        label_selector: &str,
        room: usize,
    ) -> Result<String, ReadError> {
        let kind = self.kind(kind)?;
        let selector: Selector =
            label_selector.parse().map_err(|error| ReadError::Invalid(format!("{error}")))?;
        if !is_namespace(namespace) {
            return Ok(observed::list_document(&[]));
        }
        self.reads.list(&kind, namespace, selector.clone());
        let within = (!namespace.is_empty()).then_some(namespace);
        let objects = self
            .snapshot
            .list(&kind, within, &|labels| selector.matches(labels))
            .map_err(refused)?;
        if observed::bytes(objects.iter().map(|object| &**object)) > room {
            return Err(ReadError::TooLarge);
        }
        let objects: Vec<_> =
            objects.iter().map(|object| (&**object, readiness::of(&kind, object))).collect();
        Ok(observed::list_document(&objects))
    }

    fn now_ms(&mut self) -> u64 {
        u64::try_from(self.now.as_millisecond()).unwrap_or(0)
    }

    fn log(&mut self, level: Level, message: &str) {
        let (active, key) = (self.active, &self.primary.key);
        let message = self.secrets.mask(message);
        active.log.write(active.client.env(), active.name(), key, (level, &message));
    }
}

/// Of what a primary made or merged into, what is its own.
pub fn own<'a>(
    made: &'a [(ObjectRef, Arc<Object>)],
    primary: &Object,
) -> impl Iterator<Item = &'a (ObjectRef, Arc<Object>)> {
    made.iter().filter(|(_, object)| object.is_made_for(&primary.uid))
}

/// Whether a guest's text is a namespace, or none.
fn is_namespace(text: &str) -> bool {
    text.is_empty() || names::is_label(text)
}

fn refused(why: CacheReadError) -> ReadError {
    match why {
        CacheReadError::NotServed => ReadError::NotServed,
        CacheReadError::Undeclared => ReadError::Undeclared,
        CacheReadError::Forbidden(denial) => ReadError::Forbidden(denial.to_string()),
        CacheReadError::Mismatched(mismatch) => ReadError::Forbidden(mismatch.to_string()),
        CacheReadError::NotSynced(why) => ReadError::Forbidden(why),
    }
}
