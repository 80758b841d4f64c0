//! The folder of a cache, and the key that a host keeps in it.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::path::Path;

use innkeeper_sandbox::{
    CACHE_BYTES_DEFAULT, CacheError, CacheFigures, CacheFolder, CacheKey, CodeCache,
};

use crate::support::{KEY, NOBODY, ending, engine, entries, is_root, load, mode, open};

pub(crate) fn made() {
    let above = tempfile::tempdir().unwrap();
    // As the volumes of pods are.
    fs::set_permissions(above.path(), Permissions::from_mode(0o777)).unwrap();
    let folder = above.path().join("a/b");
    load(&engine(&open(&folder, KEY)), "tiny");
    assert_eq!(mode(&folder), 0o700);
    assert_eq!(entries(&folder).len(), 1);
}

#[track_caller]
fn refused_folder(folder: &Path, expected: &str) {
    let error = CacheFolder::open(folder).unwrap_err();
    let message = error.to_string();
    assert!(message.contains(folder.to_str().unwrap()), "{message}");
    assert!(message.contains(expected), "{message}");
}

pub(crate) fn writable_folder() {
    let folder = tempfile::tempdir().unwrap();
    for mode in [0o720, 0o702, 0o777, 0o2777] {
        fs::set_permissions(folder.path(), Permissions::from_mode(mode)).unwrap();
        let expected = format!(
            "may be written to by others (mode {mode:o}), so others could put code there that \
             runs as this host: give one that does not exist yet"
        );
        refused_folder(folder.path(), &expected);
    }
}

pub(crate) fn foreign_folder() {
    let folder = tempfile::tempdir().unwrap();
    if is_root() {
        chown(folder.path(), Some(NOBODY), None).unwrap();
        refused_folder(folder.path(), "belongs to user 65534, not to 0");
    } else {
        refused_folder(Path::new("/usr"), "belongs to user 0, not to");
    }
}

pub(crate) fn file_as_folder() {
    let file = tempfile::NamedTempFile::new().unwrap();
    refused_folder(file.path(), "cannot be used");
    refused_folder(&file.path().join("below"), "cannot be used");
}

pub(crate) fn kept_key() {
    let folder = tempfile::tempdir().unwrap();
    // Eight hosts at once: one of them makes the key.
    let caches: Vec<CodeCache> = std::thread::scope(|scope| {
        let opening: Vec<_> =
            (0..8).map(|_| scope.spawn(|| open(folder.path(), &CacheKey::Kept))).collect();
        opening.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let key = folder.path().join("key");
    assert_eq!(mode(&key) & 0o377, 0);
    let bytes = fs::read(&key).unwrap();
    assert_eq!(bytes.len(), 32);
    for cache in &caches {
        load(&engine(cache), "tiny");
    }
    let total = |count: fn(CacheFigures) -> u64| -> u64 {
        caches.iter().map(|cache| count(cache.figures())).sum()
    };
    assert_eq!((total(|f| f.misses), total(|f| f.hits), total(|f| f.refused)), (1, 7, 0));
    assert_eq!(fs::read(&key).unwrap(), bytes);
    assert!(ending(folder.path(), "new").is_empty());

    // Another folder has another key.
    let other = tempfile::tempdir().unwrap();
    open(other.path(), &CacheKey::Kept);
    assert_ne!(fs::read(other.path().join("key")).unwrap(), bytes);
}

pub(crate) fn wrong_keys() {
    let folder = tempfile::tempdir().unwrap();
    let key = folder.path().join("key");
    for (bytes, mode, expected) in [
        (32, 0o440, "others may read it"),
        (32, 0o602, "it may be written to by others (mode 602)"),
        (31, 0o600, "32 bytes cannot be read from it"),
        (33, 0o600, "it has more than 32 bytes"),
    ] {
        fs::write(&key, vec![7; bytes]).unwrap();
        fs::set_permissions(&key, Permissions::from_mode(mode)).unwrap();
        let folder = CacheFolder::open(folder.path()).unwrap();
        let error = CodeCache::open(folder, &CacheKey::Kept, CACHE_BYTES_DEFAULT).unwrap_err();
        assert!(matches!(error, CacheError::Key { .. }), "{error:?}");
        let message = error.to_string();
        assert!(message.contains(expected) && message.contains("delete it"), "{message}");
        fs::remove_file(&key).unwrap();
    }
}
