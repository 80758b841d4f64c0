use std::fs::{File, TryLockError};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use anyhow::{Context as _, Result};

use crate::private_folder;
use crate::toolchain::cache_folder;

/// The name of the file in a target folder that is locked. Each build opens it for writing.
pub(crate) const LOCK_FILE: &str = "innkeeper.lock";

/// A lock on a target folder. Dropping this value releases it.
#[derive(Debug)]
pub struct Lock {
    file: File,
}

/// Locks a target folder that several clones may share: two crates of one name would overwrite each
/// other's results. Calls `say` with a message before it waits for another build.
///
/// # Errors
/// If the folder or the lock file cannot be made, or other users can write to a folder of the
/// user's cache.
pub fn lock(target_dir: &Path, say: &mut dyn FnMut(&str)) -> Result<Lock> {
    loop {
        let lock = lock_once(target_dir, say)?;
        // Another process may have removed the folder while this one waited.
        if lock.is_of(&target_dir.join(LOCK_FILE)) {
            return Ok(lock);
        }
    }
}

impl Lock {
    /// Whether the locked file is still the one at a path.
    fn is_of(&self, path: &Path) -> bool {
        let (Ok(ours), Ok(there)) = (self.file.metadata(), path.metadata()) else { return false };
        (ours.dev(), ours.ino()) == (there.dev(), there.ino())
    }
}

fn lock_once(target_dir: &Path, say: &mut dyn FnMut(&str)) -> Result<Lock> {
    match cache_folder() {
        Ok(cache) if target_dir.starts_with(&cache) => private_folder::create(target_dir, &cache)?,
        _ => std::fs::create_dir_all(target_dir)
            .with_context(|| format!("cannot create {}", target_dir.display()))?,
    }
    let path = target_dir.join(LOCK_FILE);
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
    Ok(Lock { file })
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, SystemTime};

    use super::*;

    #[test]
    fn lock_shows_when_the_last_build_began() {
        let target = tempfile::tempdir().unwrap();
        let path = target.path().join(LOCK_FILE);
        let first = lock(target.path(), &mut |_| {}).unwrap();
        let long_ago = SystemTime::UNIX_EPOCH + Duration::from_secs(1);
        first.file.set_modified(long_ago).unwrap();
        drop(first);
        let _second = lock(target.path(), &mut |_| {}).unwrap();
        assert!(path.metadata().unwrap().modified().unwrap() > long_ago);
    }

    #[test]
    fn lock_is_taken_again_when_its_folder_was_removed_meanwhile() {
        let target = tempfile::tempdir().unwrap();
        let path = target.path().join(LOCK_FILE);
        let first = lock(target.path(), &mut |_| {}).unwrap();
        // The first one is released as soon as the second one waits, after its file is gone.
        let mut held = Some(first);
        let second = lock(target.path(), &mut |_| {
            std::fs::remove_file(&path).unwrap();
            held = None;
        });
        assert!(second.unwrap().is_of(&path));
    }
}
