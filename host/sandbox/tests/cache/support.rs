//! Caches, engines, components and a folder with one entry.

use std::ffi::OsStr;
use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use innkeeper_sandbox::{
    CACHE_BYTES_DEFAULT, CacheFigures, CacheFolder, CacheKey, CodeCache, Compile, Engine, Guest,
    Limits, Outcome,
};
use tempfile::TempDir;

use crate::guests::{Cluster, MANIFEST, Tiny};

pub(crate) const KEY: &CacheKey = &CacheKey::Given([1; 32]);

/// A user that is neither root nor, most likely, the one who runs the tests.
pub(crate) const NOBODY: u32 = 65_534;

pub(crate) fn open(folder: &Path, key: &CacheKey) -> CodeCache {
    open_with(folder, key, CACHE_BYTES_DEFAULT)
}

pub(crate) fn open_with(folder: &Path, key: &CacheKey, bytes_max: u64) -> CodeCache {
    CodeCache::open(CacheFolder::open(folder).unwrap(), key, bytes_max).unwrap()
}

/// An engine that compiles in this process.
pub(crate) fn engine(cache: &CodeCache) -> Engine {
    Engine::builder().guests(2).permits(2).cache(cache.clone()).build().unwrap()
}

/// An engine with this program as its compiler.
pub(crate) fn engine_with(cache: &CodeCache, compiler: &Path, artifacts: &Path) -> Engine {
    Engine::builder()
        .guests(2)
        .permits(2)
        .compile(Compile::Child(compiler.to_owned()))
        .artifacts(artifacts)
        .cache(cache.clone())
        .build()
        .unwrap()
}

/// A component that differs from others of this function in its name only.
pub(crate) fn component(name: &str) -> Vec<u8> {
    Tiny::default().manifest(&MANIFEST.replace("tiny", name)).component()
}

#[track_caller]
pub(crate) fn load(engine: &Engine, name: &str) -> Guest {
    let guest = engine.load(&component(name), &Limits::default()).unwrap();
    assert_eq!(guest.manifest().name, name);
    runs(&guest);
    guest
}

#[track_caller]
pub(crate) fn runs(guest: &Guest) {
    let run = guest.reconcile("{}", &mut Cluster::default()).unwrap();
    assert!(matches!(run.outcome, Outcome::Complete(_)), "{run:?}");
}

/// A folder with the entry of one component.
pub(crate) struct Warm {
    pub(crate) folder: TempDir,
    pub(crate) entry: PathBuf,
    pub(crate) good: Vec<u8>,
}

pub(crate) fn warm() -> Warm {
    let folder = tempfile::tempdir().unwrap();
    load(&engine(&open(folder.path(), KEY)), "tiny");
    let [entry] = <[PathBuf; 1]>::try_from(entries(folder.path())).unwrap();
    let good = fs::read(&entry).unwrap();
    Warm { folder, entry, good }
}

impl Warm {
    /// Replaces the entry by other bytes.
    pub(crate) fn put(&self, bytes: &[u8]) {
        fs::remove_file(&self.entry).unwrap();
        fs::write(&self.entry, bytes).unwrap();
        fs::set_permissions(&self.entry, Permissions::from_mode(0o400)).unwrap();
    }

    /// Asserts that a host refuses the entry, compiles the component, and writes a good entry.
    #[track_caller]
    pub(crate) fn is_refused(&self, what: &str) {
        let cache = open(self.folder.path(), KEY);
        let engine = engine(&cache);
        load(&engine, "tiny");
        let refused = CacheFigures { refused: 1, stored: 1, ..CacheFigures::default() };
        assert_eq!(cache.figures(), refused, "{what}");
        load(&engine, "tiny");
        assert_eq!(cache.figures(), CacheFigures { hits: 1, ..refused }, "{what}");
        assert!(
            fs::read(&self.entry).unwrap() == self.good,
            "{what}: the entry was not written again"
        );
    }
}

/// All entries, by name.
pub(crate) fn entries(folder: &Path) -> Vec<PathBuf> {
    ending(folder, "code")
}

pub(crate) fn ending(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension() == Some(OsStr::new(extension)))
        .collect();
    found.sort();
    found
}

pub(crate) fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().mode() & 0o7777
}

pub(crate) fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}
