//! Converts objects of kinds with several versions between the stored version and the version of a
//! request.

use serde_json::Value;

use crate::types::crd::definition::{Definition, Version};
use crate::types::crd::{default, prune};
use crate::types::kind::Kind;
use crate::types::kinds::autoscaler;

/// The version in the apiVersion of an object.
fn version_of<'d>(definition: &'d Definition, object: &Value) -> Option<&'d Version> {
    let version = object["apiVersion"].as_str()?.rsplit('/').next()?;
    definition.version(version)
}

/// Drops members that a version does not have, and nulls that it does not allow.
fn coerce(version: &Version, object: &mut Value) {
    prune::prune(&version.schema, object);
    default::drop_nulls(&version.schema, object);
}

/// Reads a stored object, with the current defaults and members of its storage version.
pub(crate) fn from_store(definition: &Definition, object: &mut Value) {
    if let Some(version) = version_of(definition, object) {
        coerce(version, object);
        default::fill(&version.schema, object);
    }
}

/// Whether a stored object is of the version that new ones are stored in.
pub(crate) fn is_in_storage_version(definition: &Definition, object: &Value) -> bool {
    let storage = definition.versions.iter().find(|version| version.storage);
    storage.is_none_or(|storage| {
        version_of(definition, object).is_some_and(|version| version.name == storage.name)
    })
}

/// Whether objects of a kind may be stored in another version than they are read in.
pub(crate) fn has_versions(kind: &Kind) -> bool {
    kind.custom.as_ref().is_some_and(|custom| custom.versions.len() > 1) || autoscaler::is_v1(kind)
}

/// Turns an object into one of the kind's version.
pub(crate) fn convert(kind: &Kind, object: &mut Value) {
    if autoscaler::is_v1(kind) {
        return autoscaler::to_v1(object);
    }
    let Some(definition) = &kind.custom else { return };
    let wanted = kind.api_version();
    if object["apiVersion"] != wanted.as_str() {
        object["apiVersion"] = wanted.into();
        if let Some(version) = definition.version(&kind.version) {
            coerce(version, object);
        }
    }
}

/// Turns an object into one of the version that it is stored in.
pub(crate) fn to_store(kind: &Kind, object: &mut Value) {
    if autoscaler::is_v1(kind) {
        return autoscaler::to_stored(object);
    }
    let Some(definition) = &kind.custom else { return };
    let Some(storage) = definition.versions.iter().find(|version| version.storage) else { return };
    if storage.name != kind.version {
        object["apiVersion"] = format!("{}/{}", definition.group, storage.name).into();
        from_store(definition, object);
    }
}
