//! The ServiceAccount tokens that the server has issued.

use std::collections::BTreeMap;

use jiff::Timestamp;

use crate::types::object_key::{Key, KindKey};

/// An issued token.
#[derive(Clone, Debug)]
pub(crate) struct IssuedToken {
    /// Namespace and name.
    pub(crate) account: Key,
    /// The objects that must still exist: the ServiceAccount, and the object that the token is
    /// bound to.
    pub(crate) bound: Vec<(KindKey, Key, String)>,
    pub(crate) extra: BTreeMap<String, Vec<String>>,
    pub(crate) audiences: Vec<String>,
    pub(crate) ends: Timestamp,
}
