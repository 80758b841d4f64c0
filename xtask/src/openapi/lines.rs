//! JSON files whose diffs are readable.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use anyhow::Result;
use serde_json::Value;

/// Writes JSON with one line for each entry, so that diffs are readable.
///
/// # Errors
/// If a value cannot be serialized.
pub(super) fn render(parts: &[(&str, Value)]) -> Result<String> {
    let mut text = String::from("{\n");
    for (index, (name, part)) in parts.iter().enumerate() {
        writeln!(text, "\"{name}\": {{")?;
        let entries: BTreeMap<&String, &Value> = part.as_object().into_iter().flatten().collect();
        let last = entries.len();
        for (number, (key, value)) in entries.into_iter().enumerate() {
            let comma = if number + 1 == last { "" } else { "," };
            let (key, value) =
                (serde_json::to_string(key)?, serde_json::to_string(&sorted(value))?);
            writeln!(text, "{key}:{value}{comma}")?;
        }
        text.push_str(if index + 1 == parts.len() { "}\n" } else { "},\n" });
    }
    text.push_str("}\n");
    Ok(text)
}

/// The same, with the members of every object in order.
fn sorted(value: &Value) -> Value {
    match value {
        Value::Object(map) => {
            let ordered: BTreeMap<&String, Value> =
                map.iter().map(|(key, value)| (key, sorted(value))).collect();
            Value::Object(ordered.into_iter().map(|(key, value)| (key.clone(), value)).collect())
        }
        Value::Array(items) => items.iter().map(sorted).collect(),
        other => other.clone(),
    }
}
