//! The strict decoding of a guest's output documents.

use innkeeper_contract::{Desired, Failure, Manifest, Verdict};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::error::{CallError, text};
use crate::limits::Limits;

/// An output document of the contract.
pub(crate) trait Document: DeserializeOwned {
    /// Its name in the contract.
    const NAME: &'static str;

    /// Its members that hold any JSON, and whose depth nothing else bounds.
    fn values(&self) -> impl Iterator<Item = &Value> {
        std::iter::empty()
    }
}

impl Document for Manifest {
    const NAME: &'static str = "manifest";
}

impl Document for Desired {
    const NAME: &'static str = "desired";

    fn values(&self) -> impl Iterator<Item = &Value> {
        let objects = self.objects.iter().map(|one| &one.object);
        objects.chain(self.status.iter().flat_map(Map::values))
    }
}

impl Document for Failure {
    const NAME: &'static str = "failure";

    fn values(&self) -> impl Iterator<Item = &Value> {
        self.status.iter().flat_map(Map::values)
    }
}

impl Document for Verdict {
    const NAME: &'static str = "verdict";

    fn values(&self) -> impl Iterator<Item = &Value> {
        self.object.iter()
    }
}

/// Decodes a document. An unknown member is an error, since it is a typo.
///
/// # Errors
/// [`CallError::OutputTooLarge`] and [`CallError::OutputUnreadable`].
pub(crate) fn read<D: Document>(json: &str, limits: &Limits) -> Result<D, CallError> {
    if json.len() > limits.output_bytes {
        return Err(CallError::OutputTooLarge {
            document: D::NAME,
            bytes: json.len(),
            limit: limits.output_bytes,
        });
    }
    let document: D = serde_json::from_str(json).map_err(|error| unreadable::<D>(json, &error))?;
    // serde_json bounds the depth of the text only outside of raw values.
    if !document.values().all(|value| is_within(value, DEPTH_MAX)) {
        return Err(CallError::OutputUnreadable {
            document: D::NAME,
            what: text(format!("it has more than {DEPTH_MAX} levels")),
            place: text(String::new()),
        });
    }
    Ok(document)
}

/// The most levels of JSON in a document: as many as serde_json reads of one text.
const DEPTH_MAX: usize = 127;

/// Whether a value has at most so many levels.
fn is_within(value: &Value, levels: usize) -> bool {
    let below = |value| levels > 0 && is_within(value, levels - 1);
    match value {
        Value::Object(members) => members.values().all(below),
        Value::Array(items) => items.iter().all(below),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => true,
    }
}

/// Decodes a document of bytes.
///
/// # Errors
/// As of [`read`].
pub(crate) fn read_bytes<D: Document>(json: &[u8], limits: &Limits) -> Result<D, CallError> {
    let json = std::str::from_utf8(json).map_err(|error| CallError::OutputUnreadable {
        document: D::NAME,
        what: error.to_string(),
        place: String::new(),
    })?;
    read(json, limits)
}

/// Decodes a `desired` document.
///
/// # Errors
/// As of [`read`], and [`CallError::TooManyObjects`].
pub(crate) fn read_desired(json: &str, limits: &Limits) -> Result<Desired, CallError> {
    let desired: Desired = read(json, limits)?;
    let count = desired.objects.len();
    if count > limits.objects {
        return Err(CallError::TooManyObjects { count, limit: limits.objects });
    }
    Ok(desired)
}

/// The error of a document that cannot be decoded. It decodes the document once more to find the
/// place, which is too slow for every call.
fn unreadable<D: Document>(json: &str, error: &serde_json::Error) -> CallError {
    let mut what = error.to_string();
    let mut place = String::new();
    let mut json = serde_json::Deserializer::from_str(json);
    if let Err(error) = serde_path_to_error::deserialize::<_, D>(&mut json) {
        place = error.path().to_string();
        what = error.into_inner().to_string();
    }
    if place == "." {
        place.clear();
    }
    CallError::OutputUnreadable { document: D::NAME, what: text(what), place: text(place) }
}
