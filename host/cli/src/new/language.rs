//! The languages with a template.

/// A language with a template.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Language {
    /// A crate with the SDK.
    #[default]
    Rust,
    /// A module with the SDK, and componentize-py.
    Python,
    /// A module, and componentize-js.
    Javascript,
    /// Modules with the SDK, and componentize-js.
    Typescript,
    /// A Go module with the SDK.
    Go,
}

impl Language {
    /// The name, as the language's users write it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Rust => "Rust",
            Self::Python => "Python",
            Self::Javascript => "JavaScript",
            Self::Typescript => "TypeScript",
            Self::Go => "Go",
        }
    }

    /// What a guest is to the language.
    pub(crate) fn unit(self) -> &'static str {
        if self == Self::Rust { "crate" } else { "guest" }
    }

    /// The commands that test and build a guest.
    pub(crate) fn first_commands(self) -> &'static [&'static str] {
        match self {
            Self::Rust => &["cargo test", "innkeeper build"],
            Self::Python => &[
                "python3 -m venv .venv",
                ".venv/bin/pip install --require-hashes -r requirements.txt",
                ".venv/bin/mypy .",
                ".venv/bin/python -m unittest",
                ".venv/bin/componentize-py --wit-path wit/guest.wit --world reconciler-guest componentize --stub-wasi guest --output @component@",
            ],
            Self::Javascript => &["npm ci", "npm test", "npm run build"],
            Self::Typescript => &["npm ci", "npm run check", "npm test", "npm run build"],
            Self::Go => &["go test ./...", "innkeeper build"],
        }
    }
}
