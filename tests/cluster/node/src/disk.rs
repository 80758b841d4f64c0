//! Free disk space.

use std::path::Path;

use anyhow::{Context as _, Result, bail};

/// Bytes that this user may still write to the file system of `folder`.
///
/// # Errors
/// If the folder cannot be read.
pub fn free(folder: &Path) -> Result<u64> {
    let volume = rustix::fs::statvfs(folder)
        .with_context(|| format!("reading the free space of {}", folder.display()))?;
    Ok(volume.f_bavail.saturating_mul(volume.f_frsize))
}

/// Checks that `bytes` are free in the file system of `folder`, which `what` needs.
///
/// # Errors
/// How much is free, and what to do.
pub fn require(folder: &Path, bytes: u64, what: &str) -> Result<()> {
    let free = free(folder)?;
    if free < bytes {
        bail!(
            "{what} needs {} of disk space in {}, where {} are free: remove files there, or set \
             TMPDIR to a folder with more space",
            gigabytes(bytes),
            folder.display(),
            gigabytes(free)
        );
    }
    Ok(())
}

/// `bytes` for people, as `1.5 GB`.
#[must_use]
pub fn gigabytes(bytes: u64) -> String {
    let tenths = bytes / 100_000_000;
    format!("{}.{} GB", tenths / 10, tenths % 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_than_is_free_is_refused_with_both_figures() {
        let folder = std::env::temp_dir();
        require(&folder, 0, "a test").unwrap();
        let error = require(&folder, u64::MAX, "a test").unwrap_err().to_string();
        assert!(error.starts_with("a test needs 18446744073.7 GB of disk space in "), "{error}");
        assert!(error.contains(" GB are free: remove files there"), "{error}");
    }

    #[test]
    fn bytes_are_shown_in_tenths_of_a_gigabyte() {
        assert_eq!(gigabytes(0), "0.0 GB");
        assert_eq!(gigabytes(1_540_000_000), "1.5 GB");
    }
}
