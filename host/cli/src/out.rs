//! Standard output and standard error.

use std::io::{self, ErrorKind, Write};

/// Writes what was asked for to standard output.
pub(crate) fn write(text: impl AsRef<str>) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_ref().as_bytes())?;
    out.flush()?;
    Ok(())
}

/// Writes one line for people to standard error. If that is closed, nobody wants to know.
pub(crate) fn complain(text: &str) {
    let _ = writeln!(io::stderr().lock(), "{text}");
}

/// Whether an error is a reader of ours that went away.
pub(crate) fn is_closed(error: &anyhow::Error) -> bool {
    error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == ErrorKind::BrokenPipe)
}

/// How a result is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Format {
    /// For people.
    Text,
    /// One JSON document.
    Json,
}
