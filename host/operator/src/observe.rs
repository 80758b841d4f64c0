//! Observing: one frozen snapshot a run, and the record of what was read from it.

use std::collections::BTreeSet;
use std::sync::Arc;

use innkeeper_cluster::cache::Unreadable;
use innkeeper_cluster::{Frozen, Seen};
use innkeeper_contract::{Kind, Unapplied};
use innkeeper_core::observed::{self, Observed};
use innkeeper_core::{Key, Object, Selector, Target, names, readiness};
use innkeeper_sandbox::{CallError, Host, Level, ReadError, ResourceKind};
use jiff::Timestamp;

use crate::granted::Granted;
use crate::record::ReadRecord;
use crate::running::Running;

/// What one run sees, and what it has read so far.
pub struct Observation<'a> {
    running: &'a Running,
    frozen: &'a Frozen,
    primary: Arc<Object>,
    now: Timestamp,
    granted: &'a Granted,
    reads: ReadRecord,
    /// What was read and has to be read live first.
    unknown: BTreeSet<Target>,
}

impl<'a> Observation<'a> {
    /// The observation of a primary at `now`, with the Secrets that the Module grants.
    pub fn new(
        running: &'a Running,
        frozen: &'a Frozen,
        primary: Arc<Object>,
        now: Timestamp,
        granted: &'a Granted,
    ) -> Self {
        Self {
            running,
            frozen,
            primary,
            now,
            granted,
            reads: ReadRecord::default(),
            unknown: BTreeSet::new(),
        }
    }

    /// The module.
    pub fn running(&self) -> &'a Running {
        self.running
    }

    /// The primary.
    pub fn primary(&self) -> &Object {
        &self.primary
    }

    /// The Secrets that the guest sees whole.
    pub fn granted(&self) -> &'a Granted {
        self.granted
    }

    /// The objects that the primary owns, made or merged into, in order, also of kinds that only
    /// versions before declared; recorded as read.
    pub fn made(&mut self) -> Vec<(Target, Arc<Object>)> {
        let home = self.primary.key.namespace();
        let within = if self.running.settings().allow_cross_namespace { "" } else { home };
        self.reads.owned(&self.primary.uid, within);
        self.frozen
            .owned_by(&self.primary.uid)
            .into_iter()
            .filter(|(_, object)| self.is_within_reach(object))
            .filter_map(|(kind, object)| {
                let kind = self.running.known_kind(&kind)?.clone();
                Some((Target::new(kind, object.key.clone()), object))
            })
            .collect()
    }

    /// Whether the primary can have an object where it lies. An owner owns in its own namespace only, and
    /// whoever writes in another one can name this primary there, as an owner or by its manager.
    fn is_within_reach(&self, object: &Object) -> bool {
        let (home, uid) = (self.primary.key.namespace(), &*self.primary.uid);
        let has_entry = || object.entries.iter().any(|entry| entry.manager.uid() == Some(uid));
        home.is_empty()
            || object.key.namespace() == home
            || self.running.settings().allow_cross_namespace && has_entry()
    }

    /// Declared kinds that are not served.
    pub fn unserved(&self) -> Vec<Kind> {
        self.running
            .kinds()
            .filter(|kind| self.frozen.unreadable(kind) == Some(Unreadable::NotServed))
            .map(|kind| (**kind).clone())
            .collect()
    }

    /// The `observed` document. What is only merged into is not the primary's own.
    ///
    /// # Errors
    /// [`CallError::ObservedTooLarge`] if it would have more than `limit` bytes, before it is joined.
    pub fn document(
        &self,
        made: &[(Target, Arc<Object>)],
        unapplied: &[Unapplied],
        limit: usize,
    ) -> Result<String, CallError> {
        let declared = |target: &Target| {
            self.running.kind(&target.kind.api_version, &target.kind.kind).is_some()
        };
        let owned: Vec<_> =
            own(made, &self.primary).filter(|(target, _)| declared(target)).collect();
        let texts = observed::bytes(owned.iter().map(|(_, object)| &**object));
        let messages: usize = unapplied.iter().map(|one| one.message.len()).sum();
        if texts.saturating_add(self.primary.text.len()).saturating_add(messages) > limit {
            return Err(CallError::ObservedTooLarge { limit });
        }
        let owned: Vec<_> = owned
            .into_iter()
            .map(|(target, object)| (&**object, readiness::of(&target.kind, object)))
            .collect();
        let document = Observed {
            object: &self.primary,
            owned: &owned,
            unapplied,
            unserved: &self.unserved(),
            parameters: &self.running.parameters,
            deleting: self.primary.is_terminating(),
        };
        Ok(document.document())
    }

    /// What is at a name; recorded as read.
    pub fn look(&mut self, target: &Target) -> Seen {
        self.reads.get(&target.kind, &target.key);
        self.frozen.get(&target.kind, &target.key)
    }

    /// What the guest read that is not known: the run is worth nothing then, until live reads
    /// have settled it.
    pub fn take_unknown(&mut self) -> BTreeSet<Target> {
        std::mem::take(&mut self.unknown)
    }

    /// All that was read.
    pub fn into_reads(self) -> ReadRecord {
        self.reads
    }

    fn kind(&self, kind: &ResourceKind) -> Result<Arc<Kind>, ReadError> {
        self.running.kind(&kind.api_version, &kind.kind).cloned().ok_or(ReadError::Undeclared)
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
        let target = Target::new(kind, Key::new(namespace, name));
        match self.look(&target) {
            Seen::Present(object) => {
                // What is gone from the cache is gone, whatever was read live.
                let object = match self.granted.get(&target.kind, &target.key) {
                    Some(granted) => granted,
                    None => &object,
                };
                if observed::bytes([object]) > room {
                    return Err(ReadError::TooLarge);
                }
                Ok(observed::object_document(object, &readiness::of(&target.kind, object)))
            }
            Seen::Absent => Err(ReadError::NotFound),
            Seen::Unknown => {
                self.unknown.insert(target);
                Err(ReadError::NotFound)
            }
            Seen::Unreadable(why) => Err(refused(why)),
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
        let objects =
            self.frozen.list(&kind, within, &|labels| selector.matches(labels)).map_err(refused)?;
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
        let (running, key) = (self.running, &self.primary.key);
        let message = self.granted.mask(message);
        running.log.write(running.session.env(), running.name(), key, (level, &message));
    }
}

/// Of what a primary made or merged into, what is its own.
pub fn own<'a>(
    made: &'a [(Target, Arc<Object>)],
    primary: &Object,
) -> impl Iterator<Item = &'a (Target, Arc<Object>)> {
    made.iter().filter(|(_, object)| object.is_made_for(&primary.uid))
}

/// Whether a guest's text is a namespace, or none.
fn is_namespace(text: &str) -> bool {
    text.is_empty() || names::is_label(text)
}

fn refused(why: Unreadable) -> ReadError {
    match why {
        Unreadable::NotServed => ReadError::NotServed,
        Unreadable::Undeclared => ReadError::Undeclared,
        Unreadable::Forbidden(denial) => ReadError::Forbidden(denial.to_string()),
        Unreadable::Mismatched(mismatch) => ReadError::Forbidden(mismatch.to_string()),
        Unreadable::NotSynced(why) => ReadError::Forbidden(why),
    }
}
