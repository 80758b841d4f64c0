//! Where a case is run, and the texts of its requests there.

use std::collections::BTreeMap;

use serde_json::Value;

/// Where a case is run.
#[derive(Clone, Debug)]
pub struct Place {
    /// Another one for each run.
    pub word: String,
    /// There on both servers.
    pub namespace: String,
}

/// What one server answered so far: uid and version by name.
pub type Known = BTreeMap<String, (String, String)>;

/// Replaces what stands in braces.
pub fn fill(text: &str, place: &Place, known: &Known) -> String {
    let mut result = text.replace("{s}", &place.word).replace("{n}", &place.namespace);
    for (mark, second) in [("{uid:", false), ("{rv:", true)] {
        while let Some(start) = result.find(mark) {
            let Some(length) = result[start..].find('}') else { break };
            let name = &result[start + mark.len()..start + length];
            let found = known.get(name).map(|(uid, version)| if second { version } else { uid });
            // Versions begin above 1, and a watch from 0 begins with what is there.
            let unknown = || if name == "list" { "0" } else { "1" }.to_owned();
            let found = found.map_or_else(unknown, String::clone);
            result.replace_range(start..=start + length, &found);
        }
    }
    result
}

/// The same in every text of a document.
pub fn fill_value(value: &Value, place: &Place, known: &Known) -> Value {
    match value {
        Value::String(text) => fill(text, place, known).into(),
        Value::Array(items) => items.iter().map(|item| fill_value(item, place, known)).collect(),
        Value::Object(map) => map
            .iter()
            .map(|(name, value)| (fill(name, place, known), fill_value(value, place, known)))
            .collect::<serde_json::Map<_, _>>()
            .into(),
        other => other.clone(),
    }
}
