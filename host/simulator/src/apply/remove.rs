//! Taking fields out of an object.

use serde_json::{Map as JsonMap, Value};

use crate::apply::fieldset::{Element, FieldSet};
use crate::apply::item;
use crate::apply::node::{Atom, Node};

/// `value` without the fields in `gone`. What is emptied by that becomes null.
pub(crate) fn remove(node: Node<'_>, value: &Value, gone: &FieldSet) -> Value {
    match node.atom(Some(value)) {
        Atom::Scalar(_) => value.clone(),
        Atom::List(list) => {
            let Some(items) = value.as_array() else { return Value::Null };
            if list.is_atomic() {
                return Value::Null;
            }
            let mut kept = Vec::new();
            for one in items {
                let Ok(step) = item::element(list, one) else { continue };
                if gone.has(&step) {
                    continue;
                }
                kept.push(match gone.below(&step) {
                    Some(below) => remove(list.element(), one, below),
                    None => one.clone(),
                });
            }
            if kept.is_empty() { Value::Null } else { Value::Array(kept) }
        }
        Atom::Map(map) => {
            let Some(members) = value.as_object() else { return Value::Null };
            if map.is_atomic() {
                return Value::Null;
            }
            let mut kept = JsonMap::new();
            for (name, member) in members {
                let step = Element::field(name);
                if gone.has(&step) {
                    continue;
                }
                let rest = match gone.below(&step) {
                    Some(below) => remove(map.member(name), member, below),
                    None => member.clone(),
                };
                kept.insert(name.clone(), rest);
            }
            if kept.is_empty() { Value::Null } else { Value::Object(kept) }
        }
    }
}
