//! Loads with a cold and a warm cache.

use std::fs;

use innkeeper_sandbox::{CacheFigures, CodeCache, Engine, Interruption, Limits};

use crate::guests::Cluster;
use crate::support::{
    KEY, Warm, component, ending, engine, engine_with, entries, load, mode, open, runs, warm,
};

pub(crate) fn second_load() {
    let folder = tempfile::tempdir().unwrap();
    let artifacts = tempfile::tempdir().unwrap();
    let program = std::env::current_exe().unwrap();
    let cold = open(folder.path(), KEY);
    load(&engine_with(&cold, &program, artifacts.path()), "tiny");
    assert_eq!(cold.figures(), CacheFigures { misses: 1, stored: 1, ..CacheFigures::default() });
    assert_eq!(fs::read_dir(artifacts.path()).unwrap().count(), 0);

    // As after a restart, and without a compiler.
    let missing = artifacts.path().join("missing");
    let warm = open(folder.path(), KEY);
    let engine = engine_with(&warm, &missing, artifacts.path());
    load(&engine, "tiny");
    assert_eq!(warm.figures(), CacheFigures { hits: 1, ..CacheFigures::default() });
    let error = engine.load(&component("other"), &Limits::default()).unwrap_err();
    assert_eq!(error.reason(), "CompilerUnavailable");
    assert_eq!(mode(&entries(folder.path())[0]), 0o400);
}

pub(crate) fn in_process() {
    let folder = tempfile::tempdir().unwrap();
    let cache = open(folder.path(), KEY);
    let engine = engine(&cache);
    load(&engine, "tiny");
    load(&engine, "tiny");
    load(&engine, "other");
    let expected = CacheFigures { hits: 1, misses: 2, stored: 2, ..CacheFigures::default() };
    assert_eq!(cache.figures(), expected);
}

pub(crate) fn outlives() {
    let Warm { folder, entry, .. } = warm();
    let guest = load(&engine(&open(folder.path(), KEY)), "tiny");
    fs::remove_file(entry).unwrap();
    runs(&guest);
    drop(folder);
    runs(&guest);
}

pub(crate) fn other_settings() {
    let warm = warm();
    let cache = open(warm.folder.path(), KEY);
    let fuel = Engine::builder()
        .guests(2)
        .permits(2)
        .interruption(Interruption::Fuel)
        .cache(cache.clone())
        .build()
        .unwrap();
    let guest = load(&fuel, "tiny");
    assert!(guest.reconcile("{}", &mut Cluster::default()).unwrap().figures.fuel > Some(0));
    assert_eq!(cache.figures(), CacheFigures { misses: 1, stored: 1, ..CacheFigures::default() });
    assert_eq!(entries(warm.folder.path()).len(), 2);
}

pub(crate) fn nothing_kept() {
    let folder = tempfile::tempdir().unwrap();
    let cache = open(folder.path(), KEY);
    let bytes = component("tiny");
    let cut = &bytes[..bytes.len() / 2];
    let error = engine(&cache).load(cut, &Limits::default()).unwrap_err();
    assert_eq!(error.reason(), "CompileFailed");
    assert_eq!(cache.figures(), CacheFigures { misses: 1, ..CacheFigures::default() });
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

pub(crate) fn concurrent() {
    const THREADS: usize = 8;
    let folder = tempfile::tempdir().unwrap();
    // Two hosts on one folder.
    let caches = [open(folder.path(), KEY), open(folder.path(), KEY)];
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            // An engine does not load what another thread holds; so each thread has its own.
            let engine = engine(&caches[thread % 2]);
            scope.spawn(move || {
                for name in ["tiny", "other", "tiny"] {
                    load(&engine, name);
                }
            });
        }
    });
    let figures = caches.each_ref().map(CodeCache::figures);
    let loads: u64 = figures.iter().map(|f| f.hits + f.misses).sum();
    assert_eq!(loads, 3 * THREADS as u64, "{figures:?}");
    assert!(figures.iter().all(|f| f.refused == 0 && f.evicted == 0), "{figures:?}");
    assert_eq!(entries(folder.path()).len(), 2);
    assert!(ending(folder.path(), "new").is_empty());
    let after = open(folder.path(), KEY);
    load(&engine(&after), "tiny");
    load(&engine(&after), "other");
    assert_eq!(after.figures(), CacheFigures { hits: 2, ..CacheFigures::default() });
}
