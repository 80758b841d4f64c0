use std::fs::{File, TryLockError};
use std::path::Path;

use anyhow::{Context as _, Result};

/// Nobody else builds guests in the folder until this is dropped.
#[derive(Debug)]
pub struct Lock {
    _file: File,
}

/// Waits until nobody else builds guests in this target folder, which several clones may share:
/// two crates of one name would take each other's results. `say` is told before it waits.
pub fn lock(target_dir: &Path, say: &mut dyn FnMut(&str)) -> Result<Lock> {
    std::fs::create_dir_all(target_dir)
        .with_context(|| format!("cannot make {}", target_dir.display()))?;
    let path = target_dir.join("innkeeper.lock");
    let file = File::create(&path).with_context(|| format!("cannot make {}", path.display()))?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            say(&format!("waiting for another build in {}", target_dir.display()));
            file.lock().with_context(|| format!("cannot lock {}", path.display()))?;
        }
        // Not every file system has locks; one build alone needs none.
        Err(TryLockError::Error(error)) if error.kind() == std::io::ErrorKind::Unsupported => {}
        Err(TryLockError::Error(error)) => {
            return Err(error).with_context(|| format!("cannot lock {}", path.display()));
        }
    }
    Ok(Lock { _file: file })
}
