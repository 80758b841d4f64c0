//! Where a component comes from.

use std::fmt;

use crate::module;

/// Where a component comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SourceRef {
    /// `binaryData` of a ConfigMap in the namespace [`module::NAMESPACE`].
    ConfigMap {
        /// Its name.
        name: String,
        /// The key; see [`crate::source::pick_key`] if there is none.
        key: Option<String>,
    },
    /// A file, as the Module names it.
    File(String),
}

impl fmt::Display for SourceRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ConfigMap { name, .. } => write!(f, "ConfigMap {}/{name}", module::NAMESPACE),
            Self::File(path) => write!(f, "file {path}"),
        }
    }
}

/// Where a Module was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SourceKind {
    /// On the API server.
    Cluster,
    /// In a folder, on a developer's machine.
    Directory,
}
