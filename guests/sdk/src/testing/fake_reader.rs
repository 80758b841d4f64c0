use std::cell::RefCell;
use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::selector;
use crate::{ClusterReader, Kind, LogLevel, Manifest, ReadError, Readiness};

/// A [`ClusterReader`] in memory: the objects that a guest can read, and the lines that it logged.
#[derive(Clone, Debug, Default)]
pub struct FakeReader {
    objects: Vec<(Value, Readiness)>,
    declared: BTreeSet<(String, String)>,
    unserved: BTreeSet<(String, String)>,
    forbidden: BTreeSet<(String, String)>,
    now_ms: f64,
    log: RefCell<Vec<(LogLevel, String)>>,
}

impl FakeReader {
    /// Creates a reader without objects, for a guest with this manifest.
    pub fn of(manifest: &Manifest) -> Self {
        let mut reader = Self::default();
        reader.declare(manifest);
        reader
    }

    /// Lets the guest read the kinds of a manifest.
    pub(super) fn declare(&mut self, manifest: &Manifest) {
        let kinds = manifest
            .primary
            .iter()
            .chain(manifest.owned.iter().map(|owned| &owned.kind))
            .chain(&manifest.reads);
        let names = kinds.map(|kind| (kind.api_version.clone(), kind.kind.clone()));
        self.declared.extend(names);
    }

    /// Adds an object with its readiness.
    pub fn add(&mut self, object: Value, readiness: Readiness) {
        self.objects.push((object, readiness));
    }

    /// Makes reads of this kind fail with [`ReadError::NotServed`].
    pub fn do_not_serve(&mut self, kind: &Kind) {
        self.unserved.insert((kind.api_version.clone(), kind.kind.clone()));
    }

    /// Makes reads of this kind fail with [`ReadError::Forbidden`].
    pub fn forbid(&mut self, kind: &Kind) {
        self.forbidden.insert((kind.api_version.clone(), kind.kind.clone()));
    }

    /// Sets the time, in milliseconds since 1970-01-01T00:00:00Z.
    pub fn set_now_ms(&mut self, now_ms: f64) {
        self.now_ms = now_ms;
    }

    /// Returns the lines that the guest has logged.
    pub fn logged(&self) -> Vec<(LogLevel, String)> {
        self.log.borrow().clone()
    }

    fn check(
        &self,
        verb: &str,
        api_version: &str,
        kind: &str,
        namespace: &str,
    ) -> Result<(), ReadError> {
        let key = (api_version.to_owned(), kind.to_owned());
        if !self.declared.contains(&key) {
            return Err(ReadError::Undeclared);
        }
        if self.unserved.contains(&key) {
            return Err(ReadError::NotServed);
        }
        if self.forbidden.contains(&key) {
            let place = if namespace.is_empty() { "all namespaces" } else { namespace };
            return Err(ReadError::Forbidden(format!("{verb} {kind} ({api_version}) in {place}")));
        }
        Ok(())
    }

    fn of_kind<'a>(
        &'a self,
        api_version: &'a str,
        kind: &'a str,
    ) -> impl Iterator<Item = &'a (Value, Readiness)> {
        self.objects.iter().filter(move |(object, _)| {
            object["apiVersion"] == api_version && object["kind"] == kind
        })
    }
}

impl ClusterReader for FakeReader {
    fn get(
        &self,
        api_version: &str,
        kind: &str,
        namespace: &str,
        name: &str,
    ) -> Result<String, ReadError> {
        self.check("get", api_version, kind, namespace)?;
        self.of_kind(api_version, kind)
            .find(|(object, _)| {
                text(object, "namespace") == namespace && text(object, "name") == name
            })
            .map(|(object, readiness)| {
                json!({ "object": object, "readiness": readiness }).to_string()
            })
            .ok_or(ReadError::NotFound)
    }

    fn list(
        &self,
        api_version: &str,
        kind: &str,
        namespace: &str,
        selector: &str,
    ) -> Result<String, ReadError> {
        self.check("list", api_version, kind, namespace)?;
        let mut items = Vec::new();
        for (object, readiness) in self.of_kind(api_version, kind) {
            if (namespace.is_empty() || text(object, "namespace") == namespace)
                && selector::matches(selector, object).map_err(ReadError::Invalid)?
            {
                items.push((object, readiness));
            }
        }
        items.sort_by_key(|(object, _)| (text(object, "namespace"), text(object, "name")));
        let items: Vec<Value> = items
            .into_iter()
            .map(|(object, readiness)| json!({ "object": object, "readiness": readiness }))
            .collect();
        Ok(json!({ "items": items }).to_string())
    }

    fn now_ms(&self) -> f64 {
        self.now_ms
    }

    fn log(&self, level: LogLevel, message: &str) {
        self.log.borrow_mut().push((level, message.to_owned()));
    }
}

fn text<'a>(object: &'a Value, member: &str) -> &'a str {
    object["metadata"][member].as_str().unwrap_or_default()
}
