//! Compiled code on disk, for the commands that load a guest without `innkeeper run`.

use std::env;
use std::path::Path;

use anyhow::Context as _;
use innkeeper_sandbox::{CACHE_BYTES_DEFAULT, CacheFolder, CacheKey, CodeCache};

/// The folder that the user names, as for `innkeeper run --cache-dir`.
const DIR: &str = "INNKEEPER_CACHE_DIR";

/// The maximum size of all compiled code in MiB, as for `innkeeper run --cache-mib`.
const MIB: &str = "INNKEEPER_CACHE_MIB";

/// The commands' own folder within [`DIR`]. A host that uses the same folder seals its entries with
/// a key of the cluster, and each would delete the entries of the other.
const SUBFOLDER: &str = "commands";

/// Opens the cache in the folder that the user names. `None` if the user names no folder.
///
/// # Errors
/// If the user names a folder that cannot be used or that others may write to, or a size that is
/// no number of MiB.
pub(crate) fn open() -> anyhow::Result<Option<CodeCache>> {
    let Some(folder) = env::var_os(DIR).filter(|folder| !folder.is_empty()) else {
        return Ok(None);
    };
    let folder = Path::new(&folder).join(SUBFOLDER);
    let max_bytes = max_bytes(env::var(MIB).ok().as_deref())?;
    let folder = CacheFolder::open(&folder).context(DIR)?;
    Ok(Some(CodeCache::open(folder, &CacheKey::Kept, max_bytes).context(DIR)?))
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
