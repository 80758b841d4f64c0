//! The fields of an object: what an apply of it would own.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::apply::fieldset::{Element, FieldSet};
use crate::apply::item;
use crate::apply::node::{Atom, List, Map, Node};

/// The set of the fields of `value`.
pub(crate) fn fields(node: Node<'_>, value: &Value) -> FieldSet {
    let mut set = FieldSet::default();
    walk(node, value, &mut Vec::new(), &mut set);
    set
}

fn walk(node: Node<'_>, value: &Value, path: &mut Vec<Element>, set: &mut FieldSet) {
    match node.atom(Some(value)) {
        Atom::Scalar(_) => set.insert(path),
        Atom::List(list) => walk_list(list, value, path, set),
        Atom::Map(map) => walk_map(map, value, path, set),
    }
}

fn walk_list(list: List<'_>, value: &Value, path: &mut Vec<Element>, set: &mut FieldSet) {
    if list.is_atomic() {
        set.insert(path);
        return;
    }
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
        path.push(step.clone());
        // What is there twice is owned as a whole.
        if !twice.contains(step) {
            walk(list.element(), item, path, set);
        }
        set.insert(path);
        path.pop();
    }
}

fn walk_map(map: Map<'_>, value: &Value, path: &mut Vec<Element>, set: &mut FieldSet) {
    if map.is_atomic() {
        set.insert(path);
        return;
    }
    let Some(members) = value.as_object() else { return };
    for (name, member) in members {
        path.push(Element::field(name));
        walk(map.member(name), member, path, set);
        let empty = member.is_null() || member.as_object().is_some_and(serde_json::Map::is_empty);
        if empty || map.field(name).is_none() {
            set.insert(path);
        }
        path.pop();
    }
}
