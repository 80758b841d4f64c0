//! Tables of custom kinds: the columns that their definitions name.

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::api::table::age::age;

/// A column as tables have it.
pub(crate) fn column(column: &Value) -> Value {
    let text = |name: &str| column[name].as_str().unwrap_or_default();
    let path = text("jsonPath");
    let description = match text("description") {
        "" => format!("Custom resource definition column (in JSONPath format): {path}"),
        kind => kind.to_owned(),
    };
    json!({"name": text("name"), "type": text("type"), "format": text("format"),
        "description": description, "priority": column["priority"].as_i64().unwrap_or(0)})
}

/// The value of a column.
pub(crate) fn cell(object: &Value, column: &Value, now: Timestamp) -> Value {
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
