//! What can go wrong when a control plane is started.

use std::path::{Path, PathBuf};

/// Why there is no control plane. Each message says what to do about it.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A program that is needed is not there.
    #[error("{what} is missing: {hint}")]
    Missing {
        /// The program or file.
        what: String,
        /// What to do.
        hint: String,
    },
    /// The build of a Go program failed.
    #[error("building a Go program failed: {0}")]
    Build(String),
    /// A process ended, or did not become ready in time.
    #[error("{name} {what}; the end of its log ({}):\n{tail}", log.display())]
    Process {
        /// The program's name.
        name: String,
        /// What happened to it.
        what: String,
        /// Its log file.
        log: PathBuf,
        /// The last lines of the log.
        tail: String,
    },
    /// A certificate could not be made.
    #[error("making certificates: {0}")]
    Certificate(#[from] rcgen::Error),
    /// A file could not be read or written.
    #[error("{}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        source: std::io::Error,
    },
    /// The operating system refused something else.
    #[error("{what}: {source}")]
    System {
        /// What was tried.
        what: String,
        /// The error of the operating system.
        source: std::io::Error,
    },
    /// A line of the audit log, or a state file, is not what it should be.
    #[error("{}: {what}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        what: String,
    },
}

impl Error {
    /// For `map_err` on operations on the file at `path`.
    pub fn file(path: &Path) -> impl FnOnce(std::io::Error) -> Self + '_ {
        move |source| Self::File { path: path.to_owned(), source }
    }

    /// For `map_err` on other calls of the operating system.
    pub fn system(what: impl Into<String>) -> impl FnOnce(std::io::Error) -> Self {
        move |source| Self::System { what: what.into(), source }
    }
}
