//! `cargo xtask reference`: docs/reference, the pages of all fields of the Module and of the
//! contract's documents, from their schemas and from examples.

mod field_type;
mod markdown;
mod pages;
mod sections;
mod sentences;

use std::collections::BTreeMap;
use std::fs;

use anyhow::{Context as _, Result, bail};

use crate::command::root;
use crate::progress::say;

/// The folder of the pages.
const FOLDER: &str = "docs/reference";

/// Writes the pages; with `check` only compares them.
///
/// # Errors
/// If a schema or an example cannot be read, a field has no example or an example a field that the
/// schema has not, a file cannot be written, or one differs with `check`.
pub(crate) fn run(check: bool) -> Result<()> {
    let pages = pages::all()?;
    if check {
        let differing = differences(&pages);
        if !differing.is_empty() {
            bail!(
                "these pages differ from the schemas: {}; run `cargo xtask reference`",
                differing.join(", ")
            );
        }
        return Ok(());
    }
    let folder = root().join(FOLDER);
    fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
    for (name, text) in &pages {
        let path = folder.join(name);
        fs::write(&path, text).with_context(|| path.display().to_string())?;
        say(&format!("wrote {FOLDER}/{name}"));
    }
    Ok(())
}

/// Names of the pages that are missing or have another text.
fn differences(pages: &BTreeMap<String, String>) -> Vec<&str> {
    let folder = root().join(FOLDER);
    let committed = |name: &str| fs::read_to_string(folder.join(name)).ok();
    pages
        .iter()
        .filter(|(name, text)| committed(name).as_ref() != Some(text))
        .map(|(name, _)| name.as_str())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn committed_pages_match_the_schemas() {
        let pages = pages::all().unwrap();
        let differing = differences(&pages);
        assert!(differing.is_empty(), "run `cargo xtask reference`: {differing:?}");
    }

    #[test]
    fn links_within_a_page_lead_to_its_headings() {
        for (name, text) in pages::all().unwrap() {
            let headings: Vec<String> = text
                .lines()
                .filter(|line| line.starts_with('#'))
                .map(|line| markdown::anchor(line.trim_start_matches('#').trim()))
                .collect();
            for link in text.split("](#").skip(1).filter_map(|rest| rest.split(')').next()) {
                assert!(headings.iter().any(|one| one == link), "{name} has no heading #{link}");
            }
        }
    }
}
