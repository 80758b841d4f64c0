//! The definitions that an installation wrote.

/// The definitions that an installation wrote.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InstalledCrds {
    /// The names of those that did not exist.
    pub created: Vec<String>,
    /// The foreign ones.
    pub adopted: Vec<AdoptedCrd>,
}

/// A foreign definition that became the module's.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AdoptedCrd {
    /// Its name.
    pub name: String,
    /// What users of kubectl lost, as in `the short name wd`.
    pub display_losses: Vec<String>,
}

impl InstalledCrds {
    /// Whether nothing was written.
    pub fn is_empty(&self) -> bool {
        self.created.is_empty() && self.adopted.is_empty()
    }
}
