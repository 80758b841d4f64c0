//! Where the files of this crate lie.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

/// A file of this crate.
pub(crate) fn of_crate(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

/// A file of the repository.
pub(crate) fn of_repository(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(name)
}

/// The text of a file.
///
/// # Errors
/// If the file cannot be read.
pub(crate) fn read(path: &Path) -> Result<String> {
    fs::read_to_string(path).with_context(|| format!("reading {}", path.display()))
}

/// Writes a file.
///
/// # Errors
/// If the file cannot be written.
pub(crate) fn write(path: &Path, text: &str) -> Result<()> {
    fs::write(path, text).with_context(|| format!("writing {}", path.display()))
}
