//! The objects of files as the cluster that a guest sees.

use std::sync::Arc;

use anyhow::Context as _;
use innkeeper_contract::{Kind, Manifest, Unapplied};
use innkeeper_core::object::{Entry, Operation};
use innkeeper_core::observed::Observed;
use innkeeper_core::ownership::PrimaryOwner;
use innkeeper_core::plan::Lookup;
use innkeeper_core::value_source::ValueSourceGrant;
use innkeeper_core::{Object, ObjectRef, foreign};
use innkeeper_operator::evaluate::{ClusterView, OwnedObjects};
use innkeeper_sandbox::{CallError, Host, Level, ReadError, ResourceKind};
use jiff::Timestamp;
use serde_json::Value;

use crate::file_objects::FileObjects;
use crate::objects::InputObject;
use crate::out;

/// A cluster that has the objects of some files, and the primary among them.
pub(super) struct FilesView {
    objects: FileObjects,
    primary_kind: Kind,
    primary: Arc<Object>,
    /// Whether the file of the primary has no uid.
    is_without_uid: bool,
    parameters: String,
}

impl FilesView {
    /// The view of one primary, by its kind and its place among the objects.
    ///
    /// # Errors
    /// If an object is no Kubernetes object or is given twice, or if the guest does not declare an
    /// unserved kind.
    pub(super) fn new(
        manifest: &Manifest,
        (primary_kind, primary): (&Kind, usize),
        given: &[InputObject],
        unserved: &[String],
        parameters: &Value,
        now: Timestamp,
    ) -> anyhow::Result<Self> {
        let owned = manifest.owned.iter().map(|owned| &owned.kind);
        let kinds = [primary_kind].into_iter().chain(owned).chain(&manifest.reads);
        let objects = FileObjects::new(kinds, given, unserved, now)?.within(manifest);
        for given in given.iter().filter(|given| !objects.declares(given)) {
            out::eprint(&format!(
                "innkeeper: {}: the guest declares no {} {}, so it cannot see it",
                given.place,
                given.text("/apiVersion"),
                given.text("/kind"),
            ));
        }
        let (primary, _) = given[primary].decode(primary_kind)?;
        let is_without_uid = primary.uid.is_empty();
        let primary = objects
            .all()
            .get(&(primary_kind.clone(), primary.key.clone()))
            .map(|(primary, _)| primary.clone())
            .context("the primary is among the objects")?;
        let parameters = if parameters.is_null() { String::new() } else { parameters.to_string() };
        let primary_kind = primary_kind.clone();
        Ok(Self { objects, primary_kind, primary, is_without_uid, parameters })
    }

    /// The view of a guest that sees no values of the Secrets among these sources.
    pub(super) fn hiding(mut self, sources: &[ValueSourceGrant]) -> Self {
        self.objects = self.objects.hiding(sources);
        self
    }

    /// The primary.
    pub(super) fn primary(&self) -> &Arc<Object> {
        &self.primary
    }

    /// Marks the objects that the primary has made before as the operator would have: files seldom
    /// have uids, and `kubectl get` leaves out managedFields.
    pub(super) fn mark_as_made(&mut self, owner: &PrimaryOwner) {
        let primary = &self.primary;
        let by_name = |object: &Object| {
            object.controller().is_some_and(|controller| {
                (controller.uid.is_empty() || self.is_without_uid)
                    && &*controller.name == primary.key.name()
                    && (primary.key.namespace().is_empty()
                        || object.key.namespace() == primary.key.namespace())
            })
        };
        let by_uid = |object: &Object| {
            object.controller().is_some_and(|controller| *controller.uid == *primary.uid)
        };
        for (object, _) in self.objects.all_mut().values_mut() {
            let is_named = by_name(object);
            if !is_named && !by_uid(object) && !owner.has_retained_label(object) {
                continue;
            }
            let object = Arc::make_mut(object);
            for controller in object.owners.iter_mut().filter(|one| is_named && one.controller) {
                controller.uid = primary.uid.clone();
            }
            if object.entries.is_empty() && object.other_managers.is_empty() {
                object.entries = Box::new([Entry {
                    manager: owner.manager.clone(),
                    operation: Operation::Apply,
                    subresource: "".into(),
                    time: 0,
                    fields: "{}".into(),
                }]);
            }
        }
    }
}

impl ClusterView for FilesView {
    fn owned(&mut self) -> OwnedObjects {
        let uid = &*self.primary.uid;
        let owned = self.objects.all().iter().filter(|(_, (object, _))| object.is_made_for(uid));
        owned
            .map(|((kind, key), (object, _))| {
                (ObjectRef::new(Arc::new(kind.clone()), key.clone()), object.clone())
            })
            .collect()
    }

    fn document(
        &self,
        primary: &Object,
        owned: &[(ObjectRef, Arc<Object>)],
        unapplied: &[Unapplied],
        _: usize,
    ) -> Result<String, CallError> {
        let owned: Vec<_> = owned
            .iter()
            .filter_map(|(object_ref, object)| {
                let key = ((*object_ref.kind).clone(), object_ref.key.clone());
                let (_, readiness) = self.objects.all().get(&key)?;
                Some((self.objects.shown(&object_ref.kind, object), readiness.clone()))
            })
            .collect();
        let document = Observed {
            object: &self.objects.masked(&self.primary_kind, primary),
            owned: &owned,
            unapplied,
            unserved: self.objects.unserved(),
            parameters: &self.parameters,
            deleting: primary.is_terminating(),
        };
        Ok(document.document())
    }

    fn lookup(&mut self, object_ref: &ObjectRef) -> Lookup {
        if self.objects.unserved().contains(&object_ref.kind) {
            return Lookup::NotServed;
        }
        match self.objects.all().get(&((*object_ref.kind).clone(), object_ref.key.clone())) {
            Some((object, _)) => Lookup::Found(object.clone()),
            None => Lookup::Absent,
        }
    }

    fn is_readable(&self) -> bool {
        true
    }

    fn log_earlier(&mut self, revision: &str, message: &str) {
        let line = format_args!("guest: for primary revision {revision}: {message}");
        out::eprint(&foreign::one_line(line, foreign::LINE_BYTES_MAX));
    }
}

impl Host for FilesView {
    fn get(
        &mut self,
        kind: &ResourceKind,
        namespace: &str,
        name: &str,
        bytes_max: usize,
    ) -> Result<String, ReadError> {
        self.objects.get(kind, namespace, name, bytes_max)
    }

    fn list(
        &mut self,
        kind: &ResourceKind,
        namespace: &str,
        label_selector: &str,
        bytes_max: usize,
    ) -> Result<String, ReadError> {
        self.objects.list(kind, namespace, label_selector, bytes_max)
    }

    fn now_ms(&mut self) -> u64 {
        self.objects.now_ms()
    }

    fn log(&mut self, level: Level, message: &str) {
        self.objects.log(level, message);
    }
}
