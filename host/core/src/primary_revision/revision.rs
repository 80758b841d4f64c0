//! One primary revision.

use serde_json::Value;

/// A stored state of fields of a primary, in the API version in which the guest sees it now.
#[derive(Clone, Debug, PartialEq)]
pub struct PrimaryRevision {
    /// The name of its `ControllerRevision`.
    pub name: String,
    /// Its number: newer revisions have higher ones.
    pub number: i64,
    /// The paths of the stored fields.
    pub(super) field_paths: Vec<String>,
    /// The stored fields, at their places in the primary.
    pub(super) data: Value,
}

/// A stored state in another API version of the primary: the same fields may mean something else
/// there, so the guest never gets it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RevisionOfOtherVersion {
    /// The name of its `ControllerRevision`.
    pub name: String,
    /// The API version.
    pub api_version: String,
}
