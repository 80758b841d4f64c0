//! One primary revision.

use serde_json::Value;

/// A stored state of fields of a primary.
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
