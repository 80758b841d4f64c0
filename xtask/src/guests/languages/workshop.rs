//! Copies of sources next to the tools, so that builds leave no files in the sources.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

use super::inputs;

/// Folders of tools in a folder of sources, which have no sources.
const LEFT_BY_TOOLS: [&str; 6] =
    ["node_modules", "__pycache__", ".venv", ".mypy_cache", "build", "target"];

/// The sources in a folder.
///
/// # Errors
/// If the folder cannot be listed.
pub(super) fn sources(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    inputs::collect(folder, &LEFT_BY_TOOLS, &mut files)?;
    files.retain(|file| is_source(file));
    Ok(files)
}

/// Copies the sources of a folder to another, and removes other sources there.
///
/// # Errors
/// If a file cannot be read, written or removed.
pub(super) fn copy(folder: &Path, workshop: &Path) -> Result<()> {
    let mut copies = BTreeSet::new();
    for file in sources(folder)? {
        let copy = workshop.join(file.strip_prefix(folder)?);
        let content =
            std::fs::read(&file).with_context(|| format!("cannot read {}", file.display()))?;
        // Another process may be reading a file that has not changed.
        if std::fs::read(&copy).ok().as_ref() != Some(&content) {
            let write = || {
                std::fs::create_dir_all(copy.parent().unwrap_or(workshop))?;
                std::fs::write(&copy, &content)
            };
            write().with_context(|| format!("cannot write {}", copy.display()))?;
        }
        copies.insert(copy);
    }
    for old in sources(workshop)?.iter().filter(|file| !copies.contains(*file)) {
        std::fs::remove_file(old).with_context(|| format!("cannot remove {}", old.display()))?;
    }
    Ok(())
}

/// Whether a file is a source, and no component that somebody built.
fn is_source(file: &Path) -> bool {
    file.extension().is_none_or(|extension| extension != "wasm")
}
