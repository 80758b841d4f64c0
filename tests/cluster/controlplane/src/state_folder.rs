//! Where the state of a control plane goes.

use std::env;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::Error;

/// A file system in memory, on Linux.
const MEMORY: &str = "/dev/shm";
/// What must be free there. A control plane needs 150 MB, most of it for etcd's log; as many run at
/// once as there are tests.
const MEMORY_FREE: u64 = 8 << 30;

/// Makes a temporary folder for the state of a control plane: in memory if there is enough, since
/// etcd waits for the disk while others, compilers say, write much to it. `TMPDIR` comes first.
pub(crate) fn temporary() -> Result<TempDir, Error> {
    tempfile::Builder::new()
        .prefix("innkeeper-cluster-")
        .tempdir_in(parent())
        .map_err(Error::system("making a temporary folder"))
}

fn parent() -> PathBuf {
    let is_chosen = env::var_os("TMPDIR").is_some_and(|folder| !folder.is_empty());
    if !is_chosen && has_free(Path::new(MEMORY), MEMORY_FREE) {
        PathBuf::from(MEMORY)
    } else {
        env::temp_dir()
    }
}

/// Whether `folder` is there with so many free bytes.
fn has_free(folder: &Path, bytes: u64) -> bool {
    rustix::fs::statvfs(folder)
        .is_ok_and(|volume| volume.f_bavail.saturating_mul(volume.f_frsize) >= bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folder_counts_if_it_is_there_with_enough_space() {
        let folder = tempfile::tempdir().unwrap();
        assert!(has_free(folder.path(), 1));
        assert!(!has_free(folder.path(), u64::MAX));
        assert!(!has_free(&folder.path().join("missing"), 0));
    }
}
