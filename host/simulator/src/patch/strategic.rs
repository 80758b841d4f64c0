//! Strategic merge patches: merge patches that know how lists are keyed, and have directives.

use serde_json::{Map, Value};

use crate::apply::shape::{go, go_type};
use crate::mutation::{Mutation, is_active};
use crate::types::schema::{Additional, Schema, Strategy};
use crate::types::status_error::StatusError;
use crate::types::value::same;

/// The directive of a map, or of an item of a list.
const PATCH: &str = "$patch";
/// The directive with the members to keep.
const RETAIN: &str = "$retainKeys";
/// The directive with the order of a list.
const ORDER: &str = "$setElementOrder";
/// The directive with the values to delete from a list.
const DELETE: &str = "$deleteFromPrimitiveList";

type Members = Map<String, Value>;

/// The object after a patch.
pub(crate) fn apply(schema: &Schema, object: &Value, patch: &Value) -> Result<Value, StatusError> {
    let (Value::Object(object), Value::Object(patch)) = (object, patch) else {
        return Err(StatusError::bad_request("json: cannot unmarshal into an object"));
    };
    Ok(Value::Object(map(Some(schema), object.clone(), patch.clone())?))
}

fn member<'a>(schema: Option<&'a Schema>, name: &str) -> Option<&'a Schema> {
    let schema = schema?.resolved();
    match (schema.properties.get(name), &schema.additional) {
        (Some(inner), _) => Some(inner),
        (None, Additional::Of(inner)) => Some(inner),
        _ => None,
    }
}

/// The list that a directive in a map is about.
fn about<'a>(name: &'a str, directive: &str) -> Option<&'a str> {
    name.strip_prefix(directive)?.strip_prefix('/')
}

/// A new value without nulls and without members that have a directive. `None`, if it has one
/// itself.
fn new(value: Value) -> Option<Value> {
    match value {
        Value::Object(map) if map.contains_key(PATCH) => None,
        Value::Object(map) => {
            let members = map.into_iter().filter(|(_, value)| !value.is_null());
            Some(members.filter_map(|(name, value)| Some((name, new(value)?))).collect())
        }
        Value::Array(items) => Some(items.into_iter().filter_map(new).collect()),
        other => Some(other),
    }
}

fn map(
    schema: Option<&Schema>,
    mut object: Members,
    mut patch: Members,
) -> Result<Members, StatusError> {
    if let Some(directive) = patch.get(PATCH) {
        return match directive.as_str() {
            Some("replace") => {
                patch.remove(PATCH);
                Ok(patch)
            }
            Some("delete") => Ok(Map::new()),
            _ => Err(unknown(&directive.clone(), patch)),
        };
    }
    retain(&mut object, &mut patch)?;
    let orders: Vec<String> =
        patch.keys().filter(|name| name.starts_with(ORDER)).cloned().collect();
    for name in orders {
        let order = patch.remove(&name).unwrap_or_default();
        let list = about(&name, ORDER).ok_or_else(|| {
            StatusError::bad_request("invalid patch format of setElementOrder list")
        })?;
        let order = items(order)?;
        in_order(member(schema, list), list, &order, &mut object, &mut patch)?;
    }
    for (name, value) in patch {
        let (name, deletes) = match about(&name, DELETE) {
            Some(list) => (list, true),
            None if name.starts_with(DELETE) => {
                return Err(StatusError::bad_request("invalid patch format of primitive list"));
            }
            None => (name.as_str(), false),
        };
        if value.is_null() {
            object.remove(name);
            continue;
        }
        let inner = member(schema, name);
        let merged = match (object.remove(name), value) {
            (Some(Value::Object(old)), Value::Object(patch)) => {
                Some(Value::Object(map(inner, old, patch)?))
            }
            (Some(Value::Array(old)), Value::Array(patch)) => {
                Some(Value::Array(list(inner, old, patch, deletes)?))
            }
            (old, _) if deletes => old,
            (_, value) => new(value),
        };
        if let Some(merged) = merged {
            object.insert(name.to_owned(), merged);
        }
    }
    Ok(object)
}

/// Removes the members that the patch does not keep.
fn retain(object: &mut Members, patch: &mut Members) -> Result<(), StatusError> {
    let Some(kept) = patch.remove(RETAIN) else { return Ok(()) };
    let wrong = || StatusError::bad_request("invalid patch format of retainKeys");
    let kept = kept.as_array().ok_or_else(wrong)?;
    let keeps = |name: &str| kept.iter().any(|one| one == name);
    let mut rest = patch.iter().filter(|(name, value)| {
        !value.is_null() && !name.starts_with(ORDER) && !name.starts_with(DELETE)
    });
    if rest.any(|(name, _)| !keeps(name)) {
        return Err(wrong());
    }
    object.retain(|name, _| keeps(name));
    Ok(())
}

