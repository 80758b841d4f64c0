//! `cargo xtask schema`: the JSON Schemas of the contract, from its Rust types.

use std::collections::BTreeMap;
use std::fs;

use anyhow::{Context as _, Result, bail};
use innkeeper_contract::{Desired, Failure, Manifest, Observed, ObservedList, ObservedObject};
use schemars::{JsonSchema, SchemaGenerator, generate::SchemaSettings};

use crate::command::root;
use crate::progress::say;

/// Writes the schemas; with `check` only compares them.
///
/// # Errors
/// If a file cannot be written, or differs with `check`.
pub(crate) fn run(check: bool) -> Result<()> {
    let folder = root().join("wit/schema");
    let wanted = documents()?;
    if check {
        let differing = differences(&wanted)?;
        if !differing.is_empty() {
            bail!(
                "these differ from the types in wit/src: {}; run `cargo xtask schema`",
                differing.join(", ")
            );
        }
        return Ok(());
    }
    fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
    for (name, text) in &wanted {
        let path = folder.join(name);
        fs::write(&path, text).with_context(|| path.display().to_string())?;
        say(&format!("wrote wit/schema/{name}"));
    }
    Ok(())
}

/// Writes `wit/released/<version>`: the WIT and the schemas as they are now, for the tests that
/// hold later versions to them.
///
/// # Errors
/// If a file cannot be written.
pub(crate) fn freeze() -> Result<()> {
    run(false)?;
    let (wit, version) = (root().join("wit"), innkeeper_contract::DOCUMENTS_VERSION);
    let frozen = wit.join("released").join(version);
    for folder in ["schema", "examples"] {
        let folder = frozen.join(folder);
        fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
    }
    let mut files = vec!["guest.wit".to_owned()];
    files.extend(documents()?.into_keys().map(|name| format!("schema/{name}")));
    for file in &files {
        let (from, to) = (wit.join(file), frozen.join(file));
        fs::copy(&from, &to)
            .with_context(|| format!("cannot copy {} to {}", from.display(), to.display()))?;
    }
    say(&format!("froze wit/released/{version}; its examples must show every member"));
    Ok(())
}

/// Names of the files in wit/schema that are not what they should be, absent ones and
/// files that should not be there included.
///
/// # Errors
/// If a file cannot be read.
pub(crate) fn differences(wanted: &BTreeMap<String, String>) -> Result<Vec<String>> {
    let folder = root().join("wit/schema");
    let mut differing: Vec<String> = wanted
        .iter()
        .filter(|(name, text)| fs::read_to_string(folder.join(name)).ok().as_ref() != Some(*text))
        .map(|(name, _)| name.clone())
        .collect();
    if let Ok(entries) = fs::read_dir(&folder) {
        for entry in entries {
            let name = entry?.file_name().to_string_lossy().into_owned();
            if !wanted.contains_key(&name) {
                differing.push(name);
            }
        }
    }
    Ok(differing)
}

/// Name and text of every schema.
///
/// # Errors
/// If a schema cannot be serialized.
pub(crate) fn documents() -> Result<BTreeMap<String, String>> {
    [
        document::<Manifest>("manifest", Direction::FromGuest)?,
        document::<Desired>("desired", Direction::FromGuest)?,
        document::<Failure>("failure", Direction::FromGuest)?,
        document::<Observed>("observed", Direction::ToGuest)?,
        document::<ObservedObject>("observed-object", Direction::ToGuest)?,
        document::<ObservedList>("observed-list", Direction::ToGuest)?,
    ]
    .into_iter()
    .map(Ok)
    .collect()
}

/// Who writes a document: what may be left out is different when writing and reading.
#[derive(Clone, Copy)]
enum Direction {
    /// The host reads it.
    FromGuest,
    /// The guest reads it.
    ToGuest,
}

fn document<T: JsonSchema>(name: &str, direction: Direction) -> Result<(String, String)> {
    let settings = match direction {
        Direction::FromGuest => SchemaSettings::draft2020_12().for_deserialize(),
        Direction::ToGuest => SchemaSettings::draft2020_12().for_serialize(),
    };
    let mut schema = SchemaGenerator::new(settings).into_root_schema_for::<T>();
    let version = innkeeper_contract::DOCUMENTS_VERSION;
    schema.insert(
        "$id".to_owned(),
        format!("https://innkeeper.dev/schema/guest/{version}/{name}.json").into(),
    );
    let text = serde_json::to_string_pretty(&schema).with_context(|| name.to_owned())?;
    Ok((format!("{name}.json"), text + "\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn committed_schemas_match_the_types() {
        let differing = differences(&documents().unwrap()).unwrap();
        assert!(differing.is_empty(), "run `cargo xtask schema`: {differing:?}");
    }
}
