//! How two states of an object differ, and whether a plan describes the difference.
//!
//! A plan names the members that a change affects, before and after it. A difference has the
//! members that changed and leaves the others out; a list has a marker for each item that did not.

use serde_json::{Map, Value};

/// An item of a list that did not change.
const UNCHANGED_ITEM: &str = "SIEVE-SKIP";
/// A value that every run has another of, such as a time.
const ANY_VALUE: &str = "SIEVE-NON-NIL";

/// The difference between two states: the part of each that the other has not. `None` if there is
/// none.
fn diff(previous: &Value, current: &Value) -> Option<(Value, Value)> {
    match (previous, current) {
        _ if previous == current => None,
        (Value::Object(previous), Value::Object(current)) => {
            let (mut before, mut after) = (Map::new(), Map::new());
            for (name, old) in previous {
                match current.get(name) {
                    Some(new) => {
                        if let Some((old, new)) = diff(old, new) {
                            before.insert(name.clone(), old);
                            after.insert(name.clone(), new);
                        }
                    }
                    None => {
                        before.insert(name.clone(), old.clone());
                    }
                }
            }
            for (name, new) in current.iter().filter(|(name, _)| !previous.contains_key(*name)) {
                after.insert(name.clone(), new.clone());
            }
            Some((before.into(), after.into()))
        }
        (Value::Array(previous), Value::Array(current)) => {
            let side = |own: &[Value], other: &[Value], is_previous: bool| -> Value {
                let items = own.iter().enumerate().map(|(index, item)| {
                    let Some(counterpart) = other.get(index) else { return item.clone() };
                    let both =
                        if is_previous { diff(item, counterpart) } else { diff(counterpart, item) };
                    match both {
                        None => UNCHANGED_ITEM.into(),
                        Some((before, after)) => {
                            if is_previous {
                                before
                            } else {
                                after
                            }
                        }
                    }
                });
                items.collect::<Vec<_>>().into()
            };
            Some((side(previous, current, true), side(current, previous, false)))
        }
        _ => Some((previous.clone(), current.clone())),
    }
}

/// Whether a value has everything that a plan names.
pub(crate) fn has(value: &Value, named: &Value) -> bool {
    match (named, value) {
        (Value::String(named), value) if named == ANY_VALUE => !value.is_null(),
        (Value::Object(named), Value::Object(members)) => named
            .iter()
            .all(|(name, named)| members.get(name).is_some_and(|value| has(value, named))),
        (Value::Array(named), Value::Array(items)) => {
            let is_same = |(named, item): (&Value, &Value)| {
                named.as_str() == Some(UNCHANGED_ITEM) || has(item, named)
            };
            named.len() == items.len() && named.iter().zip(items).all(is_same)
        }
        _ => named == value,
    }
}

/// Whether an object changes as a plan describes it: the members of `before` change from these
/// values, and those of `after` to these. Other members may change too.
pub(crate) fn is_change(previous: &Value, current: &Value, before: &Value, after: &Value) -> bool {
    diff(previous, current).is_some_and(|(old, new)| has(&old, before) && has(&new, after))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn change_is_recognized_by_the_members_that_the_plan_names() {
        let old =
            json!({"metadata": {"name": "a", "resourceVersion": "1"}, "spec": {"replicas": 1}});
        let new =
            json!({"metadata": {"name": "a", "resourceVersion": "2"}, "spec": {"replicas": 3}});
        let is = |before: Value, after: Value| is_change(&old, &new, &before, &after);
        assert!(is(json!({"spec": {"replicas": 1}}), json!({"spec": {"replicas": 3}})));
        assert!(!is(json!({"spec": {"replicas": 3}}), json!({"spec": {"replicas": 1}})));
        assert!(!is(json!({"metadata": {"name": "a"}}), json!({})), "the name did not change");
        assert!(!is_change(&old, &old, &json!({}), &json!({})), "nothing changed");
    }

    #[test]
    fn added_member_with_any_value_is_recognized() {
        let old = json!({"metadata": {"resourceVersion": "1"}});
        let new = json!({"metadata": {"resourceVersion": "2", "deletionTimestamp": "2026-01-01"}});
        let after = json!({"metadata": {"deletionTimestamp": "SIEVE-NON-NIL"}});
        assert!(is_change(&old, &new, &json!({"metadata": {}}), &after));
        assert!(!is_change(&new, &old, &json!({"metadata": {}}), &after));
    }

    #[test]
    fn list_is_compared_by_the_items_that_changed() {
        let old = json!({"items": [{"a": 1}, {"b": 1}, 3]});
        let new = json!({"items": [{"a": 1}, {"b": 2}, 3]});
        let is = |before: Value, after: Value| is_change(&old, &new, &before, &after);
        let of = |b: i32| json!({"items": ["SIEVE-SKIP", {"b": b}, "SIEVE-SKIP"]});
        assert!(is(of(1), of(2)));
        assert!(!is(of(2), of(1)));
        assert!(!is(json!({"items": ["SIEVE-SKIP"]}), of(2)), "the list is longer");
    }
}
