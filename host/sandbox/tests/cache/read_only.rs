//! A folder that a host may not write to.

use std::fs::{self, File, Permissions};
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use innkeeper_sandbox::{CacheFigures, CacheKey};

use crate::support::{self, KEY, NOBODY, Warm, engine, is_root, load, open, warm};

pub(crate) fn read_only() {
    let Warm { folder, entry, .. } = warm();
    if is_root() {
        // Root may write anywhere, so another user runs the host of this test.
        for path in [folder.path(), &entry] {
            chown(path, Some(NOBODY), None).unwrap();
        }
    }
    fs::set_permissions(folder.path(), Permissions::from_mode(0o500)).unwrap();
    // That user may have no access to the program by its own path.
    let mut host = Command::new("/proc/self/exe");
    host.arg("read-only").arg(folder.path()).current_dir("/");
    if is_root() {
        host.uid(NOBODY).gid(NOBODY);
    }
    let output = host.output().unwrap();
    fs::set_permissions(folder.path(), Permissions::from_mode(0o700)).unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// Runs a host that may read the folder, with one entry in it, but not write to it.
pub(crate) fn read_only_host(folder: &Path) {
    assert!(File::create(folder.join("probe")).is_err(), "the folder can be written to");
    let warnings = Warnings::default();
    tracing::subscriber::with_default(warnings.clone(), || {
        let cache = open(folder, KEY);
        let engine = engine(&cache);
        load(&engine, "tiny");
        assert_eq!(warnings.count(), 0);
        load(&engine, "other");
        assert_eq!(warnings.count(), 1);
        load(&engine, "third");
        assert_eq!(warnings.count(), 1);
        let expected = CacheFigures { hits: 1, misses: 2, ..CacheFigures::default() };
        assert_eq!(cache.figures(), expected);

        // Without a key the host trusts no entry.
        let without = open(folder, &CacheKey::Kept);
        assert_eq!(warnings.count(), 2);
        let engine = support::engine(&without);
        load(&engine, "tiny");
        load(&engine, "other");
        assert_eq!(warnings.count(), 2);
        assert_eq!(without.figures(), CacheFigures::default());
    });
    assert_eq!(fs::read_dir(folder).unwrap().count(), 1);
}

/// A subscriber that counts warnings and errors.
#[derive(Clone, Default)]
struct Warnings(Arc<AtomicUsize>);

impl Warnings {
    fn count(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

impl tracing::Subscriber for Warnings {
    fn enabled(&self, metadata: &tracing::Metadata<'_>) -> bool {
        *metadata.level() <= tracing::Level::WARN
    }

    fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        tracing::span::Id::from_u64(1)
    }

    fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}

    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}

    fn event(&self, _: &tracing::Event<'_>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    fn enter(&self, _: &tracing::span::Id) {}

    fn exit(&self, _: &tracing::span::Id) {}
}
