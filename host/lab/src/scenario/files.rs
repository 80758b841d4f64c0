//! The files of scenarios: the documents in them, with their places.

use std::fmt;
use std::path::{Path, PathBuf};

use serde::Deserialize as _;
use serde_json::Value;

/// Why a case cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum CaseError {
    /// A file or folder cannot be read.
    #[error("cannot read {}: {error}", .path.display())]
    Unreadable {
        /// Which.
        path: PathBuf,
        /// Why.
        error: std::io::Error,
    },
    /// A document is malformed or not supported.
    #[error("{place}: {why}")]
    Wrong {
        /// File and document.
        place: String,
        /// What is wrong, and what to do.
        why: String,
    },
}

/// An object of a file.
#[derive(Clone, Debug)]
pub(super) struct Document {
    pub(super) value: Value,
    pub(super) place: DocumentLocation,
}

/// The location of a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct DocumentLocation {
    pub(super) file: PathBuf,
    /// Its index in the file.
    pub(super) index: usize,
    /// Whether the document is a `List` and may have other items.
    pub(super) in_list: bool,
}

impl fmt::Display for DocumentLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, document {}", self.file.display(), self.index + 1)
    }
}

/// The last part of a path.
pub(super) fn name_of(path: &Path) -> String {
    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

/// The entries of a folder, ordered by name.
///
/// # Errors
/// If the folder cannot be read.
pub(super) fn files(folder: &Path) -> Result<Vec<PathBuf>, CaseError> {
    let unreadable = |error| CaseError::Unreadable { path: folder.to_owned(), error };
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(unreadable)? {
        found.push(entry.map_err(unreadable)?.path());
    }
    found.sort();
    Ok(found)
}

/// Reads the documents of a file. Replaces a `List` by its items.
///
/// # Errors
/// If the file cannot be read, or is no YAML.
pub(super) fn documents(path: &Path) -> Result<Vec<Document>, CaseError> {
    let text = std::fs::read_to_string(path)
        .map_err(|error| CaseError::Unreadable { path: path.to_owned(), error })?;
    let mut found = Vec::new();
    for (index, document) in serde_yaml_ng::Deserializer::from_str(&text).enumerate() {
        let place = DocumentLocation { file: path.to_owned(), index, in_list: false };
        let value = Value::deserialize(document)
            .map_err(|error| wrong(&place, format!("not an object in YAML: {error}")))?;
        match value {
            Value::Null => {}
            Value::Object(_) if value["kind"] == "List" => {
                let place = DocumentLocation { in_list: true, ..place };
                let items = value["items"].as_array().into_iter().flatten().cloned();
                found.extend(items.map(|value| Document { value, place: place.clone() }));
            }
            value => found.push(Document { value, place }),
        }
    }
    Ok(found)
}

/// The documents of a file, or of all files in a folder.
///
/// # Errors
/// As [`documents`].
pub(super) fn documents_at(path: &Path) -> Result<Vec<Document>, CaseError> {
    if !path.is_dir() {
        return documents(path);
    }
    let mut all = Vec::new();
    for path in files(path)? {
        all.extend(documents(&path)?);
    }
    Ok(all)
}

/// A document that is malformed or not supported.
pub(super) fn wrong(place: impl fmt::Display, why: impl fmt::Display) -> CaseError {
    CaseError::Wrong { place: place.to_string(), why: why.to_string() }
}
