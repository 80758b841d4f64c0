//! The documents that a guest gives, read strictly.

use innkeeper_contract::{Desired, Failure, Manifest};
use serde::de::DeserializeOwned;

use crate::error::{CallError, text};
use crate::limits::Limits;

/// A document of the contract that a guest gives.
pub(crate) trait Document: DeserializeOwned {
    /// Its name in the contract.
    const NAME: &'static str;
}

impl Document for Manifest {
    const NAME: &'static str = "manifest";
}

impl Document for Desired {
    const NAME: &'static str = "desired";
}

impl Document for Failure {
    const NAME: &'static str = "failure";
}

/// Reads a document; unknown members are errors, since they are typos.
pub(crate) fn read<D: Document>(json: &str, limits: &Limits) -> Result<D, CallError> {
    if json.len() > limits.output_bytes {
        return Err(CallError::OutputTooLarge {
            document: D::NAME,
            bytes: json.len(),
            limit: limits.output_bytes,
        });
    }
    serde_json::from_str(json).map_err(|error| unreadable::<D>(json, &error))
}

pub(crate) fn read_desired(json: &str, limits: &Limits) -> Result<Desired, CallError> {
    let desired: Desired = read(json, limits)?;
    let count = desired.objects.len();
    if count > limits.objects {
        return Err(CallError::TooManyObjects { count, limit: limits.objects });
    }
    Ok(desired)
}

/// Reads once more, keeping track of the place: too slow to do on every call.
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