/// Merges a list in the order that the patch gives.
fn in_order(
    schema: Option<&Schema>,
    name: &str,
    order: &[Value],
    object: &mut Members,
    patch: &mut Members,
) -> Result<(), StatusError> {
    let old = object.get(name).cloned().map(items).transpose()?;
    let sent = patch.remove(name).map(items).transpose()?;
    let key = schema.and_then(|one| one.strategy.key.as_deref());
    check_order(key, sent.as_deref().unwrap_or_default(), order)?;
    let before = old.clone().unwrap_or_default();
    let merged = match (old, &sent) {
        (None, None) => return Ok(()),
        (Some(old), None) => old,
        (None, Some(sent)) => sent.iter().cloned().filter_map(unnulled).collect(),
        (Some(old), Some(sent)) => list(schema, old, sent.clone(), false)?,
    };
    let sent = sent.unwrap_or_default();
    if before.is_empty() && sent.is_empty() {
        return Err(StatusError::unforeseen("no elements in any of the given slices"));
    }
    object.insert(name.to_owned(), ordered(key, &merged, order, &before, order)?.into());
    Ok(())
}

/// A new value without members that have a directive; nulls stay.
fn unnulled(value: Value) -> Option<Value> {
    match value {
        Value::Object(map) if map.contains_key(PATCH) => None,
        Value::Object(map) => Some(
            map.into_iter().filter_map(|(name, value)| Some((name, unnulled(value)?))).collect(),
        ),
        Value::Array(items) => Some(items.into_iter().filter_map(unnulled).collect()),
        other => Some(other),
    }
}

/// Applies the patch of a list.
fn list(
    schema: Option<&Schema>,
    old: Vec<Value>,
    patch: Vec<Value>,
    deletes: bool,
) -> Result<Vec<Value>, StatusError> {
    let strategy = schema.map(|one| one.strategy.clone()).unwrap_or_default();
    if !strategy.merge && !deletes {
        return Ok(patch);
    }
    let kind = |value: &Value| std::mem::discriminant(value);
    let mut all = old.iter().chain(&patch);
    let Some(first) = all.next() else { return Ok(old) };
    if first.is_array() {
        return Err(StatusError::new(422, "", "lists of lists are not supported"));
    }
    if all.any(|other| kind(other) != kind(first)) {
        let text = format!("[{} {}]", go(&old.into()), go(&patch.into()));
        return Err(StatusError::unforeseen(format!(
            "list element types are not identical: {text}"
        )));
    }
    if !first.is_object() {
        return plain(old, &patch, deletes);
    }
    keyed(schema, &strategy, old, patch)
}

/// A list of plain values.
fn plain(old: Vec<Value>, patch: &[Value], deletes: bool) -> Result<Vec<Value>, StatusError> {
    if deletes {
        let goes = |item: &Value| patch.iter().any(|one| same(one, item));
        return Ok(old.into_iter().filter(|item| !goes(item)).collect());
    }
    let mut merged: Vec<Value> = Vec::new();
    for item in old.iter().chain(patch) {
        if !merged.iter().any(|one| same(one, item)) {
            merged.push(item.clone());
        }
    }
    ordered(None, &merged, patch, &old, patch)
}

/// A list of maps, which have a key.
fn keyed(
    schema: Option<&Schema>,
    strategy: &Strategy,
    old: Vec<Value>,
    patch: Vec<Value>,
) -> Result<Vec<Value>, StatusError> {
    let Some(key) = strategy.key.as_deref() else {
        return Err(StatusError::unforeseen("cannot merge lists without merge key"));
    };
    let (mut items, mut rest, mut replaces) = (old, Vec::new(), false);
    for item in patch {
        let Some(directive) = item.get(PATCH) else {
            rest.push(item);
            continue;
        };
        match directive.as_str() {
            Some("delete") => {
                let gone = item.get(key).ok_or_else(|| keyless(&item, key))?;
                items.retain(|one| !one.get(key).is_some_and(|value| same(value, gone)));
            }
            Some("replace") => replaces = true,
            Some("merge") => {
                let text = "merging lists cannot yet be specified in the patch";
                return Err(StatusError::unforeseen(text));
            }
            _ => {
                let directive = directive.clone();
                return Err(unknown(&directive, item.as_object().cloned().unwrap_or_default()));
            }
        }
    }
    if replaces {
        (items, rest) = (rest, Vec::new());
    }
    let before = items.clone();
    let element = schema.and_then(|one| one.items.as_deref());
    for item in &rest {
        let value = item.get(key).ok_or_else(|| keyless(item, key))?;
        let place = items.iter().position(|one| one.get(key).is_some_and(|has| same(has, value)));
        match (place, item) {
            (Some(place), Value::Object(patch)) => {
                let present = items[place].as_object().cloned().unwrap_or_default();
                items[place] = Value::Object(map(element, present, patch.clone())?);
            }
            _ => items.push(item.clone()),
        }
    }
    ordered(Some(key), &items, &rest, &before, &rest)
}

