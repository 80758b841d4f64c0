//! The fields that a run reads, found from the types into which it deserializes objects.
//!
//! The host does not run the guest again for a change of other fields. A type that takes everything
//! ([`Raw`](crate::Raw), `serde_json::Value`, a map) reads everything; so does one that this module
//! cannot follow.

use std::cell::RefCell;
use std::collections::BTreeMap;

use innkeeper_contract::ReadFields;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::type_fields::probe::{Found, Shape, Step, UNKNOWN_FIELD, probe};

/// The deepest level at which fields are listed one by one. Types may contain themselves.
const DEPTH_MAX: usize = 12;

/// The most fields of a type that are listed one by one: each costs a moment in every run.
const FIELDS_MAX: usize = 256;

/// The fields that one run has read so far, by kind.
#[derive(Default)]
pub(crate) struct ReadFieldsRecord {
    kinds: RefCell<BTreeMap<(String, String), KindRecord>>,
}

#[derive(Default)]
struct KindRecord {
    /// The functions that find the fields of the types so far: two types share one only if they
    /// have the same fields.
    types: Vec<usize>,
    fields: Option<Map<String, Value>>,
}

impl ReadFieldsRecord {
    /// Records that the run deserializes objects of a kind into `T`.
    pub(crate) fn add<T: DeserializeOwned>(&self, api_version: &str, kind: &str) {
        let find: fn() -> Map<String, Value> = fields::<T>;
        let mut kinds = self.kinds.borrow_mut();
        let record = kinds.entry((api_version.to_owned(), kind.to_owned())).or_default();
        if record.types.contains(&(find as usize)) {
            return;
        }
        record.types.push(find as usize);
        let found = find();
        record.fields = Some(match record.fields.take() {
            Some(fields) => union(fields, found),
            None => found,
        });
    }

    /// Returns the fields of each kind.
    pub(crate) fn list(&self) -> Vec<ReadFields> {
        let kinds = self.kinds.borrow();
        let list = kinds.iter().map(|((api_version, kind), record)| ReadFields {
            api_version: api_version.clone(),
            kind: kind.clone(),
            fields: record.fields.clone().unwrap_or_default(),
        });
        list.collect()
    }
}

/// Returns the fields that a type deserializes, as a mask of the contract.
pub(crate) fn fields<T: DeserializeOwned>() -> Map<String, Value> {
    let mut finder = Finder { probe: &probe::<T>, path: Vec::new(), left: FIELDS_MAX };
    // An empty mask is the whole object, and a type without fields reads no field.
    finder.below().unwrap_or_else(|| mask("f:apiVersion", Map::new()))
}

struct Finder<'a> {
    probe: &'a dyn Fn(&[Step<'a>]) -> Found,
    path: Vec<Step<'a>>,
    left: usize,
}

impl<'a> Finder<'a> {
    /// The mask at the present path; empty for the whole value, `None` for an object of which the
    /// type reads no member.
    fn below(&mut self) -> Option<Map<String, Value>> {
        if self.path.len() > DEPTH_MAX {
            return Some(Map::new());
        }
        match (self.probe)(&self.path).shape {
            Shape::Struct(names) => self.members(names),
            Shape::List => Some(self.every(Step::Item)),
            Shape::Map => Some(self.every(Step::Value)),
            _ => Some(Map::new()),
        }
    }

    fn members(&mut self, names: &'static [&'static str]) -> Option<Map<String, Value>> {
        // A type that refuses unknown fields reads their names, and one that keeps them their
        // values.
        let unknown = self.found(Step::Field(UNKNOWN_FIELD));
        if names.len() > self.left || !matches!(unknown.shape, Shape::Ignored) {
            return Some(Map::new());
        }
        self.left -= names.len();
        if names.is_empty() {
            return None;
        }
        let mut fields = Map::new();
        for name in names {
            // At the end of a path, an object without members is a whole value.
            let below = self.at(Step::Field(name)).unwrap_or_default();
            fields.insert(format!("f:{name}"), below.into());
        }
        Some(fields)
    }

    /// The mask of a list or a map: the whole value if its items are whole.
    fn every(&mut self, step: Step<'a>) -> Map<String, Value> {
        if !self.found(step).is_reached {
            return Map::new();
        }
        match self.at(step) {
            Some(below) if !below.is_empty() => mask("*", below),
            _ => Map::new(),
        }
    }

    fn at(&mut self, step: Step<'a>) -> Option<Map<String, Value>> {
        self.path.push(step);
        let found = self.below();
        self.path.pop();
        found
    }

    /// What the type asks for at a step.
    fn found(&mut self, step: Step<'a>) -> Found {
        self.path.push(step);
        let found = (self.probe)(&self.path);
        self.path.pop();
        found
    }
}

fn mask(element: &str, below: Map<String, Value>) -> Map<String, Value> {
    Map::from_iter([(element.to_owned(), below.into())])
}

/// The fields of both masks.
pub(crate) fn union(one: Map<String, Value>, other: Map<String, Value>) -> Map<String, Value> {
    if one.is_empty() || other.is_empty() {
        return Map::new();
    }
    let mut union = one;
    for (element, below) in other {
        let merged = match (union.remove(&element), below) {
            (Some(Value::Object(own)), Value::Object(below)) => self::union(own, below).into(),
            (_, below) => below,
        };
        union.insert(element, merged);
    }
    union
}

#[cfg(test)]
mod tests;
