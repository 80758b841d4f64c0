//! Strategic merge patches: merge patches that know how lists are keyed.

use serde_json::{Map, Value};

use crate::apply::shape::go;
use crate::schema::{Additional, Schema, Strategy};
use crate::status_error::StatusError;
use crate::value::same;

const ORDER: &str = "$setElementOrder/";
const DELETE: &str = "$deleteFromPrimitiveList/";

/// The object after a patch.
pub(super) fn apply(schema: &Schema, object: &Value, patch: &Value) -> Result<Value, StatusError> {
    let (Value::Object(object), Value::Object(patch)) = (object, patch) else {
        return Err(StatusError::bad_request("json: cannot unmarshal into an object"));
    };
    Ok(Value::Object(map(Some(schema), object.clone(), patch)?))
}

fn directive(patch: &Map<String, Value>) -> Option<&str> {
    patch.get("$patch").and_then(Value::as_str)
}

fn member<'a>(schema: Option<&'a Schema>, name: &str) -> Option<&'a Schema> {
    let schema = schema?.resolved();
    match (schema.properties.get(name), &schema.additional) {
        (Some(inner), _) => Some(inner),
        (None, Additional::Of(inner)) => Some(inner),
        _ => None,
    }
}

/// A value that is new: without directives and nulls.
fn clean(value: &Value) -> Value {
    match value {
        Value::Object(map) => map
            .iter()
            .filter(|(name, value)| !name.starts_with('$') && !value.is_null())
            .map(|(name, value)| (name.clone(), clean(value)))
            .collect::<Map<_, _>>()
            .into(),
        Value::Array(items) => items
            .iter()
            .filter(|item| item.as_object().is_none_or(|map| directive(map).is_none()))
            .map(clean)
            .collect(),
        other => other.clone(),
    }
}

fn map(
    schema: Option<&Schema>,
    mut object: Map<String, Value>,
    patch: &Map<String, Value>,
) -> Result<Map<String, Value>, StatusError> {
    match directive(patch) {
        Some("replace") => {
            let mut rest = patch.clone();
            rest.remove("$patch");
            return Ok(rest);
        }
        Some("delete") => return Ok(Map::new()),
        None => {}
        Some(other) => {
            let shown = go(&Value::Object(patch.clone()));
            let text = format!("unknown patch type: {other} in map: {shown}");
            return Err(StatusError::unforeseen(text));
        }
    }
    if let Some(kept) = patch.get("$retainKeys") {
        let kept = kept.as_array().map(Vec::as_slice).unwrap_or_default();
        let keeps = |name: &str| kept.iter().any(|one| one == name);
        let mut said = patch.iter().filter(|(name, value)| {
            let directive =
                *name == "$retainKeys" || name.starts_with(ORDER) || name.starts_with(DELETE);
            !value.is_null() && !directive
        });
        if said.any(|(name, _)| !keeps(name)) {
            return Err(StatusError::bad_request("invalid patch format of retainKeys"));
        }
        object.retain(|name, _| keeps(name));
    }
    for (name, order) in patch {
        if let Some(list) = name.strip_prefix(ORDER)
            && let (Some(items), Some(order)) = (patch.get(list), order.as_array())
        {
            let key = member(schema, list).and_then(|one| one.strategy.key.clone());
            check_order(key.as_deref(), items, order)?;
        }
    }
    for (name, value) in patch {
        if let Some(list) = name.strip_prefix(DELETE) {
            let gone = value.as_array().cloned().unwrap_or_default();
            if let Some(Value::Array(items)) = object.get_mut(list) {
                items.retain(|item| !gone.iter().any(|one| same(one, item)));
            }
        }
    }
    for (name, value) in patch.iter().filter(|(name, _)| !name.starts_with('$')) {
        let inner = member(schema, name);
        let order = patch.get(&format!("{ORDER}{name}")).and_then(Value::as_array);
        match (object.remove(name), value) {
            (_, Value::Null) => {}
            (Some(Value::Object(old)), Value::Object(new)) => {
                object.insert(name.clone(), Value::Object(map(inner, old, new)?));
            }
            (Some(Value::Array(old)), Value::Array(new)) => {
                let strategy = inner.map(|one| one.strategy.clone()).unwrap_or_default();
                let merged = if strategy.merge {
                    list(inner, &strategy, old, new, order)?
                } else {
                    new.clone()
                };
                object.insert(name.clone(), Value::Array(merged));
            }
            (_, new) => {
                object.insert(name.clone(), clean(new));
            }
        }
    }
    for (name, order) in patch {
        let Some(list) = name.strip_prefix(ORDER) else { continue };
        if patch.contains_key(list) {
            continue;
        }
        let key = member(schema, list).and_then(|one| one.strategy.key.clone());
        if let (Some(Value::Array(items)), Some(order)) = (object.get_mut(list), order.as_array()) {
            let before = items.clone();
            *items = ordered(key.as_deref(), &before, items, order);
        }
    }
    Ok(object)
}

