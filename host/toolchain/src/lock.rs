use std::fs::{File, TryLockError};
use std::path::Path;

use anyhow::{Context as _, Result};

use crate::private_folder;
use crate::toolchain::cache_folder;

/// A lock on a target folder. Dropping this value releases it.
#[derive(Debug)]
pub struct Lock {
    _file: File,
}

/// Locks a target folder that several clones may share: two crates of one name would overwrite each
/// other's results. Calls `say` with a message before it waits for another build.
///
/// # Errors
/// If the folder or the lock file cannot be made, or other users can write to a folder of the
/// user's cache.
pub fn lock(target_dir: &Path, say: &mut dyn FnMut(&str)) -> Result<Lock> {
    match cache_folder() {
        Ok(cache) if target_dir.starts_with(&cache) => private_folder::create(target_dir, &cache)?,
        _ => std::fs::create_dir_all(target_dir)
            .with_context(|| format!("cannot create {}", target_dir.display()))?,
    }
    let path = target_dir.join("innkeeper.lock");
    let file = File::create(&path).with_context(|| format!("cannot create {}", path.display()))?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            say(&format!("waiting for another build in {}", target_dir.display()));
            file.lock().with_context(|| format!("cannot lock {}", path.display()))?;
        }
        // Some file systems have no locks. A single build needs none.
        Err(TryLockError::Error(error)) if error.kind() == std::io::ErrorKind::Unsupported => {}
        Err(TryLockError::Error(error)) => {
            return Err(error).with_context(|| format!("cannot lock {}", path.display()));
        }
    }
    Ok(Lock { _file: file })
}
