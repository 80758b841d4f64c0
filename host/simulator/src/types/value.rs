//! Comparing values as the server does.

use std::cmp::Ordering;

use serde_json::Value;

fn rank(value: &Value) -> u8 {
    match value {
        Value::Number(_) => 0,
        Value::String(_) => 1,
        Value::Bool(_) => 2,
        Value::Array(_) => 3,
        Value::Object(_) => 4,
        Value::Null => 5,
    }
}

/// A total order: numbers by value, whatever their form.
pub(crate) fn compare(one: &Value, other: &Value) -> Ordering {
    match (one, other) {
        (Value::Number(a), Value::Number(b)) => match (a.as_i64(), b.as_i64()) {
            (Some(a), Some(b)) => a.cmp(&b),
            _ => a.as_f64().unwrap_or(0.0).total_cmp(&b.as_f64().unwrap_or(0.0)),
        },
        (Value::String(a), Value::String(b)) => a.cmp(b),
        (Value::Bool(a), Value::Bool(b)) => a.cmp(b),
        (Value::Array(a), Value::Array(b)) => {
            for (a, b) in a.iter().zip(b) {
                let order = compare(a, b);
                if order != Ordering::Equal {
                    return order;
                }
            }
            a.len().cmp(&b.len())
        }
        (Value::Object(a), Value::Object(b)) => {
            let mut names: Vec<&String> = a.keys().chain(b.keys()).collect();
            names.sort();
            names.dedup();
            for name in names {
                let order = match (a.get(name), b.get(name)) {
                    (Some(a), Some(b)) => compare(a, b),
                    (Some(_), None) => Ordering::Less,
                    _ => Ordering::Greater,
                };
                if order != Ordering::Equal {
                    return order;
                }
            }
            Ordering::Equal
        }
        _ => rank(one).cmp(&rank(other)),
    }
}

/// Whether two values are the same; 1 is 1.0.
pub(crate) fn same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b))
        }
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(name, a)| b.get(name).is_some_and(|b| same(a, b)))
        }
        _ => compare(one, other) == Ordering::Equal,
    }
}

/// Puts `value` at the end of `path`, making the maps on the way.
pub(crate) fn set(object: &mut Value, path: &[&str], value: Value) {
    let Some((last, way)) = path.split_last() else { return };
    let mut place = object;
    for name in way {
        if !place[*name].is_object() {
            place[*name] = Value::Object(serde_json::Map::new());
        }
        place = &mut place[*name];
    }
    place[*last] = value;
}

/// The value at the end of `path`.
pub(crate) fn at<'a>(object: &'a Value, path: &[&str]) -> Option<&'a Value> {
    path.iter().try_fold(object, |place, name| place.get(name))
}
