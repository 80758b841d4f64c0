//! A folder with the files of units, and a list of them that finds a damaged one.

use std::collections::BTreeMap;
use std::fs::{self, File, FileTimes};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use anyhow::{Context as _, Result, bail};
use serde::{Deserialize, Serialize};

use super::units::Units;

/// The list of the files. Its time is that of the last use.
pub(super) const LIST: &str = "files.json";

/// The extensions of files that compilers replace and never change: two folders can share one file.
/// Cargo writes into others.
const SHARED: [&str; 3] = ["rlib", "rmeta", "so"];

/// The entries of each unit by its hash, in the order of [`Units`].
type List = BTreeMap<String, Vec<Entry>>;

#[derive(Debug, Serialize, Deserialize)]
struct Entry {
    path: PathBuf,
    /// None for a folder.
    file: Option<Stamp>,
}

/// What shows that a file has not changed.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Stamp {
    bytes: u64,
    /// The time of its last change, since 1970.
    modified: Duration,
}

/// Copies units of a profile's folder into a new snapshot's folder, with their times.
///
/// # Errors
/// If a file cannot be read or written.
pub(super) fn write(profile: &Path, units: &Units, snapshot: &Path) -> Result<()> {
    let mut list = List::new();
    for (hash, files) in units {
        let mut entries = Vec::new();
        for path in files {
            let file = stamp(&profile.join(path))?;
            place(&profile.join(path), file.is_some(), &snapshot.join(path))?;
            entries.push(Entry { path: path.clone(), file });
        }
        list.insert(hash.clone(), entries);
    }
    let file = snapshot.join(LIST);
    let write = || -> Result<()> { Ok(serde_json::to_writer(File::create(&file)?, &list)?) };
    write().with_context(|| format!("cannot write {}", file.display()))
}

/// Copies the units of a snapshot into a profile's folder, except those of which a file is missing
/// or has changed: cargo compiles them, and what depends on them. Gives how many it copied.
///
/// # Errors
/// If the list cannot be read, or a file cannot be written.
pub(super) fn restore(snapshot: &Path, profile: &Path) -> Result<usize> {
    let path = snapshot.join(LIST);
    let list = fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
    let list: List =
        serde_json::from_slice(&list).with_context(|| format!("{} is damaged", path.display()))?;
    let mut restored = 0;
    for entries in list.values() {
        let is_good = |entry: &Entry| {
            is_inside(&entry.path)
                && stamp(&snapshot.join(&entry.path)).is_ok_and(|stamp| stamp == entry.file)
        };
        if !entries.iter().all(is_good) {
            continue;
        }
        // The fingerprint comes last: with it, cargo takes the unit for complete.
        for entry in entries.iter().rev() {
            let from = snapshot.join(&entry.path);
            place(&from, entry.file.is_some(), &profile.join(&entry.path))?;
        }
        restored += 1;
    }
    // Fails only for a user without rights, whose snapshot is then removed earlier.
    let used = File::options().append(true).open(&path);
    let _ = used.map(|file| file.set_modified(SystemTime::now()));
    Ok(restored)
}

/// Whether a path leads out of no folder.
fn is_inside(path: &Path) -> bool {
    path.components().all(|part| matches!(part, std::path::Component::Normal(_)))
}

/// The stamp of a file, or none for a folder.
fn stamp(path: &Path) -> Result<Option<Stamp>> {
    let read = || -> Result<Option<Stamp>> {
        let metadata = path.symlink_metadata()?;
        if metadata.is_dir() {
            return Ok(None);
        }
        if !metadata.is_file() {
            bail!("is neither a file nor a folder");
        }
        let modified = metadata.modified()?.duration_since(SystemTime::UNIX_EPOCH)?;
        Ok(Some(Stamp { bytes: metadata.len(), modified }))
    };
    read().with_context(|| path.display().to_string())
}

