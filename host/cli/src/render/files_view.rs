//! The objects of files as the cluster that a guest sees.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use anyhow::{Context as _, bail};
use innkeeper_contract::{Kind, Manifest, Readiness, Unapplied, ValueSourceKind};
use innkeeper_core::object::{Entry, Operation, holds_secrets};
use innkeeper_core::observed::{self, Observed};
use innkeeper_core::ownership::Primary;
use innkeeper_core::plan::Lookup;
use innkeeper_core::value_source::ValueSourceGrant;
use innkeeper_core::{Object, ObjectKey, ObjectRef, Selector, foreign};
use innkeeper_operator::evaluate::{ClusterView, OwnedObjects};
use innkeeper_sandbox::{CallError, Host, Level, ReadError, ResourceKind};
use jiff::Timestamp;
use serde_json::Value;

use crate::objects::InputObject;
use crate::out;

/// A cluster that has the objects of some files.
pub(super) struct FilesView {
    kinds: Vec<Kind>,
    unserved: Vec<Kind>,
    primary: Arc<Object>,
    /// Whether the file of the primary has no uid.
    is_without_uid: bool,
    parameters: String,
    objects: BTreeMap<(Kind, ObjectKey), (Arc<Object>, Readiness)>,
    /// The Secrets whose values the guest does not see.
    hidden: BTreeSet<ObjectKey>,
    now: Timestamp,
}

impl FilesView {
    /// The view of one primary, by its place among the objects.
    ///
    /// # Errors
    /// If an object is no Kubernetes object or is given twice, or if the guest does not declare an
    /// unserved kind.
    pub(super) fn new(
        manifest: &Manifest,
        primary: usize,
        given: &[InputObject],
        unserved: &[String],
        parameters: &Value,
        now: Timestamp,
    ) -> anyhow::Result<Self> {
        let owned = manifest.owned.iter().map(|owned| &owned.kind);
        let mut kinds: Vec<Kind> =
            [&manifest.primary].into_iter().chain(owned).chain(&manifest.reads).cloned().collect();
        kinds.sort();
        kinds.dedup();
        let unserved = unserved.iter().map(|name| {
            kinds
                .iter()
                .find(|kind| format!("{}/{}", kind.api_version, kind.kind) == *name)
                .cloned()
                .with_context(|| format!("--unserved {name}: the guest declares no such kind"))
        });
        let unserved = unserved.collect::<anyhow::Result<Vec<_>>>()?;
        let mut objects = BTreeMap::new();
        for given in given {
            let Some(kind) = kinds.iter().find(|kind| given.is(kind)) else {
                out::eprint(&format!(
                    "innkeeper: {}: the guest declares no {} {}, so it cannot see it",
                    given.place,
                    given.text("/apiVersion"),
                    given.text("/kind"),
                ));
                continue;
            };
            let (mut object, readiness) = given.decode(kind)?;
            if object.uid.is_empty() {
                // Objects differ by uid. The guest sees the file's text, without it.
                object.uid = format!("{kind} {}", object.key).into();
            }
            let key = (kind.clone(), object.key.clone());
            if objects.insert(key, (Arc::new(object), readiness)).is_some() {
                bail!("{}: {} {} is given twice", given.place, kind, given.text("/metadata/name"));
            }
        }
        let (primary, _) = given[primary].decode(&manifest.primary)?;
        let is_without_uid = primary.uid.is_empty();
        let primary = objects
            .get(&(manifest.primary.clone(), primary.key.clone()))
            .map(|(primary, _)| primary.clone())
            .context("the primary is among the objects")?;
        let parameters = if parameters.is_null() { String::new() } else { parameters.to_string() };
        let hidden = BTreeSet::new();
        Ok(Self { kinds, unserved, primary, is_without_uid, parameters, objects, hidden, now })
    }

    /// The view of a guest that sees no values of the Secrets among these sources.
    pub(super) fn hiding(mut self, sources: &[ValueSourceGrant]) -> Self {
        let secrets = sources.iter().filter(|source| source.kind == ValueSourceKind::Secret);
        self.hidden = secrets.map(|source| source.key.clone()).collect();
        self
    }

