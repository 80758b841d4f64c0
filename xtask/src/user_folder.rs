//! Folders of the user's cache, with results that a fresh clone need not make again.

use std::path::PathBuf;

use anyhow::Result;
use innkeeper_toolchain::{cache_folder, create_private_folder};

/// Creates the folder with this name in the user's cache, unless it exists. No other user can write
/// to it: builds use what it holds.
///
/// # Errors
/// If the environment names no cache folder, or other users can write to it.
pub(crate) fn user_folder(name: &str) -> Result<PathBuf> {
    let cache = cache_folder()?;
    let folder = cache.join(name);
    create_private_folder(&folder, &cache)?;
    Ok(folder)
}
