//! The languages of guests other than Rust.

use std::path::Path;

/// The sources of the SDK for Python, below the root.
pub(super) const PYTHON_SDK: &str = "guests/sdk-py/src";

/// A language. A file in the guest's folder identifies it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Language {
    Python,
    JavaScript,
}

impl Language {
    /// The files that list the needed tools; the first one identifies the language.
    pub(super) fn requirements(self) -> &'static [&'static str] {
        match self {
            Self::Python => &["requirements.txt"],
            Self::JavaScript => &["package.json", "package-lock.json"],
        }
    }

    /// The folder with the sources of its SDK, below the root.
    pub(super) fn sdk_sources(self) -> Option<&'static str> {
        (self == Self::Python).then_some(PYTHON_SDK)
    }

    /// The language of the guest in a folder, if it is one of these.
    pub(super) fn of(folder: &Path) -> Option<Self> {
        let languages = [Self::Python, Self::JavaScript];
        languages.into_iter().find(|one| folder.join(one.requirements()[0]).is_file())
    }
}
