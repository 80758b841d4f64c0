//! The value sources of a desired object: their checks, and the place of their values in the body.

use std::collections::BTreeSet;

use innkeeper_contract::{Policy, UpdateMethod, ValueSource};
use serde_json::Value;

use super::error::InvalidDesired;
use crate::ObjectRef;
use crate::host_names::Grants;
use crate::ownership::Primary;

/// A desired object, as far as its value sources depend on it.
#[derive(Debug)]
#[expect(dead_code, reason = "every source is refused so far")]
pub(super) struct Target<'a> {
    /// Kind and name.
    pub(super) object_ref: &'a ObjectRef,
    /// The object as the guest gives it.
    pub(super) object: &'a Value,
    /// Its policies.
    pub(super) policy: &'a BTreeSet<Policy>,
    /// How its update group is updated, if it is in one.
    pub(super) update_method: Option<UpdateMethod>,
    /// The primary, in whose namespace a source without a namespace is.
    pub(super) primary: &'a Primary,
    /// What the Module grants.
    pub(super) grants: Grants<'a>,
}

/// Reads the value sources of a desired object, each with its namespace.
///
/// # Errors
/// Returns the first violation of the contract, or the first source that the Module does not grant.
pub(super) fn read(
    sources: &[ValueSource],
    target: &Target<'_>,
) -> Result<Vec<ValueSource>, InvalidDesired> {
    if sources.is_empty() {
        return Ok(Vec::new());
    }
    Err(InvalidDesired::Malformed {
        what: target.object_ref.to_string(),
        problem: "value sources are not supported yet; leave out valuesFrom".to_owned(),
    })
}
