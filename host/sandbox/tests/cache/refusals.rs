//! Entries that a host refuses.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown, symlink};
use std::path::PathBuf;
use std::process::Command;

use innkeeper_sandbox::{CacheFigures, CacheKey};

use crate::support::{self, KEY, NOBODY, ending, engine, entries, is_root, load, open, warm};

pub(crate) fn tampered() {
    let warm = warm();
    let length = warm.good.len();
    // Bytes across the artifact, and in each part of the seal.
    let spread = (0..16).map(|part| part * length / 16);
    for at in spread.chain([length - 40, length - 33, length - 32, length - 1]) {
        let mut bytes = warm.good.clone();
        bytes[at] ^= 1;
        warm.put(&bytes);
        warm.is_refused(&format!("byte {at} of {length}"));
    }
}

pub(crate) fn wrong_length() {
    let warm = warm();
    let length = warm.good.len();
    for cut in [0, 1, 39, 40, length / 2, length - 41, length - 1] {
        warm.put(&warm.good[..cut]);
        warm.is_refused(&format!("{cut} of {length} bytes"));
    }
    let mut grown = warm.good.clone();
    grown.push(0);
    warm.put(&grown);
    warm.is_refused("a byte more");
}

pub(crate) fn other_key() {
    let warm = warm();
    let theirs = tempfile::tempdir().unwrap();
    load(&engine(&open(theirs.path(), &CacheKey::Given([2; 32]))), "tiny");
    let their_entry = &entries(theirs.path())[0];
    assert_eq!(their_entry.file_name(), warm.entry.file_name());
    warm.put(&fs::read(their_entry).unwrap());
    warm.is_refused("another key");
}

pub(crate) fn other_name() {
    let warm = warm();
    load(&engine(&open(warm.folder.path(), KEY)), "other");
    let [other] = <[PathBuf; 1]>::try_from(
        entries(warm.folder.path())
            .into_iter()
            .filter(|path| *path != warm.entry)
            .collect::<Vec<_>>(),
    )
    .unwrap();
    // Sealed with the same key, but the code of another component.
    warm.put(&fs::read(other).unwrap());
    warm.is_refused("the entry of another component");
}

pub(crate) fn writable_entry() {
    let warm = warm();
    for mode in [0o420, 0o402, 0o666] {
        fs::set_permissions(&warm.entry, Permissions::from_mode(mode)).unwrap();
        warm.is_refused(&format!("mode {mode:o}"));
        assert_eq!(support::mode(&warm.entry), 0o400);
    }
}

pub(crate) fn foreign_entry() {
    if !is_root() {
        // Only root can give a file to another user.
        return;
    }
    let warm = warm();
    chown(&warm.entry, Some(NOBODY), None).unwrap();
    warm.is_refused("another owner");
    assert_eq!(fs::metadata(&warm.entry).unwrap().uid(), 0);
}

pub(crate) fn no_file() {
    let warm = warm();
    let elsewhere = warm.folder.path().join("elsewhere");
    fs::rename(&warm.entry, &elsewhere).unwrap();
    symlink(&elsewhere, &warm.entry).unwrap();
    warm.is_refused("a symbolic link to a good entry");

    // The pipe has no writer: the host must not wait when it opens it.
    fs::remove_file(&warm.entry).unwrap();
    let made = Command::new("mkfifo").arg(&warm.entry).status().unwrap();
    assert!(made.success());
    warm.is_refused("a pipe");

    fs::remove_file(&warm.entry).unwrap();
    fs::create_dir(&warm.entry).unwrap();
    let cache = open(warm.folder.path(), KEY);
    load(&engine(&cache), "tiny");
    // The folder prevents the new entry as well; the guest loads all the same.
    assert_eq!(cache.figures(), CacheFigures { refused: 1, ..CacheFigures::default() });
    assert!(ending(warm.folder.path(), "new").is_empty());
}
