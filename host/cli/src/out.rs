//! Standard output and standard error. No other file writes to them.
//!
//! Names and messages come from guests, objects and servers: whatever a line quotes, it stays one
//! line and sends no commands to the terminal. `cargo xtask tidy` finds other files that write.

use std::fmt::{Display, Write as _};
use std::io::{self, ErrorKind, IsTerminal as _, Write as _};
use std::process::ExitCode;

use innkeeper_core::foreign;

use crate::document::Document;

/// Lines of text.
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

    /// Adds a table whose columns are as wide as their cells.
    pub(crate) fn table<const N: usize>(&mut self, rows: &[[String; N]]) {
        self.lines(&table(rows));
    }

    /// All lines.
    pub(crate) fn text(&self) -> &str {
        &self.0
    }
}

/// Writes lines to standard output.
///
/// # Errors
/// If standard output is closed.
pub(crate) fn page(page: &Page) -> anyhow::Result<()> {
    write(page.text())
}

/// Writes one line to standard output.
///
/// # Errors
/// If standard output is closed.
pub(crate) fn line(text: impl Display) -> anyhow::Result<()> {
    let mut page = Page::default();
    page.line(text);
    write(page.text())
}

/// Writes a document for other programs to standard output.
///
/// # Errors
/// If standard output is closed.
pub(crate) fn document(document: &Document) -> anyhow::Result<()> {
    write(document.text())
}

/// Writes text and commands for a terminal to standard output.
///
/// # Errors
/// If standard output is closed.
pub(crate) fn screen(commands: &Commands) -> anyhow::Result<()> {
    write(&commands.0)
}

/// Text and commands for a terminal. Only [`crate::demo`] makes them.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Commands(pub(crate) String);

/// Whether standard output is a terminal.
pub(crate) fn is_terminal() -> bool {
    io::stdout().is_terminal()
}

/// Writes a message to standard error, and ignores an error of standard error itself. Indents all
/// lines but the first, so that none of them looks like another message.
pub(crate) fn eprint(text: &str) {
    let mut page = Page::default();
    for (index, line) in text.lines().enumerate() {
        let indent = if index == 0 || line.starts_with("  ") { "" } else { "  " };
        page.line(format_args!("{indent}{line}"));
    }
    let _ = io::stderr().lock().write_all(page.text().as_bytes());
}

/// Whether standard error is a terminal.
pub(crate) fn is_error_terminal() -> bool {
    io::stderr().is_terminal()
}

/// Writes a line to a terminal at standard error that the next output replaces; an empty text
/// removes it. Cuts the text, so that the terminal does not wrap it.
pub(crate) fn replace_error_line(text: &str) {
    const LINE_MAX: usize = 79;
    let line: String =
        foreign::one_line(text, foreign::LINE_BYTES_MAX).chars().take(LINE_MAX).collect();
    // To the first column, and the rest of the line empty.
    let _ = io::stderr().lock().write_all(format!("\r\u{1b}[K{line}").as_bytes());
}

fn write(text: &str) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()?;
    Ok(())
}

/// An error and its causes, as one text. Leaves out a cause that the text already contains.
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

/// The result of a print, without the error that the reader of standard output closed it.
///
/// # Errors
/// All other ones.
pub(crate) fn or_closed(printed: anyhow::Result<()>) -> anyhow::Result<()> {
    match printed {
        Err(error) if is_closed(&error) => Ok(()),
        printed => printed,
    }
}

/// Whether an error says that the reader of standard output closed it.
pub(crate) fn is_closed(error: &anyhow::Error) -> bool {
    error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == ErrorKind::BrokenPipe)
}

/// Ends the command: an error goes to standard error.
pub(crate) fn exit(result: anyhow::Result<()>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        // The reader closed the pipe, as in `innkeeper inspect ... | head`.
        Err(error) if is_closed(&error) => ExitCode::SUCCESS,
        Err(error) => {
            eprint(&format!("innkeeper: {}", error_chain(&error)));
            ExitCode::FAILURE
        }
    }
}

/// A table whose columns are as wide as their cells.
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

/// The output formats.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Format {
    /// Text for people.
    Text,
    /// One JSON document.
    Json,
}

#[cfg(test)]
mod tests {
    use anyhow::anyhow;

    use super::*;

    #[test]
    fn cause_is_left_out_when_the_text_contains_it() {
        let error = anyhow!("no such file").context("a: no such file").context("cannot begin");
        assert_eq!(error_chain(&error), "cannot begin: a: no such file");
    }

    #[test]
    fn line_stays_one_line_whatever_it_quotes() {
        let mut page = Page::default();
        page.line("a\nb\u{1b}[2J\u{202e}");
        page.table(&[["a\nb", "\u{9b}2J"]].map(|row| row.map(str::to_owned)));
        page.lines("a\r\nb\u{2028}c");
        assert_eq!(page.text(), "a\\nb\\u{1b}[2J\\u{202e}\na\\nb  \\u{9b}2J\na\nb\\u{2028}c\n");
    }

    #[test]
    fn columns_are_as_wide_as_their_cells() {
        let rows = [["NAME", "READY"], ["podroute", "True"]].map(|row| row.map(str::to_owned));
        assert_eq!(table(&rows), "NAME      READY\npodroute  True\n");
    }
}
