//! Merging what is applied into what is there.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map as JsonMap, Value};

use crate::apply::fieldset::Element;
use crate::apply::item;
use crate::apply::node::{Atom, List, Map, Node};

/// Merges `applied` into `live`. Both have the shape of the schema.
pub(crate) fn merge(node: Node<'_>, live: &Value, applied: &Value) -> Value {
    both(node, Some(live), Some(applied)).unwrap_or(Value::Null)
}

fn both(node: Node<'_>, live: Option<&Value>, applied: Option<&Value>) -> Option<Value> {
    let atom = if applied.is_none() { node.atom(live) } else { node.atom(applied) };
    match atom {
        Atom::Scalar(_) => latest(live, applied),
        Atom::Map(map) => maps(map, live, applied),
        Atom::List(list) => lists(list, live, applied),
    }
}

fn latest(live: Option<&Value>, applied: Option<&Value>) -> Option<Value> {
    applied.or(live).cloned()
}

fn maps(map: Map<'_>, live: Option<&Value>, applied: Option<&Value>) -> Option<Value> {
    let old = live.and_then(Value::as_object);
    let new = applied.and_then(Value::as_object);
    // Of two that are empty or null the applied one is kept as it is.
    let empty = |side: Option<&JsonMap<String, Value>>| side.is_none_or(JsonMap::is_empty);
    if map.is_atomic() || (empty(old) && empty(new)) {
        return latest(live, applied);
    }
    let mut result = JsonMap::new();
    let none = JsonMap::new();
    let (old, new) = (old.unwrap_or(&none), new.unwrap_or(&none));
    for (name, before) in old {
        if let Some(value) = both(map.member(name), Some(before), new.get(name)) {
            result.insert(name.clone(), value);
        }
    }
    for (name, after) in new {
        if !old.contains_key(name)
            && let Some(value) = both(map.member(name), None, Some(after))
        {
            result.insert(name.clone(), value);
        }
    }
    (!result.is_empty()).then_some(Value::Object(result))
}

/// The items of a side with their steps; the value of a step that is there twice is null.
struct Side<'v> {
    items: Vec<(Element, &'v Value)>,
    by_step: BTreeMap<Element, Option<&'v Value>>,
}

fn side<'v>(list: List<'_>, values: &'v [Value]) -> Side<'v> {
    let mut result = Side { items: Vec::new(), by_step: BTreeMap::new() };
    for value in values {
        if let Ok(step) = item::element(list, value) {
            result.by_step.entry(step.clone()).and_modify(|one| *one = None).or_insert(Some(value));
            result.items.push((step, value));
        }
    }
    result
}

/// What is in both keeps the applied order; what is only live stays where it was, as far as that
/// goes.
fn lists<'v>(list: List<'_>, live: Option<&'v Value>, applied: Option<&'v Value>) -> Option<Value> {
    let values = |side: Option<&'v Value>| {
        side.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
    };
    let (old, new) = (values(live), values(applied));
    if list.is_atomic() || (old.is_empty() && new.is_empty()) {
        return latest(live, applied);
    }
    let (left, right) = (side(list, old), side(list, new));
    let shared: Vec<&Element> = right
        .items
        .iter()
        .map(|(step, _)| step)
        .filter(|step| left.by_step.contains_key(step))
        .collect();
    let mut shared = shared.into_iter();
    let mut next = shared.next();
    let mut merged = BTreeSet::new();
    let mut result = Vec::new();
    let null = Value::Null;
    let live_of = |step: &Element| left.by_step.get(step).map(|one| one.unwrap_or(&null));
    let applied_of = |step: &Element| right.by_step.get(step).map(|one| one.unwrap_or(&null));
    let (mut l, mut r) = (0, 0);
    while l < left.items.len() || r < right.items.len() {
        if let (Some((old, _)), Some((new, _))) = (left.items.get(l), right.items.get(r)) {
            if old == new {
                merged.insert(old.clone());
                result.extend(both(list.element(), live_of(old), applied_of(old)));
                l += 1;
                r += 1;
                next = shared.next();
                continue;
            }
            if right.by_step.contains_key(old) && next.is_some_and(|next| next != old) {
                // Its turn comes later.
                l += 1;
                continue;
            }
        }
        if let Some((step, value)) = left.items.get(l) {
            if !right.by_step.contains_key(step) {
                result.extend(both(list.element(), Some(value), None));
                l += 1;
                continue;
            } else if merged.contains(step) {
                l += 1;
            }
        }
        if let Some((step, _)) = right.items.get(r) {
            merged.insert(step.clone());
            result.extend(both(list.element(), live_of(step), applied_of(step)));
            r += 1;
            if next == Some(step) {
                next = shared.next();
            }
        }
    }
    (!result.is_empty()).then_some(Value::Array(result))
}
