//! The sources of a crate, polled: that works on every file system.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How often the command polls. A change counts when two polls see the same files.
const POLL_PERIOD: Duration = Duration::from_millis(250);

/// Cargo writes this file itself.
const LOCKFILE: &str = "Cargo.lock";

/// Identifies the state of a file without reading it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stamp {
    inode: u64,
    bytes: u64,
    modified: (i64, i64),
}

type Stamps = BTreeMap<PathBuf, Stamp>;

/// The files of a folder, without build results, hidden folders other than `.cargo`, and backups of
/// editors.
pub(super) struct Sources {
    folder: PathBuf,
    seen: Stamps,
}

impl Sources {
    /// The sources in this folder.
    pub(super) fn new(folder: &Path) -> Self {
        Self { folder: folder.to_owned(), seen: Stamps::new() }
    }

    /// Stores the present state of all files.
    pub(super) fn poll(&mut self) {
        self.seen = self.stamps();
    }

    /// Stores the present state of the lockfile: a build may have written it.
    pub(super) fn poll_ignoring_lockfile(&mut self) {
        let path = self.folder.join(LOCKFILE);
        match stamp(&path) {
            Some(stamp) => self.seen.insert(path, stamp),
            None => self.seen.remove(&path),
        };
    }

    /// Waits until a file differs from its stored state, and no more files change.
    pub(super) async fn changed(&self) {
        let mut before = self.seen.clone();
        loop {
            tokio::time::sleep(POLL_PERIOD).await;
            let now = self.stamps();
            if now != self.seen && now == before {
                return;
            }
            before = now;
        }
    }

    fn stamps(&self) -> Stamps {
        let mut stamps = Stamps::new();
        collect(&self.folder, &mut stamps);
        stamps
    }
}

/// Skips what cannot be read: cargo reports it.
fn collect(folder: &Path, stamps: &mut Stamps) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let (path, name) = (entry.path(), entry.file_name());
        let name = name.to_string_lossy();
        // Symbolic links to folders may form a loop.
        let is_folder = entry.file_type().is_ok_and(|file_type| file_type.is_dir());
        if is_folder {
            if name != "target" && (!name.starts_with('.') || name == ".cargo") {
                collect(&path, stamps);
            }
        } else if !name.starts_with(['.', '#'])
            && !name.ends_with('~')
            && let Some(stamp) = stamp(&path)
        {
            stamps.insert(path, stamp);
        }
    }
}

fn stamp(path: &Path) -> Option<Stamp> {
    let metadata = fs::metadata(path).ok()?;
    Some(Stamp {
        inode: metadata.ino(),
        bytes: metadata.len(),
        modified: (metadata.mtime(), metadata.mtime_nsec()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn is_changed(sources: &Sources) -> bool {
        tokio::time::timeout(POLL_PERIOD * 4, sources.changed()).await.is_ok()
    }

    #[tokio::test(start_paused = true)]
    async fn changed_is_ready_for_saved_sources_and_not_for_files_of_cargo_and_editors() {
        let folder = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write("src/lib.rs", "one");
        let mut sources = Sources::new(folder.path());
        sources.poll();
        write("target/release/lib.wasm", "built");
        write(".git/index", "x");
        write("src/.lib.rs.swp", "x");
        write("src/lib.rs~", "x");
        assert!(!is_changed(&sources).await);
        for path in ["src/lib.rs", "src/more/new.rs", ".cargo/config.toml", "crd.json"] {
            write(path, "something else");
            assert!(is_changed(&sources).await, "{path}");
            sources.poll();
            assert!(!is_changed(&sources).await, "{path} again");
        }
        fs::remove_file(folder.path().join("crd.json")).unwrap();
        assert!(is_changed(&sources).await);
        sources.poll();
        write("Cargo.lock", "by the build");
        sources.poll_ignoring_lockfile();
        assert!(!is_changed(&sources).await);
        write("Cargo.lock", "by `cargo update`");
        assert!(is_changed(&sources).await);
    }
}
