//! Standard output and standard error: the only place that writes to them.
//!
//! Whatever a line quotes, it stays one line and does nothing to the terminal: names and messages
//! come from guests, objects and servers. `cargo xtask tidy` keeps other files from writing there.

use std::fmt::{Display, Write as _};
use std::io::{self, ErrorKind, IsTerminal as _, Write as _};

use innkeeper_core::foreign;

use crate::document::Document;

/// Lines for people.
#[derive(Debug, Default)]
pub(crate) struct Page(String);

impl Page {
    /// Adds one line, whatever `text` holds; blanks at its end are left out.
    pub(crate) fn line(&mut self, text: impl Display) {
        let line = foreign::one_line(text, foreign::LINE_BYTES_MAX);
        self.0.push_str(line.trim_end());
        self.0.push('\n');
    }

    /// Adds the lines of a text that has several.
    pub(crate) fn lines(&mut self, text: &str) {
        for line in text.lines() {
            self.line(line);
        }
    }

    /// Adds columns, as wide as they have to be.
    pub(crate) fn table<const N: usize>(&mut self, rows: &[[String; N]]) {
        self.lines(&table(rows));
    }

    /// All lines.
    pub(crate) fn text(&self) -> &str {
        &self.0
    }
}

/// Writes lines to standard output.
pub(crate) fn page(page: &Page) -> anyhow::Result<()> {
    write(page.text())
}

/// Writes one line to standard output.
pub(crate) fn line(text: impl Display) -> anyhow::Result<()> {
    let mut page = Page::default();
    page.line(text);
    write(page.text())
}

/// Writes a document for other programs to standard output.
pub(crate) fn document(document: &Document) -> anyhow::Result<()> {
    write(document.text())
}

/// Writes what a terminal has to show to standard output, with its commands.
pub(crate) fn screen(commands: &Commands) -> anyhow::Result<()> {
    write(&commands.0)
}

/// Text and commands for a terminal, of which only [`crate::demo`] makes some.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Commands(pub(crate) String);

/// Whether standard output is a terminal.
pub(crate) fn is_terminal() -> bool {
    io::stdout().is_terminal()
}

/// Writes a line for people to standard error; the further lines of one that has several are
/// indented, so that none of them looks like another message. An error of standard
/// error itself is ignored.
pub(crate) fn eprint(text: &str) {
    let mut page = Page::default();
    for (index, line) in text.lines().enumerate() {
        let indent = if index == 0 || line.starts_with("  ") { "" } else { "  " };
        page.line(format_args!("{indent}{line}"));
    }
    let _ = io::stderr().lock().write_all(page.text().as_bytes());
}

fn write(text: &str) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()?;
    Ok(())
}

/// An error and its causes, as one text. A cause that the text before quotes already is left out.
pub(crate) fn error_chain(error: &anyhow::Error) -> String {
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
    let rows: Vec<[String; N]> = rows
        .iter()
        .map(|row| row.each_ref().map(|cell| foreign::one_line(cell, foreign::LINE_BYTES_MAX)))
        .collect();
    let widths: [usize; N] = std::array::from_fn(|index| {
        rows.iter().map(|row| row[index].chars().count()).max().unwrap_or_default()
    });
    let mut text = String::new();
    for row in &rows {
        let mut line = String::new();
        for (cell, width) in row.iter().zip(widths) {
            // Writing into a String cannot fail.
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
        assert_eq!(error_chain(&error), "cannot begin: a: no such file");
    }

    #[test]
    fn a_line_stays_one_line_whatever_it_quotes() {
        let mut page = Page::default();
        page.line("a\nb\u{1b}[2J\u{202e}");
        page.table(&[["a\nb", "\u{9b}2J"]].map(|row| row.map(str::to_owned)));
        page.lines("a\r\nb\u{2028}c");
        assert_eq!(page.text(), "a\\nb\\u{1b}[2J\\u{202e}\na\\nb  \\u{9b}2J\na\nb\\u{2028}c\n");
    }

    #[test]
    fn columns_are_as_wide_as_they_have_to_be() {
        let rows = [["NAME", "READY"], ["podroute", "True"]].map(|row| row.map(str::to_owned));
        assert_eq!(table(&rows), "NAME      READY\npodroute  True\n");
    }
}
