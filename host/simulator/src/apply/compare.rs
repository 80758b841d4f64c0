//! Compares two objects.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::apply::fieldset::{Element, FieldSet};
use crate::apply::item;
use crate::apply::node::{Atom, List, Map, Node};
use crate::types::value;

/// The fields that only the first object has, that differ, and that only the second has.
#[derive(Clone, Debug, Default)]
pub(crate) struct Comparison {
    pub(crate) removed: FieldSet,
    pub(crate) modified: FieldSet,
    pub(crate) added: FieldSet,
}

impl Comparison {
    /// The same without some fields and all below them.
    pub(crate) fn without(mut self, ignored: &FieldSet) -> Self {
        self.removed.cut(ignored);
        self.modified.cut(ignored);
        self.added.cut(ignored);
        self
    }
}

/// Compares two objects of one schema, without `metadata.managedFields`.
pub(crate) fn compare(node: Node<'_>, old: &Value, new: &Value) -> Comparison {
    let mut walk = Walk { path: Vec::new(), result: Comparison::default() };
    walk.compare(node, Some(old), Some(new));
    walk.result
}

struct Walk {
    path: Vec<Element>,
    result: Comparison,
}

/// Both values of a field; at least one exists.
type Sides<'v> = (Option<&'v Value>, Option<&'v Value>);

impl Walk {
    fn compare(&mut self, node: Node<'_>, old: Option<&Value>, new: Option<&Value>) {
        let (before, after) = (node.atom(old), node.atom(new));
        let leaf = if new.is_none() {
            self.atom(&before, (old, new))
        } else {
            if old.is_some() && !before.is_like(&after) {
                self.atom(&before, (old, new));
            }
            self.atom(&after, (old, new))
        };
        if !leaf {
            if old.is_none() {
                self.result.added.insert(&self.path);
            } else if new.is_none() {
                self.result.removed.insert(&self.path);
            }
        }
    }

    /// Whether the field was compared as a whole.
    fn atom(&mut self, atom: &Atom<'_>, sides: Sides<'_>) -> bool {
        match atom {
            Atom::Scalar(_) => self.leaf(sides),
            Atom::List(list) => self.list(*list, sides),
            Atom::Map(map) => self.map(*map, sides),
        }
    }

    fn leaf(&mut self, (old, new): Sides<'_>) -> bool {
        match (old, new) {
            (None, _) => self.result.added.insert(&self.path),
            (_, None) => self.result.removed.insert(&self.path),
            (Some(old), Some(new)) if !value::same(old, new) => {
                self.result.modified.insert(&self.path);
            }
            _ => {}
        }
        true
    }

    fn map<'v>(&mut self, map: Map<'_>, sides: Sides<'v>) -> bool {
        let none = serde_json::Map::new();
        let members = |side: Option<&'v Value>| side.and_then(Value::as_object);
        let old = members(sides.0).unwrap_or(&none);
        let new = members(sides.1).unwrap_or(&none);
        if map.is_atomic() || (old.is_empty() && new.is_empty()) {
            return self.leaf(sides);
        }
        let in_metadata = matches!(&*self.path, [Element::Field(name)] if name == "metadata");
        let skipped = |name: &str| in_metadata && name == "managedFields";
        for (name, before) in old {
            if !skipped(name) {
                self.member(map, name, Some(before), new.get(name));
            }
        }
        for (name, after) in new {
            if !old.contains_key(name) && !skipped(name) {
                self.member(map, name, None, Some(after));
            }
        }
        false
    }

    fn member(&mut self, map: Map<'_>, name: &str, old: Option<&Value>, new: Option<&Value>) {
        // Most of an object is the same.
        if let (Some(old), Some(new)) = (old, new)
            && value::same(old, new)
        {
            return;
        }
        self.path.push(Element::field(name));
        self.compare(map.member(name), old, new);
        self.path.pop();
    }

    fn list<'v>(&mut self, list: List<'_>, sides: Sides<'v>) -> bool {
        let items = |side: Option<&'v Value>| {
            side.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
        };
        let (old, new) = (items(sides.0), items(sides.1));
        if list.is_atomic() || (old.is_empty() && new.is_empty()) {
            return self.leaf(sides);
        }
        let mut both: BTreeMap<Element, (Vec<&Value>, Vec<&Value>)> = BTreeMap::new();
        for one in old {
            if let Ok(step) = item::element(list, one) {
                both.entry(step).or_default().0.push(one);
            }
        }
        for one in new {
            if let Ok(step) = item::element(list, one) {
                both.entry(step).or_default().1.push(one);
            }
        }
        for (step, (old, new)) in both {
            self.path.push(step);
            self.items(list, &old, &new);
            self.path.pop();
        }
        false
    }

    /// The items of one step, of which there may be several.
    fn items(&mut self, list: List<'_>, old: &[&Value], new: &[&Value]) {
        match (old.len(), new.len()) {
            (0 | 1, 0 | 1) => {
                self.compare(list.element(), old.first().copied(), new.first().copied());
            }
            (2.., 2..) => {
                let equal = old.len() == new.len()
                    && old.iter().zip(new).all(|(old, new)| value::same(old, new));
                if !equal {
                    self.result.modified.insert(&self.path);
                }
            }
            (2.., _) => {
                if let Some(first) = new.first() {
                    self.compare(list.element(), None, Some(first));
                }
                self.result.removed.insert(&self.path);
            }
            (_, _) => {
                if let Some(first) = old.first() {
                    self.compare(list.element(), Some(first), None);
                }
                self.result.added.insert(&self.path);
            }
        }
    }
}