fn list(
    schema: Option<&Schema>,
    strategy: &Strategy,
    old: Vec<Value>,
    new: &[Value],
    order: Option<&Vec<Value>>,
) -> Result<Vec<Value>, StatusError> {
    let Some(key) = strategy.key.as_deref() else {
        let before = old.clone();
        let mut items: Vec<Value> = Vec::new();
        for item in old.iter().chain(new) {
            if !items.iter().any(|one| same(one, item)) {
                items.push(item.clone());
            }
        }
        return Ok(ordered(None, &before, &items, order.map_or(new, Vec::as_slice)));
    };
    let replaces = |item: &Value| item.as_object().and_then(directive) == Some("replace");
    if new.iter().any(replaces) {
        return Ok(new.iter().filter(|item| !replaces(item)).map(clean).collect());
    }
    let before = old.clone();
    let mut items = old;
    let element = schema.and_then(|one| one.items.as_deref());
    for item in new {
        let Some(patch) = item.as_object() else { continue };
        let Some(value) = patch.get(key) else {
            return Err(StatusError::unforeseen(format!(
                "map: {} does not contain declared merge key: {key}",
                go(item)
            )));
        };
        let found =
            items.iter().position(|one| one.get(key).is_some_and(|other| same(other, value)));
        match (found, directive(patch)) {
            (_, Some("delete")) => {
                items.retain(|one| !one.get(key).is_some_and(|other| same(other, value)));
            }
            (Some(index), _) => {
                let Value::Object(present) = items[index].clone() else { continue };
                items[index] = Value::Object(map(element, present, patch)?);
            }
            (None, _) => items.push(clean(item)),
        }
    }
    // Without an order what the patch names comes in the patch's.
    Ok(ordered(Some(key), &before, &items, order.map_or(new, Vec::as_slice)))
}

/// What the patch has of a list must stand as the order that it gives says.
fn check_order(key: Option<&str>, items: &Value, order: &[Value]) -> Result<(), StatusError> {
    let id = |item: &Value| match key {
        Some(key) => item.get(key).cloned().unwrap_or_default(),
        None => item.clone(),
    };
    let list = items.as_array().map(Vec::as_slice).unwrap_or_default();
    if order.is_empty() {
        return Ok(());
    }
    let mut left = order.iter();
    for item in list.iter().filter(|item| item.as_object().and_then(directive).is_none()) {
        if !left.any(|one| same(&id(one), &id(item))) {
            return Err(StatusError::unforeseen(format!(
                "The order in patch list:\n{}\n doesn't match {} list:\n{}\n",
                go(items),
                ORDER.trim_end_matches('/'),
                go(&order.into())
            )));
        }
    }
    Ok(())
}

/// The items in the order that the patch gives; others keep their places as far as that goes.
fn ordered(key: Option<&str>, before: &[Value], items: &[Value], order: &[Value]) -> Vec<Value> {
    let id = |item: &Value| match key {
        Some(key) => item.get(key).cloned().unwrap_or_default(),
        None => item.clone(),
    };
    let place =
        |list: &[Value], item: &Value| list.iter().position(|one| same(&id(one), &id(item)));
    let mut named: Vec<&Value> = items.iter().filter(|item| place(order, item).is_some()).collect();
    named.sort_by_key(|item| place(order, item));
    let others = items.iter().filter(|item| place(order, item).is_none());
    let mut others: Vec<&Value> = others.collect();
    others.sort_by_key(|item| place(before, item));
    let (mut left, mut right) = (others.into_iter().peekable(), named.into_iter().peekable());
    let mut result = Vec::new();
    loop {
        match (left.peek(), right.peek()) {
            (Some(one), Some(other)) => {
                let less = match (place(before, one), place(before, other)) {
                    (Some(a), Some(b)) => a < b,
                    _ => false,
                };
                result.extend(if less { left.next() } else { right.next() }.cloned());
            }
            (Some(_), None) => result.extend(left.next().cloned()),
            (None, Some(_)) => result.extend(right.next().cloned()),
            (None, None) => return result,
        }
    }
}