    /// The primary.
    pub(super) fn primary(&self) -> &Arc<Object> {
        &self.primary
    }

    /// Marks the objects that the primary has made before as the operator would have: files seldom
    /// have uids, and `kubectl get` leaves out managedFields.
    pub(super) fn mark_as_made(&mut self, owner: &Primary) {
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
        for (object, _) in self.objects.values_mut() {
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

    /// An object as the guest sees it.
    fn shown<'o>(&self, kind: &Kind, object: &'o Object) -> Cow<'o, Object> {
        if holds_secrets(kind) && self.hidden.contains(&object.key) {
            Cow::Owned(object.as_value_source())
        } else {
            Cow::Borrowed(object)
        }
    }

    fn kind(&self, kind: &ResourceKind) -> Result<&Kind, ReadError> {
        let found = |declared: &&Kind| {
            declared.api_version == kind.api_version && declared.kind == kind.kind
        };
        if self.unserved.iter().any(|unserved| found(&unserved)) {
            return Err(ReadError::NotServed);
        }
        self.kinds.iter().find(found).ok_or(ReadError::Undeclared)
    }
}

impl ClusterView for FilesView {
    fn owned(&mut self) -> OwnedObjects {
        let uid = &*self.primary.uid;
        let owned = self.objects.iter().filter(|(_, (object, _))| object.is_made_for(uid));
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
                let (_, readiness) = self.objects.get(&key)?;
                Some((self.shown(&object_ref.kind, object), readiness.clone()))
            })
            .collect();
        let owned: Vec<_> =
            owned.iter().map(|(object, readiness)| (&**object, readiness.clone())).collect();
        let document = Observed {
            object: primary,
            owned: &owned,
            unapplied,
            unserved: &self.unserved,
            parameters: &self.parameters,
            deleting: primary.is_terminating(),
        };
        Ok(document.document())
    }

    fn lookup(&mut self, object_ref: &ObjectRef) -> Lookup {
        if self.unserved.contains(&object_ref.kind) {
            return Lookup::NotServed;
        }
        match self.objects.get(&((*object_ref.kind).clone(), object_ref.key.clone())) {
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
        _: usize,
    ) -> Result<String, ReadError> {
        let kind = self.kind(kind)?.clone();
        let key = (kind, ObjectKey::new(namespace, name));
        let (object, readiness) = self.objects.get(&key).ok_or(ReadError::NotFound)?;
        Ok(observed::object_document(&self.shown(&key.0, object), readiness))
    }

    fn list(
        &mut self,
        kind: &ResourceKind,
        namespace: &str,
        label_selector: &str,
        _: usize,
    ) -> Result<String, ReadError> {
        let kind = self.kind(kind)?;
        let selector: Selector =
            label_selector.parse().map_err(|error| ReadError::Invalid(format!("{error}")))?;
        let objects: Vec<_> = self
            .objects
            .iter()
            .filter(|((of, key), (object, _))| {
                of == kind
                    && (namespace.is_empty() || key.namespace() == namespace)
                    && selector.matches(&object.labels)
            })
            .map(|((of, _), (object, readiness))| (self.shown(of, object), readiness.clone()))
            .collect();
        let objects: Vec<_> =
            objects.iter().map(|(object, readiness)| (&**object, readiness.clone())).collect();
        Ok(observed::list_document(&objects))
    }

    fn now_ms(&mut self) -> u64 {
        u64::try_from(self.now.as_millisecond()).unwrap_or(0)
    }

    fn log(&mut self, level: Level, message: &str) {
        let level = match level {
            Level::Debug => "debug",
            Level::Info => "info",
            Level::Warn => "warn",
            Level::Error => "error",
        };
        let line = format_args!("guest: {level}: {message}");
        out::eprint(&foreign::one_line(line, foreign::LINE_BYTES_MAX));
    }
}
