//! Standard output and standard error.

use std::fmt::Write as _;
use std::io::{self, ErrorKind, Write as _};

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

/// An error and its causes, as one text. A cause that the text before quotes already is left out.
pub(crate) fn told(error: &anyhow::Error) -> String {
    let mut text = String::new();
    for cause in error.chain().map(ToString::to_string) {
        if text.is_empty() {
            text = cause;
        } else if !text.contains(&cause) {
            text = format!("{text}: {cause}");
        }
    }
    text
}

/// Whether an error is a reader of ours that went away.
pub(crate) fn is_closed(error: &anyhow::Error) -> bool {
    error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == ErrorKind::BrokenPipe)
}

/// Columns, as wide as they have to be.
pub(crate) fn table<const N: usize>(rows: &[[String; N]]) -> String {
    let mut text = String::new();
    for row in rows {
        let mut line = String::new();
        for (index, cell) in row.iter().enumerate() {
            let width = rows.iter().map(|row| row[index].chars().count()).max().unwrap_or_default();
            let _ = write!(line, "{cell:width$}  ");
        }
        text += line.trim_end();
        text.push('\n');
    }
    text
}

/// How a result is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Format {
    /// For people.
    Text,
    /// One JSON document.
    Json,
}

#[cfg(test)]
mod tests {
    use anyhow::anyhow;

    use super::*;

    #[test]
    fn a_cause_is_told_once() {
        let error = anyhow!("no such file").context("a: no such file").context("cannot begin");
        assert_eq!(told(&error), "cannot begin: a: no such file");
    }

    #[test]
    fn columns_are_as_wide_as_they_have_to_be() {
        let rows = [["NAME", "READY"], ["podroute", "True"]].map(|row| row.map(str::to_owned));
        assert_eq!(table(&rows), "NAME      READY\npodroute  True\n");
    }
}
