//! The fields of an object: what an apply of it would own.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::apply::fieldset::{Element, FieldSet};
use crate::apply::item;
use crate::apply::node::{Atom, List, Map, Node};

/// The set of the fields of `value`.
pub(crate) fn fields(node: Node<'_>, value: &Value) -> FieldSet {
    let mut set = FieldSet::default();
    walk(node, value, &mut set);
    set
}

/// Puts what is below `value` into `set`. Returns whether the value is owned as a whole.
fn walk(node: Node<'_>, value: &Value, set: &mut FieldSet) -> bool {
    match node.atom(Some(value)) {
        Atom::Scalar(_) => true,
        Atom::List(list) if list.is_atomic() => true,
        Atom::Map(map) if map.is_atomic() => true,
        Atom::List(list) => {
            walk_list(list, value, set);
            false
        }
        Atom::Map(map) => {
            walk_map(map, value, set);
            false
        }
    }
}

fn walk_list(list: List<'_>, value: &Value, set: &mut FieldSet) {
    let Some(items) = value.as_array() else { return };
    let steps: Vec<_> = items.iter().map(|one| item::element(list, one).ok()).collect();
    let mut seen = BTreeSet::new();
    let mut twice = BTreeSet::new();
    for step in steps.iter().flatten() {
        if !seen.insert(step) {
            twice.insert(step);
        }
    }
    for (item, step) in items.iter().zip(&steps) {
        let Some(step) = step else { continue };
        let mut below = FieldSet::default();
        // What is there twice is owned as a whole.
        if !twice.contains(step) {
            walk(list.element(), item, &mut below);
        }
        set.put(step, true, below);
    }
}

fn walk_map(map: Map<'_>, value: &Value, set: &mut FieldSet) {
    for (name, member) in value.as_object().into_iter().flatten() {
        let mut below = FieldSet::default();
        let whole = walk(map.member(name), member, &mut below);
        let empty = member.is_null() || member.as_object().is_some_and(serde_json::Map::is_empty);
        set.put(&Element::field(name), whole || empty || map.field(name).is_none(), below);
    }
}