/// The items of the patch must be in the order of its directive.
fn check_order(key: Option<&str>, items: &[Value], order: &[Value]) -> Result<(), StatusError> {
    if order.is_empty() || items.is_empty() {
        return Ok(());
    }
    let goes = |item: &Value| key.is_some() && item.get(PATCH).is_some_and(|one| one == "delete");
    let mut left = order.iter();
    let mut waiting = items.iter().filter(|item| !goes(item)).peekable();
    while let Some(item) = waiting.peek() {
        if item.get(PATCH).is_some() {
            waiting.next();
            continue;
        }
        let Some(next) = left.next() else {
            return Err(StatusError::unforeseen(format!(
                "The order in patch list:\n{}\n doesn't match {ORDER} list:\n{}\n",
                go(&items.to_vec().into()),
                go(&order.to_vec().into())
            )));
        };
        if same(id(key, item)?, id(key, next)?) {
            waiting.next();
        }
        // Items with directives at the end need no place.
        while waiting.peek().is_some_and(|item| item.get(PATCH).is_some()) {
            waiting.next();
        }
    }
    Ok(())
}

/// The identity of an item: the value of its merge key, or the item itself.
fn id<'a>(key: Option<&str>, item: &'a Value) -> Result<&'a Value, StatusError> {
    let Some(key) = key else { return Ok(item) };
    if !item.is_object() {
        return Err(wrong_type("map[string]interface {}", item));
    }
    item.get(key).ok_or_else(|| keyless(item, key))
}

/// The items: those that `named` names in its order, which `order` is for most, the others in that
/// of `before`, each where it was as far as that goes.
fn ordered(
    key: Option<&str>,
    items: &[Value],
    named: &[Value],
    before: &[Value],
    order: &[Value],
) -> Result<Vec<Value>, StatusError> {
    if is_active(Mutation::OrderIsIgnored) {
        return Ok(items.to_vec());
    }
    for item in items.iter().chain(order).chain(before) {
        id(key, item)?;
    }
    let name = |item: &Value| match key {
        Some(key) => item.get(key).cloned().unwrap_or_default(),
        None => item.clone(),
    };
    let place =
        |list: &[Value], item: &Value| list.iter().position(|one| same(&name(one), &name(item)));
    let (right, left): (Vec<Value>, Vec<Value>) =
        items.iter().cloned().partition(|item| place(named, item).is_some());
    let right = sorted(right, &|item| place(order, item));
    let left = sorted(left, &|item| place(before, item));
    let (mut left, mut right) = (left.into_iter().peekable(), right.into_iter().peekable());
    let mut result = Vec::new();
    loop {
        let first = match (left.peek(), right.peek()) {
            (Some(one), Some(other)) => match (place(before, one), place(before, other)) {
                (Some(one), Some(other)) => one < other,
                _ => false,
            },
            (Some(_), None) => true,
            (None, Some(_)) => false,
            (None, None) => return Ok(result),
        };
        result.extend(if first { left.next() } else { right.next() });
    }
}

/// The items by their places. One without a place goes before all that it meets, as the server's
/// comparison has it.
fn sorted(mut items: Vec<Value>, place: &dyn Fn(&Value) -> Option<usize>) -> Vec<Value> {
    let less = |one: &Value, other: &Value| match (place(one), place(other)) {
        (Some(one), Some(other)) => one < other,
        _ => true,
    };
    for end in 1..items.len() {
        let mut at = end;
        while at > 0 && less(&items[at], &items[at - 1]) {
            items.swap(at, at - 1);
            at -= 1;
        }
    }
    items
}

fn items(value: Value) -> Result<Vec<Value>, StatusError> {
    match value {
        Value::Array(items) => Ok(items),
        other => Err(wrong_type("[]interface {}", &other)),
    }
}

fn wrong_type(expected: &str, value: &Value) -> StatusError {
    StatusError::unforeseen(format!("expected a {expected}, but received a {}", go_type(value)))
}

fn keyless(item: &Value, key: &str) -> StatusError {
    StatusError::unforeseen(format!("map: {} does not contain declared merge key: {key}", go(item)))
}

fn unknown(directive: &Value, patch: Members) -> StatusError {
    let (directive, patch) = (go(directive), go(&Value::Object(patch)));
    StatusError::unforeseen(format!("unknown patch type: {directive} in map: {patch}"))
}
