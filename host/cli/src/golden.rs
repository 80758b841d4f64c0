//! Golden files: what was printed once and is to stay so.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use anyhow::{Context as _, bail};
use similar::TextDiff;

use crate::out::{self, Page};

/// Lines around a difference that are shown with it.
const CONTEXT_LINES: usize = 3;

/// Compares a text to a golden file. Prints the difference, and fails if there is one; with
/// `update` it is written into the file.
pub(crate) fn compare(golden: &Path, text: &str, update: bool) -> anyhow::Result<()> {
    let place = golden.display();
    let before = match fs::read_to_string(golden) {
        Ok(before) => Some(before),
        Err(error) if error.kind() == ErrorKind::NotFound => None,
        Err(error) => return Err(error).with_context(|| format!("{place} cannot be read")),
    };
    if before.as_deref() == Some(text) {
        return Ok(());
    }
    if update {
        fs::write(golden, text).with_context(|| format!("{place} cannot be written"))?;
    }
    match before {
        None if update => out::line(format_args!("{place} is new")),
        None => bail!("--golden {place} does not exist: --update writes it"),
        Some(before) => {
            let name = place.to_string();
            let difference = TextDiff::from_lines(before.as_str(), text);
            let mut shown = difference.unified_diff();
            shown.context_radius(CONTEXT_LINES).header(&name, "what the guest desires now");
            let mut page = Page::default();
            page.lines(&shown.to_string());
            out::page(&page)?;
            if update {
                return Ok(());
            }
            bail!(
                "what the guest desires differs from {place}: if that is right, --update writes it"
            )
        }
    }
}
