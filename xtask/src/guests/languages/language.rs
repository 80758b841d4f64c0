//! The languages of guests other than Rust.

use std::path::Path;

/// The contract of the components.
pub(super) const WIT: &str = "wit/guest.wit";

/// Runs Python's tests like `python -m unittest -v`, but prints to standard output.
pub(super) const UNITTEST: &str = "import sys, unittest; \
    unittest.main(None, testRunner=unittest.TextTestRunner(sys.stdout, verbosity=2))";

/// The sources of the SDK for Python, below the root.
pub(super) const PYTHON_SDK: &str = "guests/sdk-py/src";

/// The SDK for TypeScript, below the root.
pub(super) const TYPESCRIPT_SDK: &str = "guests/sdk-ts";

/// The SDK for Go, below the root.
const GO_SDK: &str = "guests/sdk-go";

/// A language. A file in the guest's folder identifies it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Language {
    Python,
    JavaScript,
    TypeScript,
    Go,
}

impl Language {
    /// The files that list the needed tools.
    pub(super) fn requirements(self) -> &'static [&'static str] {
        match self {
            Self::Python => &["requirements.txt"],
            Self::JavaScript | Self::TypeScript => &["package.json", "package-lock.json"],
            Self::Go => &["go.mod"],
        }
    }

    /// The folder with its SDK, below the root.
    pub(super) fn sdk(self) -> Option<&'static str> {
        match self {
            Self::Python => Some(PYTHON_SDK),
            Self::JavaScript => None,
            Self::TypeScript => Some(TYPESCRIPT_SDK),
            Self::Go => Some(GO_SDK),
        }
    }

    /// The file that identifies the language of a guest.
    fn mark(self) -> &'static str {
        match self {
            Self::Python => "requirements.txt",
            Self::JavaScript => "package.json",
            Self::TypeScript => "tsconfig.json",
            Self::Go => "go.mod",
        }
    }

    /// The language of the guest in a folder, if it is one of these.
    pub(super) fn of(folder: &Path) -> Option<Self> {
        // A guest in TypeScript has the file of JavaScript too.
        let languages = [Self::Python, Self::TypeScript, Self::JavaScript, Self::Go];
        languages.into_iter().find(|one| folder.join(one.mark()).is_file())
    }
}
