//! The update groups of a `desired` document: their checks, and the group of an object.

use innkeeper_contract::{Desired, UpdateGroup};

use super::error::InvalidDesired;

/// Why the host refuses update groups.
const NOT_SUPPORTED: &str =
    "update groups are not supported yet; leave out updateGroups and updateGroup";

/// Reads the update groups of a document.
///
/// # Errors
/// Returns the first violation of the contract.
pub(super) fn read(desired: &Desired) -> Result<Vec<UpdateGroup>, InvalidDesired> {
    if desired.update_groups.is_empty() {
        return Ok(Vec::new());
    }
    Err(InvalidDesired::Malformed {
        what: "updateGroups".to_owned(),
        problem: NOT_SUPPORTED.to_owned(),
    })
}

/// Finds the update group of an object among those that [`read`] returned.
///
/// # Errors
/// Returns why the object cannot be in the group.
pub(super) fn group_of<'a>(
    desired: &innkeeper_contract::DesiredObject,
    _groups: &'a [UpdateGroup],
) -> Result<Option<&'a UpdateGroup>, String> {
    match &desired.update_group {
        None => Ok(None),
        Some(_) => Err(NOT_SUPPORTED.to_owned()),
    }
}
