//! The objects of a check, from files.

use std::path::PathBuf;

use anyhow::bail;

use crate::objects::{self, InputObject};

/// The most objects to check.
const OBJECTS_MAX: usize = 1_000;

/// The largest file of objects, in bytes.
const FILE_BYTES_MAX: u64 = 16 << 20;

/// The objects of files and folders.
///
/// # Errors
/// If a file cannot be read, is too large, or there are too many objects.
pub(super) fn read(paths: &[PathBuf]) -> anyhow::Result<Vec<InputObject>> {
    let mut given = Vec::new();
    for path in paths {
        let mut files = vec![path.clone()];
        if path.is_dir() {
            files = objects::files_of(path)?;
            if files.is_empty() {
                bail!("{}: there is no *.yaml, *.yml or *.json in the folder", path.display());
            }
        }
        for file in files {
            let metadata = std::fs::metadata(&file).ok();
            if metadata.as_ref().is_some_and(|there| !there.is_file()) {
                bail!("{}: is no regular file", file.display());
            }
            let bytes = metadata.map_or(0, |metadata| metadata.len());
            if bytes > FILE_BYTES_MAX {
                bail!("{}: has more than {} MiB", file.display(), FILE_BYTES_MAX >> 20);
            }
            given.extend(objects::read(&file)?);
        }
    }
    if given.len() > OBJECTS_MAX {
        bail!("{} objects; the command checks at most {OBJECTS_MAX} at once", given.len());
    }
    Ok(given)
}
