//! Objects as tables, for people.

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::object::meta;
use crate::server::Ask;
use crate::watch::partial;

/// A table of objects; `list` is the metadata of a list.
pub(crate) fn of(ask: &Ask<'_>, objects: &[Value], list: Option<&Value>, now: Timestamp) -> Value {
    let own = ask
        .kind
        .custom
        .as_ref()
        .and_then(|custom| custom.version(&ask.kind.version))
        .map(|version| version.columns.clone())
        .unwrap_or_default();
    let mut columns = vec![json!({
        "name": "Name", "type": "string", "format": "name", "priority": 0,
        "description": "Name must be unique within a namespace. Is required when creating resources, although some resources may allow a client to request the generation of an appropriate name automatically. Name is primarily intended for creation idempotence and configuration definition. Cannot be updated. More info: https://kubernetes.io/docs/concepts/overview/working-with-objects/names#names",
    })];
    for column in &own {
        let text = |name: &str| column[name].as_str().unwrap_or_default();
        let path = text("jsonPath");
        let description = match text("description") {
            "" => format!("Custom resource definition column (in JSONPath format): {path}"),
            said => said.to_owned(),
        };
        columns.push(json!({"name": text("name"), "type": text("type"), "format": text("format"),
            "description": description, "priority": column["priority"].as_i64().unwrap_or(0)}));
    }
    if own.is_empty() {
        columns.push(json!({"name": "Age", "type": "date", "format": "", "priority": 0,
            "description": "CreationTimestamp is a timestamp representing the server time when this object was created. It is not guaranteed to be set in happens-before order across separate operations. Clients may not set this value. It is represented in RFC3339 form and is in UTC.\n\nPopulated by the system. Read-only. Null for lists. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata"}));
    }
    let rows: Vec<Value> = objects
        .iter()
        .map(|object| {
            let mut cells = vec![Value::from(meta(object, "name"))];
            for column in &own {
                cells.push(cell(object, column, now));
            }
            if own.is_empty() {
                cells.push(age(meta(object, "creationTimestamp"), now).into());
            }
            json!({"cells": cells, "object": partial(object)})
        })
        .collect();
    let metadata = list.cloned().unwrap_or_else(|| {
        let version =
            objects.first().map(|object| meta(object, "resourceVersion")).unwrap_or_default();
        json!({ "resourceVersion": version })
    });
    json!({"kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": metadata,
        "columnDefinitions": columns, "rows": rows})
}

fn cell(object: &Value, column: &Value, now: Timestamp) -> Value {
    let path = column["jsonPath"].as_str().unwrap_or_default();
    let Some(found) = find(object, path) else { return Value::Null };
    match column["type"].as_str() {
        Some("date") => age(found.as_str().unwrap_or_default(), now).into(),
        Some("string") => match found {
            Value::String(_) => found.clone(),
            other => other.to_string().into(),
        },
        Some("integer" | "number") if found.is_number() => found.clone(),
        Some("boolean") if found.is_boolean() => found.clone(),
        _ => Value::Null,
    }
}

/// The paths that columns use: members, places in lists, and items that have a member.
fn find<'a>(object: &'a Value, path: &str) -> Option<&'a Value> {
    let mut place = object;
    let mut rest = path;
    while !rest.is_empty() {
        if let Some(inner) = rest.strip_prefix('[') {
            let (inside, after) = inner.split_once(']')?;
            rest = after;
            place = if let Some(filter) = inside.strip_prefix("?(@.") {
                let (name, value) = filter.trim_end_matches(')').split_once("==")?;
                let value = value.trim().trim_matches(['"', '\'']);
                place.as_array()?.iter().find(|item| item[name.trim()] == value)?
            } else if let Ok(index) = inside.parse::<usize>() {
                place.get(index)?
            } else {
                place.get(inside.trim_matches(['"', '\'']))?
            };
            continue;
        }
        let trimmed = rest.trim_start_matches('.');
        let mut end = trimmed.len();
        let mut escaped = false;
        for (index, one) in trimmed.char_indices() {
            if (one == '.' || one == '[') && !escaped {
                end = index;
                break;
            }
            escaped = one == '\\';
        }
        place = place.get(trimmed[..end].replace('\\', ""))?;
        rest = &trimmed[end..];
    }
    Some(place)
}

/// How long ago, in the server's short form.
fn age(time: &str, now: Timestamp) -> String {
    let Ok(time) = time.parse::<Timestamp>() else { return "<unknown>".to_owned() };
    let seconds = now.duration_since(time).as_secs();
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86400);
    if seconds < 0 {
        return "<invalid>".to_owned();
    }
    let two = |most: i64, unit: &str, rest: i64, small: &str| {
        if rest == 0 { format!("{most}{unit}") } else { format!("{most}{unit}{rest}{small}") }
    };
    match seconds {
        0..120 => format!("{seconds}s"),
        120..600 => two(minutes, "m", seconds % 60, "s"),
        600..10_800 => format!("{minutes}m"),
        10_800..28_800 => two(hours, "h", minutes % 60, "m"),
        28_800..172_800 => format!("{hours}h"),
        172_800..691_200 => two(days, "d", hours % 24, "h"),
        691_200..63_072_000 => format!("{days}d"),
        _ => format!("{}y", days / 365),
    }
}
