//! The bound on the bytes of a cache.

use std::fs::{self, File};
use std::path::Path;
use std::time::{Duration, SystemTime};

use innkeeper_sandbox::CacheFigures;

use crate::support::{KEY, Warm, engine, entries, load, open, open_with, warm};

pub(crate) fn evicts() {
    let Warm { folder, entry: first, good } = warm();
    let bytes = good.len() as u64;
    // Room for three entries; names of one length give code of one size.
    let max = 3 * bytes + bytes / 2;
    let cache = open_with(folder.path(), KEY, max);
    let engine = engine(&cache);
    let total = || -> u64 {
        entries(folder.path()).iter().map(|path| fs::metadata(path).unwrap().len()).sum()
    };
    let age = |path: &Path, hours: u64| {
        let then = SystemTime::now() - Duration::from_hours(hours);
        File::open(path).unwrap().set_modified(then).unwrap();
    };
    let mut seen = vec![first.clone()];
    for (name, hours) in [("abcd", 3), ("bcde", 2)] {
        load(&engine, name);
        let new = entries(folder.path()).into_iter().find(|path| !seen.contains(path)).unwrap();
        age(&new, hours);
        seen.push(new);
    }
    age(&first, 9);
    assert_eq!(cache.figures().evicted, 0);
    // After another use, the first is the youngest.
    load(&engine, "tiny");
    assert_eq!(cache.figures().hits, 1);
    load(&engine, "cdef");
    assert_eq!(cache.figures().evicted, 1);
    assert!(!seen[1].exists(), "the oldest is still there");
    assert!(seen[0].exists() && seen[2].exists());
    load(&engine, "defg");
    assert_eq!(cache.figures().evicted, 2);
    assert!(!seen[2].exists() && seen[0].exists());
    for name in ["efgh", "fghi", "ghij"] {
        load(&engine, name);
        assert!(total() <= max, "{} bytes of {max}", total());
    }
    assert_eq!(entries(folder.path()).len(), 3);
}

pub(crate) fn too_large() {
    let folder = tempfile::tempdir().unwrap();
    let cache = open_with(folder.path(), KEY, 100);
    let engine = engine(&cache);
    load(&engine, "tiny");
    load(&engine, "tiny");
    assert_eq!(cache.figures(), CacheFigures { misses: 2, ..CacheFigures::default() });
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

pub(crate) fn abandoned() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name);
    let old = file(&format!("{:032x}.new", 1));
    let young = file(&format!("{:032x}.new", 2));
    let foreign = file("notes.new");
    for path in [&old, &young, &foreign] {
        fs::write(path, "half").unwrap();
    }
    for path in [&old, &foreign] {
        let then = SystemTime::now() - Duration::from_hours(2);
        File::open(path).unwrap().set_modified(then).unwrap();
    }
    load(&engine(&open(folder.path(), KEY)), "tiny");
    assert!(!old.exists());
    assert!(young.exists(), "another host may be writing it");
    assert!(foreign.exists(), "the host did not make it");
}
