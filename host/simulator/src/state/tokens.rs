//! The ServiceAccount tokens that the server has issued.

use std::collections::BTreeMap;

use jiff::Timestamp;

use crate::types::object_key::{Key, KindKey};

/// A token that was made.
#[derive(Clone, Debug)]
pub(crate) struct IssuedToken {
    /// Namespace and name.
    pub(crate) account: Key,
    /// What must still be there: the account, and what the token is bound to.
    pub(crate) bound: Vec<(KindKey, Key, String)>,
    pub(crate) extra: BTreeMap<String, Vec<String>>,
    pub(crate) audiences: Vec<String>,
    pub(crate) ends: Timestamp,
}
