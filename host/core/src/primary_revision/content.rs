//! The content of a primary revision: fields of the primary, their digest, and the way back.

use serde_json::{Map, Value};

use super::input::RevisionInput;
use super::revision::PrimaryRevision;
use crate::field_path::{field, remove, set};
use crate::{Object, in_sync, names};

pub(super) use crate::field_path::{joined, separated};

/// The most bytes of fields that the host stores in one `ControllerRevision`.
pub const REVISION_BYTES_MAX: usize = 256 << 10;

/// How many characters of the digest the name has.
const NAME_DIGITS: usize = 10;

/// The longest part of a primary's name in the name of a revision, in bytes.
const PRIMARY_NAME_MAX: usize = 240;

/// The fields of a revision.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Content {
    /// The paths of the fields.
    pub(super) field_paths: Vec<String>,
    /// The fields that exist, at their places in the primary.
    pub(super) data: Value,
    /// The canonical text of the fields.
    text: String,
}

impl Content {
    /// The present content of a primary.
    ///
    /// # Errors
    /// Returns why the host cannot store it, and what to do.
    pub(super) fn of(primary: &Object, field_paths: &[String]) -> Result<Self, String> {
        // A text that the host has decoded cannot be parsed only if it is nested too deep.
        let primary: Value = serde_json::from_str(&primary.text.read()).map_err(|_| {
            "the fields of revisionHistory.fieldPaths are not stored: the object is nested too deep; name other fields"
                .to_owned()
        })?;
        let mut data = Value::Object(Map::new());
        for path in field_paths {
            if let Some(value) = field(&primary, path) {
                set(&mut data, path, value.clone());
            }
        }
        let content = Self::new(field_paths.to_vec(), data);
        if content.text.len() > REVISION_BYTES_MAX {
            return Err(format!(
                "the fields of revisionHistory.fieldPaths are not stored: they have {} KiB, more than {} KiB; name fewer fields",
                content.text.len().div_ceil(1 << 10),
                REVISION_BYTES_MAX >> 10
            ));
        }
        Ok(content)
    }

    /// Stored content.
    pub(super) fn new(field_paths: Vec<String>, data: Value) -> Self {
        let text = in_sync::canonical_text(&data);
        Self { field_paths, data, text }
    }

    /// The keyed digest of the content, which belongs to one primary.
    pub(super) fn digest(&self, input: &RevisionInput<'_>) -> String {
        let paths = joined(&self.field_paths);
        (input.digest)(&format!("{}\0{paths}\0{}", input.owner.uid, self.text))
    }
}

/// The keyed digest of content with this digest in an API version of the primary.
pub(super) fn digest_in(input: &RevisionInput<'_>, digest: &str, api_version: &str) -> String {
    (input.digest)(&format!("{digest}\0{api_version}"))
}

/// The name of the revision with this digest.
pub(super) fn name(primary: &str, digest: &str) -> String {
    let digits: String = digest.chars().take(NAME_DIGITS).collect();
    let mut end = primary.len().min(PRIMARY_NAME_MAX);
    while !primary.is_char_boundary(end) {
        end -= 1;
    }
    let name = format!("{}-{digits}", primary[..end].trim_end_matches(['.', '-']));
    // Some kinds, as Roles, have names that a ControllerRevision cannot have.
    if names::is_subdomain(&name) { name } else { format!("revision-{digits}") }
}

/// Returns the primary as it was in an earlier revision: the stored fields replace the present
/// ones, and fields that have been added since are removed. All other fields are the present ones.
#[must_use]
pub fn with_revision(primary: &Object, revision: &PrimaryRevision) -> Object {
    let Ok(mut value) = serde_json::from_str::<Value>(&primary.text.read()) else {
        return primary.clone();
    };
    for path in &revision.field_paths {
        match field(&revision.data, path) {
            Some(stored) => set(&mut value, path, stored.clone()),
            None => drop(remove(&mut value, path)),
        }
    }
    Object { text: value.to_string().into(), ..primary.clone() }
}
