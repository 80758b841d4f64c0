//! Users.

use std::collections::BTreeMap;

/// A user, as authentication finds him.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct User {
    pub(crate) name: String,
    pub(crate) groups: Vec<String>,
    pub(crate) uid: String,
    /// What else is known of him.
    pub(crate) extra: BTreeMap<String, Vec<String>>,
}

impl User {
    /// One of this name and these groups.
    pub fn new(name: impl Into<String>, groups: Vec<String>) -> Self {
        Self { name: name.into(), groups, ..Self::default() }
    }

    /// Who may do everything.
    pub fn admin() -> Self {
        Self::new("admin", vec!["system:masters".to_owned(), "system:authenticated".to_owned()])
    }

    /// Who did not say who he is.
    pub fn anonymous() -> Self {
        Self::new("system:anonymous", vec!["system:unauthenticated".to_owned()])
    }

    /// Whether he is in a group.
    pub(crate) fn is_in(&self, group: &str) -> bool {
        self.groups.iter().any(|one| one == group)
    }
}
