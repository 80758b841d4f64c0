//! A picture of the cluster for one primary: what exists, and what was applied for the primary.

use std::collections::BTreeMap;
use std::sync::Arc;

use innkeeper_contract::{Kind, Unapplied};
use innkeeper_core::in_sync::LastApplied;
use innkeeper_core::observed::{self, Observed};
use innkeeper_core::plan::{Lookup, PlannerState};
use innkeeper_core::{Manager, Object, ObjectKey, ObjectRef, Selector, readiness};
use innkeeper_operator::evaluate::{ClusterView, OwnedObjects};
use innkeeper_sandbox::{CallError, Host, Level, ReadError, ResourceKind};
use jiff::Timestamp;

use super::dry_run_server::DryRunServer;

/// The primary, and the objects that were applied for it.
#[derive(Clone)]
pub(super) struct Picture {
    pub(super) primary_ref: ObjectRef,
    pub(super) primary: Arc<Object>,
    /// What was applied, as the server stores it.
    pub(super) objects: BTreeMap<ObjectRef, Arc<Object>>,
    /// The digest of what was applied for each of them.
    pub(super) digests: BTreeMap<ObjectRef, String>,
    pub(super) state: PlannerState,
}

impl Picture {
    /// The picture before the host has seen the primary.
    pub(super) fn new(primary_ref: ObjectRef, primary: Arc<Object>) -> Self {
        // A prune that waits for one more clean round counts.
        let state = PlannerState { clean: true, ..PlannerState::default() };
        let (objects, digests) = (BTreeMap::new(), BTreeMap::new());
        Self { primary_ref, primary, objects, digests, state }
    }

    /// Takes an object that the server has stored for the desired object with this digest.
    pub(super) fn put(
        &mut self,
        object_ref: &ObjectRef,
        object: Arc<Object>,
        digest: &str,
        manager: &Manager,
    ) {
        if let Some(applied) = LastApplied::with_digest(digest, &object, manager) {
            self.state.applied.insert(object_ref.clone(), applied);
        }
        self.digests.insert(object_ref.clone(), digest.to_owned());
        self.objects.insert(object_ref.clone(), object);
    }

    /// Lets all workloads become ready. Returns whether one was not.
    pub(super) fn make_ready(&mut self, server: &DryRunServer) -> bool {
        let mut is_changed = false;
        for (object_ref, digest) in &self.digests {
            let present = self.objects.get_mut(object_ref);
            if let (Some(present), Some(ready)) = (present, server.ready(digest))
                && !Arc::ptr_eq(present, ready)
            {
                *present = ready.clone();
                is_changed = true;
            }
        }
        is_changed
    }

    /// Removes an object.
    pub(super) fn remove(&mut self, object_ref: &ObjectRef) {
        self.state.applied.remove(object_ref);
        self.digests.remove(object_ref);
        self.objects.remove(object_ref);
    }
}

/// A picture at one time, on what exists before.
pub(super) struct PictureView<'a> {
    pub(super) picture: &'a Picture,
    pub(super) server: &'a DryRunServer,
    /// The parameters of the Module as JSON; empty if it has none.
    pub(super) parameters: &'a str,
    pub(super) now: Timestamp,
}

impl PictureView<'_> {
    fn find(&self, object_ref: &ObjectRef) -> Option<&Arc<Object>> {
        if *object_ref == self.picture.primary_ref {
            return Some(&self.picture.primary);
        }
        self.picture.objects.get(object_ref).or_else(|| self.server.existing().get(object_ref))
    }

    fn kind(&self, kind: &ResourceKind) -> Result<Arc<Kind>, ReadError> {
        let found = self.server.kind(&kind.api_version, &kind.kind).ok_or(ReadError::Undeclared)?;
        if self.server.unserved().contains(found) {
            return Err(ReadError::NotServed);
        }
        Ok(found.clone())
    }
}

impl ClusterView for PictureView<'_> {
    fn owned(&mut self) -> OwnedObjects {
        let objects = self.picture.objects.iter();
        objects.map(|(object_ref, object)| (object_ref.clone(), object.clone())).collect()
    }

    fn document(
        &self,
        primary: &Object,
        owned: &[(ObjectRef, Arc<Object>)],
        unapplied: &[Unapplied],
        _: usize,
    ) -> Result<String, CallError> {
        let own = owned.iter().filter(|(_, object)| object.is_made_for(&primary.uid));
        let owned: Vec<_> = own
            .map(|(ObjectRef { kind, .. }, object)| {
                (self.server.shown(kind, object), readiness::of(kind, object))
            })
            .collect();
        let document = Observed {
            object: &self.server.shown(&self.picture.primary_ref.kind, primary),
            owned: &owned,
            unapplied,
            unserved: self.server.unserved(),
            parameters: self.parameters,
            deleting: primary.is_terminating(),
        };
        Ok(document.document())
    }

    fn lookup(&mut self, object_ref: &ObjectRef) -> Lookup {
        if self.server.unserved().contains(&object_ref.kind) {
            return Lookup::NotServed;
        }
        self.find(object_ref).map_or(Lookup::Absent, |object| Lookup::Found(object.clone()))
    }

    fn is_readable(&self) -> bool {
        true
    }

    fn log_earlier(&mut self, _: &str, _: &str) {}
}

impl Host for PictureView<'_> {
    fn get(
        &mut self,
        kind: &ResourceKind,
        namespace: &str,
        name: &str,
        bytes_max: usize,
    ) -> Result<String, ReadError> {
        let kind = self.kind(kind)?;
        let object_ref = ObjectRef::new(kind, ObjectKey::new(namespace, name));
        let found = self.find(&object_ref).ok_or(ReadError::NotFound)?;
        let object = self.server.granted(&object_ref).unwrap_or(found);
        let readiness = readiness::of(&object_ref.kind, object);
        let shown = self.server.shown(&object_ref.kind, object);
        bounded(observed::object_document(&shown, &readiness), bytes_max)
    }

    fn list(
        &mut self,
        kind: &ResourceKind,
        namespace: &str,
        label_selector: &str,
        bytes_max: usize,
    ) -> Result<String, ReadError> {
        let kind = self.kind(kind)?;
        let selector: Selector =
            label_selector.parse().map_err(|error| ReadError::Invalid(format!("{error}")))?;
        let Picture { primary_ref, primary, objects, .. } = self.picture;
        let all = self.server.existing().iter().chain(objects).chain([(primary_ref, primary)]);
        // A later object of a name is the one that is there now.
        let all: BTreeMap<&ObjectKey, &Arc<Object>> = all
            .filter(|(object_ref, object)| {
                object_ref.kind == kind
                    && (namespace.is_empty() || object_ref.key.namespace() == namespace)
                    && selector.matches(&object.labels)
            })
            .map(|(object_ref, object)| (&object_ref.key, object))
            .collect();
        let all: Vec<_> = all
            .values()
            .map(|object| (self.server.shown(&kind, object), readiness::of(&kind, object)))
            .collect();
        bounded(observed::list_document(&all), bytes_max)
    }

    fn now_ms(&mut self) -> u64 {
        u64::try_from(self.now.as_millisecond()).unwrap_or(0)
    }

    fn log(&mut self, _: Level, _: &str) {}
}

fn bounded(text: String, bytes_max: usize) -> Result<String, ReadError> {
    if text.len() > bytes_max { Err(ReadError::TooLarge) } else { Ok(text) }
}
