//! `cargo xtask schema`: the JSON Schemas of the contract, from its Rust types, and from them the
//! types of the SDKs in other languages.

mod go;
mod python;
mod types;
mod typescript;

use std::collections::BTreeMap;
use std::fs;

use anyhow::{Context as _, Result, bail};
use innkeeper_contract::{
    DOCUMENTS_VERSION, Desired, Failure, Manifest, Observed, ObservedList, ObservedObject,
    ReviewRequest, Verdict,
};
use schemars::{JsonSchema, SchemaGenerator, generate::SchemaSettings};

use crate::command::root;
use crate::progress::say;

/// The folders of the schemas: the contract, and a copy in each SDK, for its tests.
const FOLDERS: [&str; 4] = [
    "wit/schema",
    "guests/sdk-go/guesttest/schema",
    "guests/sdk-py/src/innkeeper/schema",
    "guests/sdk-ts/schema",
];

/// Writes the schemas and the types of the SDKs; with `check` only compares them.
///
/// # Errors
/// If a file cannot be written, or differs with `check`.
pub(crate) fn run(check: bool) -> Result<()> {
    let wanted = files()?;
    let differing = differences(&wanted)?;
    if check {
        if !differing.is_empty() {
            bail!(
                "these differ from the types in wit/src: {}; run `cargo xtask schema`",
                differing.join(", ")
            );
        }
        return Ok(());
    }
    for path in &differing {
        let file = root().join(path);
        let written = match wanted.get(path) {
            Some(text) => fs::create_dir_all(file.parent().unwrap_or(&file))
                .and_then(|()| fs::write(&file, text)),
            None => fs::remove_file(&file),
        };
        written.with_context(|| file.display().to_string())?;
        say(&format!("{} {path}", if wanted.contains_key(path) { "wrote" } else { "removed" }));
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
    let (wit, version) = (root().join("wit"), DOCUMENTS_VERSION);
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

/// The paths of the files that are not what they should be, absent ones and schemas that should not
/// be there included.
///
/// # Errors
/// If a folder cannot be read.
fn differences(wanted: &BTreeMap<String, String>) -> Result<Vec<String>> {
    let root = root();
    let mut differing: Vec<String> = wanted
        .iter()
        .filter(|(path, text)| fs::read_to_string(root.join(path)).ok().as_ref() != Some(*text))
        .map(|(path, _)| path.clone())
        .collect();
    for folder in FOLDERS {
        let Ok(entries) = fs::read_dir(root.join(folder)) else { continue };
        for entry in entries {
            let path = format!("{folder}/{}", entry?.file_name().to_string_lossy());
            if !wanted.contains_key(&path) {
                differing.push(path);
            }
        }
    }
    differing.sort();
    Ok(differing)
}

/// Path below the root and text of every generated file.
///
/// # Errors
/// If a schema cannot be serialized, or another language cannot have its types.
fn files() -> Result<BTreeMap<String, String>> {
    let schemas = documents()?;
    let types = types::read(&schemas)?;
    let mut files = BTreeMap::from([
        ("guests/sdk-go/guest/documents.go".to_owned(), go::file(&types, DOCUMENTS_VERSION)),
        (
            "guests/sdk-py/src/innkeeper/documents.py".to_owned(),
            python::module(&types, DOCUMENTS_VERSION)?,
        ),
        (
            "guests/sdk-ts/src/documents.ts".to_owned(),
            typescript::module(&types, DOCUMENTS_VERSION),
        ),
    ]);
    for folder in FOLDERS {
        let copies = schemas.iter().map(|(name, text)| (format!("{folder}/{name}"), text.clone()));
        files.extend(copies);
    }
    Ok(files)
}

/// Name and text of every schema.
///
/// # Errors
/// If a schema cannot be serialized.
fn documents() -> Result<BTreeMap<String, String>> {
    [
        document::<Manifest>("manifest", Direction::FromGuest)?,
        document::<Desired>("desired", Direction::FromGuest)?,
        document::<Failure>("failure", Direction::FromGuest)?,
        document::<Observed>("observed", Direction::ToGuest)?,
        document::<ObservedObject>("observed-object", Direction::ToGuest)?,
        document::<ObservedList>("observed-list", Direction::ToGuest)?,
        document::<ReviewRequest>("review-request", Direction::ToGuest)?,
        document::<Verdict>("verdict", Direction::FromGuest)?,
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
    schema.insert(
        "$id".to_owned(),
        format!("https://innkeeper.dev/schema/guest/{DOCUMENTS_VERSION}/{name}.json").into(),
    );
    let text = serde_json::to_string_pretty(&schema).with_context(|| name.to_owned())?;
    Ok((format!("{name}.json"), text + "\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn committed_schemas_and_types_of_sdks_match_the_types() {
        let differing = differences(&files().unwrap()).unwrap();
        assert!(differing.is_empty(), "run `cargo xtask schema`: {differing:?}");
    }
}
