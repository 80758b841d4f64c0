//! Golden files: the expected output of `innkeeper render` and `innkeeper review`.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use anyhow::{Context as _, bail};
use similar::TextDiff;

use crate::out::{self, Page};

/// Lines of context around a difference.
const CONTEXT_LINES: usize = 3;

/// Compares a text with a golden file and prints the difference; `what` names the text. With
/// `update`, writes the text to the file.
///
/// # Errors
/// If the file cannot be read or written; without `update` also if it differs or does not exist.
pub(crate) fn compare(golden: &Path, what: &str, text: &str, update: bool) -> anyhow::Result<()> {
    let place = golden.display();
    let before = match fs::read_to_string(golden) {
        Ok(before) => Some(before),
        Err(error) if error.kind() == ErrorKind::NotFound => None,
        Err(error) => return Err(error).with_context(|| format!("cannot read {place}")),
    };
    if before.as_deref() == Some(text) {
        return Ok(());
    }
    if update {
        fs::write(golden, text).with_context(|| format!("cannot write {place}"))?;
    }
    match before {
        None if update => out::line(format_args!("{place} created")),
        None => bail!("--golden {place} does not exist; run with --update to create it"),
        Some(before) => {
            let name = place.to_string();
            let difference = TextDiff::from_lines(before.as_str(), text);
            let mut shown = difference.unified_diff();
            shown.context_radius(CONTEXT_LINES).header(&name, what);
            let mut page = Page::default();
            page.lines(&shown.to_string());
            out::page(&page)?;
            if update {
                return Ok(());
            }
            bail!("the {what} differs from {place}; if the change is intended, run with --update")
        }
    }
}
