//! The commands that a guest's README gives to its users.

use std::fs;

use anyhow::{Context as _, Result, ensure};
use innkeeper_cluster_tests::stage::root;

/// The section for those who come from the original operator.
pub(crate) const ORIGINAL: &str = "Coming from the original";
const BEGIN: &str = "\n```sh\n";
const END: &str = "\n```\n";

/// The blocks of commands in a section of `guests/NAME/README.md`, in order.
///
/// # Errors
/// If there is no such section, or no block in it.
pub(crate) fn blocks(guest: &str, heading: &str) -> Result<Vec<String>> {
    let path = root().join("guests").join(guest).join("README.md");
    let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    let (_, section) = text
        .split_once(&format!("\n## {heading}\n"))
        .with_context(|| format!("{} has no section {heading}", path.display()))?;
    let section = section.split("\n## ").next().unwrap_or_default();
    let blocks = section.split(BEGIN).skip(1).filter_map(|rest| rest.split_once(END));
    let blocks: Vec<_> = blocks.map(|(block, _)| block.to_owned()).collect();
    ensure!(!blocks.is_empty(), "{}: the section has no commands", path.display());
    Ok(blocks)
}
