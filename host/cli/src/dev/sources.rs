//! The sources of a crate, looked at again and again: the way that works on every file system.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How often they are looked at. What was saved is taken after two looks.
const POLL_PERIOD: Duration = Duration::from_millis(250);

/// Written by cargo itself.
const LOCKFILE: &str = "Cargo.lock";

/// What tells two states of a file apart without reading it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stamp {
    inode: u64,
    bytes: u64,
    modified: (i64, i64),
}

type Stamps = BTreeMap<PathBuf, Stamp>;

/// The files of a folder, without what cargo builds, hidden folders but `.cargo`, and what editors
/// keep beside files.
pub(super) struct Sources {
    folder: PathBuf,
    seen: Stamps,
}

impl Sources {
    /// The sources in this folder.
    pub(super) fn new(folder: &Path) -> Self {
        Self { folder: folder.to_owned(), seen: Stamps::new() }
    }

    /// Remembers them as they are now.
    pub(super) fn poll(&mut self) {
        self.seen = self.stamps();
    }

    /// Remembers the lockfile as it is now: a build may have written it.
    pub(super) fn poll_ignoring_lockfile(&mut self) {
        let path = self.folder.join(LOCKFILE);
        match stamp(&path) {
            Some(stamp) => self.seen.insert(path, stamp),
            None => self.seen.remove(&path),
        };
    }

    /// Waits until they are others than remembered, and nobody is saving any more.
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

/// What cannot be read is not there: cargo says so.
fn collect(folder: &Path, stamps: &mut Stamps) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let (path, name) = (entry.path(), entry.file_name());
        let name = name.to_string_lossy();
        // Links to folders are not followed: they may lead in a circle.
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
    async fn what_is_saved_is_noticed_and_what_cargo_and_editors_write_is_not() {
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