/// Makes a folder, or shares or copies a file with its times.
fn place(from: &Path, is_file: bool, to: &Path) -> Result<()> {
    let place = || -> Result<()> {
        if !is_file {
            return Ok(fs::create_dir_all(to)?);
        }
        if let Some(folder) = to.parent() {
            fs::create_dir_all(folder)?;
        }
        match fs::remove_file(to) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error.into()),
            _ => {}
        }
        let extension = from.extension().and_then(|extension| extension.to_str());
        let is_shared = extension.is_some_and(|extension| SHARED.contains(&extension));
        // Two file systems share no file.
        if is_shared && fs::hard_link(from, to).is_ok() {
            return Ok(());
        }
        fs::copy(from, to)?;
        let modified = from.metadata()?.modified()?;
        let file = File::options().append(true).open(to)?;
        Ok(file.set_times(FileTimes::new().set_modified(modified))?)
    };
    place().with_context(|| format!("cannot copy {} to {}", from.display(), to.display()))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};

    use super::*;

    const HASH: &str = "00000000000000a1";
    const OTHER: &str = "00000000000000b1";

    /// A target folder with two units, and a snapshot of it.
    struct Folders {
        all: tempfile::TempDir,
    }

    impl Folders {
        fn new() -> Self {
            let folders = Self { all: tempfile::tempdir().unwrap() };
            let mut units = Units::new();
            for hash in [HASH, OTHER] {
                let folder = PathBuf::from(format!("build/x-{hash}/out"));
                fs::create_dir_all(folders.first().join(&folder)).unwrap();
                let mut files = vec![
                    format!(".fingerprint/x-{hash}/lib-x").into(),
                    format!("build/x-{hash}/build-script-build").into(),
                    format!("deps/libx-{hash}.rlib").into(),
                ];
                for file in &files {
                    let file: PathBuf = folders.first().join(file);
                    fs::create_dir_all(file.parent().unwrap()).unwrap();
                    fs::write(&file, "content").unwrap();
                    let old = SystemTime::now() - Duration::from_hours(5);
                    File::options().append(true).open(&file).unwrap().set_modified(old).unwrap();
                }
                let script = folders.first().join(&files[1]);
                fs::set_permissions(script, fs::Permissions::from_mode(0o755)).unwrap();
                files.push(folder);
                units.insert(hash.to_owned(), files);
            }
            fs::create_dir(folders.snapshot()).unwrap();
            write(&folders.first(), &units, &folders.snapshot()).unwrap();
            folders
        }

        fn first(&self) -> PathBuf {
            self.all.path().join("first")
        }

        fn snapshot(&self) -> PathBuf {
            self.all.path().join("snapshot")
        }

        fn second(&self) -> PathBuf {
            self.all.path().join("second")
        }
    }

    #[test]
    fn units_are_restored_with_their_times_rights_and_empty_folders() {
        let folders = Folders::new();
        assert_eq!(restore(&folders.snapshot(), &folders.second()).unwrap(), 2);
        for file in [".fingerprint/x-HASH/lib-x", "build/x-HASH/build-script-build"] {
            let file = file.replace("HASH", HASH);
            let [before, after] = [folders.first(), folders.second()]
                .map(|folder| folder.join(&file).metadata().unwrap());
            assert_eq!(before.modified().unwrap(), after.modified().unwrap(), "{file}");
            assert_eq!(before.mode(), after.mode(), "{file}");
            assert_ne!(before.ino(), after.ino(), "cargo may write into {file}");
        }
        assert!(folders.second().join(format!("build/x-{HASH}/out")).is_dir());
        let library = format!("deps/libx-{HASH}.rlib");
        let inode = |folder: PathBuf| folder.join(&library).metadata().unwrap().ino();
        assert_eq!(inode(folders.first()), inode(folders.second()), "no space for a second copy");
    }

    #[test]
    fn unit_with_a_damaged_file_is_left_out() {
        let library = format!("deps/libx-{HASH}.rlib");
        let damages: [&dyn Fn(&Path); 3] = [
            &|file| fs::remove_file(file).unwrap(),
            &|file| fs::write(file, "").unwrap(),
            // Of the same length.
            &|file| fs::write(file, "CONTENT").unwrap(),
        ];
        for damage in damages {
            let folders = Folders::new();
            damage(&folders.snapshot().join(&library));
            assert_eq!(restore(&folders.snapshot(), &folders.second()).unwrap(), 1);
            assert!(!folders.second().join(format!(".fingerprint/x-{HASH}")).exists());
            assert!(folders.second().join(format!(".fingerprint/x-{OTHER}/lib-x")).exists());
        }
    }

    #[test]
    fn snapshot_with_a_damaged_list_is_refused() {
        let folders = Folders::new();
        let list = folders.snapshot().join(LIST);
        let text = fs::read_to_string(&list).unwrap();
        fs::write(&list, &text[..text.len() / 2]).unwrap();
        let error = restore(&folders.snapshot(), &folders.second()).unwrap_err().to_string();
        assert!(error.ends_with("files.json is damaged"), "{error}");
        fs::remove_file(&list).unwrap();
        assert!(restore(&folders.snapshot(), &folders.second()).is_err());
        assert!(!folders.second().exists());
    }

    #[test]
    fn list_that_names_a_file_elsewhere_writes_nothing_there() {
        let folders = Folders::new();
        fs::write(folders.all.path().join("outside"), "x").unwrap();
        let list = folders.snapshot().join(LIST);
        let text = fs::read_to_string(&list).unwrap();
        let path = format!("deps/libx-{HASH}.rlib");
        fs::write(&list, text.replace(&path, "../outside")).unwrap();
        assert_eq!(restore(&folders.snapshot(), &folders.second()).unwrap(), 1);
    }

    #[test]
    fn file_in_the_way_is_replaced() {
        let folders = Folders::new();
        let library = folders.second().join(format!("deps/libx-{HASH}.rlib"));
        fs::create_dir_all(library.parent().unwrap()).unwrap();
        fs::write(&library, "half").unwrap();
        assert_eq!(restore(&folders.snapshot(), &folders.second()).unwrap(), 2);
        assert_eq!(fs::read_to_string(library).unwrap(), "content");
    }
}
