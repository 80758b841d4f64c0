//! Compiled code on disk, for the commands that load a guest without `innkeeper run`.

use std::env;
use std::path::{Path, PathBuf};
use std::sync::Once;

use anyhow::Context as _;
use innkeeper_sandbox::{CACHE_BYTES_DEFAULT, CacheError, CacheFolder, CacheKey, CodeCache};
use tempfile::TempDir;

use crate::out;

/// The folder that the user names, as for `innkeeper run --cache-dir`. If it is empty, the commands
/// keep no compiled code.
const DIR: &str = "INNKEEPER_CACHE_DIR";

/// The maximum size of all compiled code in MiB, as for `innkeeper run --cache-mib`.
const MIB: &str = "INNKEEPER_CACHE_MIB";

/// The commands' own folder within [`DIR`]. A host that uses the same folder seals its entries with
/// a key of the cluster, and each would delete the entries of the other.
const SUBFOLDER: &str = "commands";

/// A command may open the cache for several guests.
static WARN: Once = Once::new();

/// Opens the cache in the folder that the user names, otherwise in the user's cache folder. `None`
/// if the user wants none, or the user's cache folder cannot be used.
///
/// # Errors
/// If the user names a folder that cannot be used or that others may write to, or a size that is
/// no number of MiB.
pub(crate) fn open() -> anyhow::Result<Option<CodeCache>> {
    let max_bytes = max_bytes(env::var(MIB).ok().as_deref())?;
    match env::var_os(DIR) {
        Some(folder) if folder.is_empty() => Ok(None),
        Some(folder) => open_in(Path::new(&folder), max_bytes).context(DIR).map(Some),
        None => Ok(default_folder().and_then(|folder| match open_in(&folder, max_bytes) {
            Ok(cache) => Some(cache),
            // The cache only saves time.
            Err(error) => {
                WARN.call_once(|| {
                    out::eprint(&format!("warning: compiled guests are not kept: {error}"));
                });
                None
            }
        })),
    }
}

/// Opens the user's cache, or one in this folder if there is none.
///
/// # Errors
/// As [`open`], or if the folder cannot be used.
pub(crate) fn open_or_temporary(folder: &TempDir) -> anyhow::Result<CodeCache> {
    match open()? {
        Some(cache) => Ok(cache),
        None => Ok(open_temporary(folder)?),
    }
}

/// Opens a cache in an empty folder, which belongs to this command alone.
///
/// # Errors
/// If the folder cannot be used.
fn open_temporary(folder: &TempDir) -> Result<CodeCache, CacheError> {
    open_in(folder.path(), CACHE_BYTES_DEFAULT)
}

fn open_in(folder: &Path, max_bytes: u64) -> Result<CodeCache, CacheError> {
    let folder = CacheFolder::open(&folder.join(SUBFOLDER))?;
    CodeCache::open(folder, &CacheKey::Kept, max_bytes)
}

/// The folder `code` of the user's cache folder, if the user has a home folder.
fn default_folder() -> Option<PathBuf> {
    let folder = innkeeper_toolchain::cache_folder().ok()?;
    // A user without a home folder gets none by this command.
    let home = folder.parent()?.parent()?;
    home.is_dir().then(|| folder.join("code"))
}

fn max_bytes(mib: Option<&str>) -> anyhow::Result<u64> {
    let Some(mib) = mib.filter(|mib| !mib.is_empty()) else { return Ok(CACHE_BYTES_DEFAULT) };
    let bytes =
        mib.parse().ok().filter(|mib| *mib > 0).and_then(|mib: u64| mib.checked_mul(1 << 20));
    bytes.with_context(|| format!("{MIB}: {mib:?} is no number of MiB; set one such as 1024"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn size_of_the_cache_is_read_in_mib() {
        assert_eq!(max_bytes(None).unwrap(), CACHE_BYTES_DEFAULT);
        assert_eq!(max_bytes(Some("")).unwrap(), CACHE_BYTES_DEFAULT);
        assert_eq!(max_bytes(Some("2")).unwrap(), 2 << 20);
    }

    #[test]
    fn size_of_the_cache_is_refused_when_it_is_no_positive_number() {
        for mib in ["0", "-1", "1 GiB", "18446744073709551615"] {
            let error = max_bytes(Some(mib)).unwrap_err().to_string();
            assert!(error.contains("INNKEEPER_CACHE_MIB") && error.contains(mib), "{error}");
        }
    }
}
