//! The commands that a guest's README gives to those who come from the original operator.

use std::fs;

use anyhow::{Context as _, Result, ensure};
use innkeeper_cluster_tests::stage::root;

const HEADING: &str = "\n## Coming from the original\n";
const BEGIN: &str = "\n```sh\n";
const END: &str = "\n```\n";

/// The blocks of commands in this section of `guests/NAME/README.md`, in order.
///
/// # Errors
/// If there is no such section, or no block in it.
pub(crate) fn blocks(guest: &str) -> Result<Vec<String>> {
    let path = root().join("guests").join(guest).join("README.md");
    let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    let (_, section) = text
        .split_once(HEADING)
        .with_context(|| format!("{} has no section{}", path.display(), HEADING.trim_end()))?;
    let section = section.split("\n## ").next().unwrap_or_default();
    let blocks = section.split(BEGIN).skip(1).filter_map(|rest| rest.split_once(END));
    let blocks: Vec<_> = blocks.map(|(block, _)| block.to_owned()).collect();
    ensure!(!blocks.is_empty(), "{}: the section has no commands", path.display());
    Ok(blocks)
}
