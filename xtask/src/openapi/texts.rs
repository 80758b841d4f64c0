//! Data of the simulator for users and some clients: descriptions of types and fields, columns of
//! tables, and the numbers of fields in protobuf.

use std::collections::BTreeMap;

use anyhow::Result;
use serde_json::{Map, Value, json};

use super::lines;

/// Texts that occur more than once, with their indices in a list.
struct Shared {
    places: BTreeMap<String, usize>,
}

impl Shared {
    /// Finds the repeated texts that are long enough.
    fn of(texts: &[&str]) -> Self {
        let mut counted: BTreeMap<&str, usize> = BTreeMap::new();
        for text in texts.iter().filter(|text| text.len() > 20) {
            *counted.entry(text).or_default() += 1;
        }
        let often = counted.into_iter().filter(|(_, count)| *count > 1);
        let places = often.enumerate().map(|(place, (text, _))| (text.to_owned(), place)).collect();
        Self { places }
    }

    /// A text, or its index.
    fn short(&self, text: &str) -> Value {
        match self.places.get(text) {
            Some(place) => (*place).into(),
            None => text.into(),
        }
    }
}

fn text<'a>(value: &'a Value, member: &str) -> &'a str {
    value[member].as_str().unwrap_or_default()
}

/// The descriptions of a type and its fields.
fn descriptions(schema: &Value) -> impl Iterator<Item = (&str, &str)> {
    let fields = schema["properties"].as_object().into_iter().flatten();
    std::iter::once(("", text(schema, "description")))
        .chain(fields.map(|(name, field)| (name.as_str(), text(field, "description"))))
        .filter(|(_, text)| !text.is_empty())
}

/// The content of the file.
///
/// # Errors
/// If a value cannot be serialized.
pub(super) fn render(
    schemas: &BTreeMap<String, Value>,
    names: &[&String],
    go: &Value,
    groups: &Value,
) -> Result<String> {
    let kinds = go["columns"].as_object().into_iter().flatten().filter(|(kind, _)| {
        let (group, name) = kind.split_once('/').unwrap_or_default();
        (group.is_empty() || groups.get(group).is_some()) && !name.ends_with("List")
    });
    let kinds: Vec<(&String, &Vec<Value>)> =
        kinds.filter_map(|(kind, columns)| Some((kind, columns.as_array()?))).collect();
    let mut every: Vec<&str> = Vec::new();
    for (_, columns) in &kinds {
        every.extend(columns.iter().map(|column| text(column, "description")));
    }
    for name in names {
        every.extend(schemas.get(*name).into_iter().flat_map(descriptions).map(|(_, text)| text));
    }
    let shared = Shared::of(&every);
    let mut columns = Map::new();
    for (kind, all) in kinds {
        let short = all.iter().map(|column| {
            let mut column = column.clone();
            column["description"] = shared.short(text(&column, "description"));
            column
        });
        columns.insert(kind.clone(), short.collect());
    }
    let (mut described, mut wire) = (Map::new(), Map::new());
    for name in names {
        let fields = schemas.get(*name).into_iter().flat_map(descriptions);
        let fields: Map<String, Value> =
            fields.map(|(field, text)| (field.to_owned(), shared.short(text))).collect();
        described.insert((*name).clone(), fields.into());
        if let Some(numbers) = go["wire"].get(*name) {
            wire.insert((*name).clone(), numbers.clone());
        }
    }
    let texts: Map<String, Value> = shared
        .places
        .into_iter()
        .map(|(text, place)| (format!("{place:04}"), text.into()))
        .collect();
    lines::render(&[
        ("columns", columns.into()),
        ("descriptions", described.into()),
        ("texts", texts.into()),
        ("wire", json!(wire)),
    ])
}
