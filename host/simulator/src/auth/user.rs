//! Users.

use std::collections::BTreeMap;

use serde_json::{Value, json};

/// An authenticated user.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct User {
    pub(crate) name: String,
    pub(crate) groups: Vec<String>,
    pub(crate) uid: String,
    /// Extra members, as authentication gave them.
    pub(crate) extra: BTreeMap<String, Vec<String>>,
}

impl User {
    /// What the server knows of the user, as objects that note it down have it.
    pub(crate) fn members(&self) -> [(&'static str, Value); 4] {
        [
            ("username", self.name.as_str().into()),
            ("uid", self.uid.as_str().into()),
            ("groups", self.groups.clone().into()),
            ("extra", json!(self.extra)),
        ]
    }

    /// A user of this name and these groups.
    pub fn new(name: impl Into<String>, groups: Vec<String>) -> Self {
        Self { name: name.into(), groups, ..Self::default() }
    }

    /// A user who may do everything.
    pub fn admin() -> Self {
        Self::new("admin", vec!["system:masters".to_owned(), "system:authenticated".to_owned()])
    }

    /// The user of requests without credentials.
    pub fn anonymous() -> Self {
        Self::new("system:anonymous", vec!["system:unauthenticated".to_owned()])
    }

    /// Whether the user is in a group.
    pub(crate) fn is_in(&self, group: &str) -> bool {
        self.groups.iter().any(|one| one == group)
    }
}
