use std::fs::{DirEntry, File, symlink_metadata};
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::lock::LOCK_FILE;
use crate::toolchain::builds_folder;

/// The most bytes of a user's target folders together. One has about 400 MB: a compiled std, and
/// the dependencies of guests.
pub const BUILDS_BYTES_MAX: u64 = 2 << 30;

/// Removes target folders of the user's cache, the longest unused first, until all together have
/// [`BUILDS_BYTES_MAX`]. A folder in which another process builds stays, and so does `target_dir`,
/// whose [`lock`](crate::lock) the caller holds; if it alone has more, it is emptied. Does nothing
/// for a target folder elsewhere. Calls `say` with what it removes or cannot remove.
pub fn bound_builds(target_dir: &Path, say: &mut dyn FnMut(&str)) {
    match builds_folder() {
        Ok(builds) if target_dir.parent() == Some(&*builds) => {
            bound(&builds, target_dir, BUILDS_BYTES_MAX, say);
        }
        _ => {}
    }
}

fn bound(builds: &Path, target_dir: &Path, bytes_max: u64, say: &mut dyn FnMut(&str)) {
    let own = size(target_dir);
    let others = entries(builds).filter(|entry| entry.path() != target_dir);
    let mut others: Vec<_> =
        others.map(|entry| (last_use(&entry.path()), entry.path(), size(&entry.path()))).collect();
    others.sort();
    let mut total = others.iter().fold(own, |total, (_, _, bytes)| total.saturating_add(*bytes));
    for (_, folder, bytes) in &others {
        if total <= bytes_max {
            return;
        }
        // Another process builds in it, or is about to.
        let Some(_lock) = try_lock(folder) else { continue };
        say(&format!(
            "removing the builds of a compiler that was not used lately: {}",
            folder.display()
        ));
        match std::fs::remove_dir_all(folder) {
            Ok(()) => total = total.saturating_sub(*bytes),
            Err(error) => say(&format!("cannot remove {}: {error}", folder.display())),
        }
    }
    if own > bytes_max {
        say(&format!("removing old builds, which have grown too large: {}", target_dir.display()));
        for entry in entries(target_dir).filter(|entry| entry.file_name() != LOCK_FILE) {
            if let Err(error) = remove(&entry) {
                say(&format!("cannot remove {}: {error}", entry.path().display()));
            }
        }
    }
}

fn entries(folder: &Path) -> impl Iterator<Item = DirEntry> {
    folder.read_dir().into_iter().flatten().flatten()
}

fn remove(entry: &DirEntry) -> io::Result<()> {
    if entry.file_type()?.is_dir() {
        std::fs::remove_dir_all(entry.path())
    } else {
        std::fs::remove_file(entry.path())
    }
}

/// The bytes of the files in a folder. Links are not followed.
fn size(path: &Path) -> u64 {
    match symlink_metadata(path) {
        Ok(metadata) if metadata.is_dir() => entries(path).map(|entry| size(&entry.path())).sum(),
        Ok(metadata) => metadata.len(),
        Err(_) => 0,
    }
}

/// When the last build in a target folder began.
fn last_use(folder: &Path) -> Option<SystemTime> {
    let modified = |path: PathBuf| symlink_metadata(path).ok()?.modified().ok();
    modified(folder.join(LOCK_FILE)).or_else(|| modified(folder.to_owned()))
}

/// The lock of a folder in which no other process builds.
fn try_lock(folder: &Path) -> Option<File> {
    // Its time stays: this is no build.
    let mut options = File::options();
    let file =
        options.write(true).create(true).truncate(false).open(folder.join(LOCK_FILE)).ok()?;
    file.try_lock().ok()?;
    Some(file)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// A folder of target folders, each with this number of bytes; the first is the longest unused.
    struct Builds(tempfile::TempDir);

    impl Builds {
        fn with(folders: &[(&str, usize)]) -> Self {
            let builds = Self(tempfile::tempdir().unwrap());
            for (age, (name, bytes)) in folders.iter().rev().enumerate() {
                let deps = builds.of(name).join("release/deps");
                std::fs::create_dir_all(&deps).unwrap();
                std::fs::write(deps.join("libstd.rlib"), vec![0; *bytes]).unwrap();
                let hours = Duration::from_hours(1) * u32::try_from(age).unwrap();
                let used = SystemTime::now() - hours;
                let lock = File::create(builds.of(name).join(LOCK_FILE)).unwrap();
                lock.set_modified(used).unwrap();
            }
            builds
        }

        fn of(&self, name: &str) -> PathBuf {
            self.0.path().join(name)
        }

        /// Bounds the folders for a build in this one; gives those that are left, with their bytes.
        fn bound(&self, name: &str, bytes_max: u64) -> Vec<(String, u64)> {
            bound(self.0.path(), &self.of(name), bytes_max, &mut |_| {});
            let name = |entry: DirEntry| entry.file_name().into_string().unwrap();
            let mut left: Vec<_> =
                entries(self.0.path()).map(|entry| (size(&entry.path()), name(entry))).collect();
            left.sort_by(|one, other| one.1.cmp(&other.1));
            left.into_iter().map(|(bytes, name)| (name, bytes)).collect()
        }
    }

    fn left(folders: &[(&str, u64)]) -> Vec<(String, u64)> {
        folders.iter().map(|(name, bytes)| ((*name).to_owned(), *bytes)).collect()
    }

    #[test]
    fn longest_unused_folders_are_removed_until_the_others_fit() {
        let builds = Builds::with(&[("c", 40), ("a", 30), ("b", 20), ("mine", 10)]);
        assert_eq!(builds.bound("mine", 100).len(), 4);
        let expected = left(&[("a", 30), ("b", 20), ("mine", 10)]);
        assert_eq!(builds.bound("mine", 99), expected);
        assert_eq!(builds.bound("mine", 30), left(&[("b", 20), ("mine", 10)]));
    }

    #[test]
    fn folder_in_which_another_process_builds_stays() {
        let builds = Builds::with(&[("a", 30), ("b", 20), ("mine", 10)]);
        let _lock = try_lock(&builds.of("a")).unwrap();
        assert_eq!(builds.bound("mine", 45), left(&[("a", 30), ("mine", 10)]));
    }

    #[test]
    fn own_folder_is_emptied_when_it_alone_is_too_large() {
        let builds = Builds::with(&[("a", 30), ("mine", 50)]);
        assert_eq!(builds.bound("mine", 50), left(&[("mine", 50)]));
        assert_eq!(builds.bound("mine", 49), left(&[("mine", 0)]));
        assert!(builds.of("mine").join(LOCK_FILE).is_file());
    }

    #[test]
    fn target_folder_elsewhere_is_left_alone() {
        let builds = Builds::with(&[("mine", 10)]);
        bound_builds(&builds.of("mine"), &mut |text| panic!("{text}"));
        assert_eq!(size(&builds.of("mine")), 10);
    }
}
