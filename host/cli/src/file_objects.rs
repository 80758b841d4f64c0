//! The objects of files as a guest reads them.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use anyhow::{Context as _, bail};
use innkeeper_contract::{Kind, Manifest, Readiness, ValueSourceKind};
use innkeeper_core::object::holds_secrets;
use innkeeper_core::value_source::ValueSourceGrant;
use innkeeper_core::{KindMasks, Object, ObjectKey, Selector, foreign, observed};
use innkeeper_sandbox::{Host, Level, ReadError, ResourceKind};
use jiff::Timestamp;

use crate::objects::InputObject;
use crate::out;

/// The objects of some files, by kind, namespace and name.
pub(crate) type ByKind = BTreeMap<(Kind, ObjectKey), (Arc<Object>, Readiness)>;

/// A cluster that has the objects of some files.
#[derive(Clone)]
pub(crate) struct FileObjects {
    kinds: Vec<Kind>,
    unserved: Vec<Kind>,
    objects: ByKind,
    /// The Secrets whose values the guest does not see.
    hidden: BTreeSet<ObjectKey>,
    /// The fields that the guest gets of objects of some kinds.
    masks: KindMasks,
    now: Timestamp,
}

impl FileObjects {
    /// The objects of the kinds that a guest declares.
    ///
    /// # Errors
    /// If an object is no Kubernetes object or is given twice, or if the guest does not declare an
    /// unserved kind.
    pub(crate) fn new<'k>(
        kinds: impl Iterator<Item = &'k Kind>,
        given: &[InputObject],
        unserved: &[String],
        now: Timestamp,
    ) -> anyhow::Result<Self> {
        let mut kinds: Vec<Kind> = kinds.cloned().collect();
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
            let Some(kind) = kinds.iter().find(|kind| given.is(kind)) else { continue };
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
        Ok(Self {
            kinds,
            unserved,
            objects,
            hidden: BTreeSet::new(),
            masks: KindMasks::default(),
            now,
        })
    }

    /// The objects for a guest that sees no values of the Secrets among these sources.
    pub(crate) fn hiding(mut self, sources: &[ValueSourceGrant]) -> Self {
        let secrets = sources.iter().filter(|source| source.kind == ValueSourceKind::Secret);
        self.hidden = secrets.map(|source| source.key.clone()).collect();
        self
    }

    /// The objects for a guest that gets the fields of its manifest only.
    pub(crate) fn within(self, manifest: &Manifest) -> Self {
        Self { masks: KindMasks::of_manifest(manifest), ..self }
    }

    /// The same objects at another time.
    pub(crate) fn at(self, now: Timestamp) -> Self {
        Self { now, ..self }
    }

    /// Whether the guest declares the kind of an object, so that it can read it.
    pub(crate) fn declares(&self, object: &InputObject) -> bool {
        self.kinds.iter().any(|kind| object.is(kind))
    }

    /// Removes an object, if it is there.
    pub(crate) fn remove(&mut self, object: &InputObject) {
        self.objects.retain(|(kind, key), _| !object.is(kind) || object.stored_key(kind) != *key);
    }

    /// All objects.
    pub(crate) fn all(&self) -> &ByKind {
        &self.objects
    }

    /// All objects, for changes.
    pub(crate) fn all_mut(&mut self) -> &mut ByKind {
        &mut self.objects
    }

    /// The kinds that the API server does not serve.
    pub(crate) fn unserved(&self) -> &[Kind] {
        &self.unserved
    }

    /// An object as the guest sees it.
    pub(crate) fn shown<'o>(&self, kind: &Kind, object: &'o Object) -> Cow<'o, Object> {
        if holds_secrets(kind) && self.hidden.contains(&object.key) {
            let hidden = object.as_value_source();
            Cow::Owned(self.masked(kind, &hidden).into_owned())
        } else {
            self.masked(kind, object)
        }
    }

    /// The fields of an object that the guest gets.
    pub(crate) fn masked<'o>(&self, kind: &Kind, object: &'o Object) -> Cow<'o, Object> {
        self.masks.shown(kind, object)
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

impl Host for FileObjects {
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
