//! What is recorded of a case.

use innkeeper_contract::Kind;
use serde::Serialize;
use serde_json::Value;

use crate::case::Churns;

/// What is recorded of a case; read by `host/core/tests/in_sync.rs`.
#[derive(Serialize)]
pub(crate) struct Fixture<'a> {
    pub(crate) name: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    pub(crate) about: &'a str,
    pub(crate) kind: Kind,
    pub(crate) manager: String,
    /// As sent, with the digest.
    pub(crate) desired: Value,
    /// As the apply was answered.
    pub(crate) live: Value,
    /// Whether the server takes a second apply as no change.
    pub(crate) unchanged: bool,
    pub(crate) churns: Churns,
    /// Whether we should tell so.
    pub(crate) settled: bool,
    pub(crate) changes: Vec<Changed<'a>>,
}

#[derive(Serialize)]
pub(crate) struct Changed<'a> {
    pub(crate) name: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    pub(crate) about: &'a str,
    pub(crate) live: Value,
    pub(crate) unchanged: bool,
    pub(crate) settled: bool,
    pub(crate) lost: &'a [String],
}
