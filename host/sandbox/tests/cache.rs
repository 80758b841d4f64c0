//! Compiled code on disk. The test program is its own child: started with the argument
//! `compile` it is the compiler, with `read-only` it is a host without the right to write.

#![allow(clippy::unwrap_used, reason = "all of this is a test, marked or not")]

mod guests;

use std::ffi::OsStr;
use std::fs::{self, File, Permissions};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown, symlink};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, SystemTime};

use guests::{Cluster, MANIFEST, Tiny};
use innkeeper_sandbox::{
    CACHE_BYTES_DEFAULT, CacheError, CacheFigures, CacheFolder, CacheKey, CodeCache, Compile,
    Engine, Guest, Interruption, Limits, Outcome, compile_child,
};
use libtest_mimic::{Arguments, Failed, Trial};
use tempfile::TempDir;

const KEY: &CacheKey = &CacheKey::Given([1; 32]);

/// A user that is neither root nor, most likely, the one who runs the tests.
const NOBODY: u32 = 65_534;

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    match arguments.next().as_deref().and_then(OsStr::to_str) {
        Some("compile") => return compile_child(),
        Some("read-only") => {
            read_only_host(Path::new(&arguments.next().unwrap()));
            return ExitCode::SUCCESS;
        }
        _ => {}
    }
    let trials = [
        ("a_second_load_needs_no_compiler", second_load as fn()),
        ("code_compiled_in_this_process_is_kept_too", in_process),
        ("a_guest_outlives_its_entry", outlives),
        ("a_changed_byte_anywhere_is_refused", tampered),
        ("an_entry_cut_or_grown_is_refused", wrong_length),
        ("an_entry_sealed_with_another_key_is_refused", other_key),
        ("an_entry_under_another_name_is_refused", other_name),
        ("an_entry_that_others_could_write_to_is_refused", writable_entry),
        ("an_entry_of_another_user_is_refused", foreign_entry),
        ("what_is_no_regular_file_is_refused", no_file),
        ("code_for_other_settings_is_not_used", other_settings),
        ("a_component_that_cannot_be_compiled_leaves_nothing", nothing_kept),
        ("a_folder_is_made_for_this_user_alone", made),
        ("a_folder_that_others_may_write_to_is_refused", writable_folder),
        ("a_folder_of_another_user_is_refused", foreign_folder),
        ("a_folder_that_is_a_file_is_refused", file_as_folder),
        ("a_kept_key_is_made_once_and_for_this_user_alone", kept_key),
        ("a_kept_key_that_cannot_be_trusted_is_refused", wrong_keys),
        ("the_entry_unused_for_longest_goes_first_and_the_bound_holds", evicts),
        ("code_larger_than_the_cache_is_not_kept", too_large),
        ("what_a_killed_host_left_is_cleared_away", abandoned),
        ("many_loads_at_once_leave_one_good_entry", concurrent),
        ("a_folder_that_cannot_be_written_to_serves_and_warns_once", read_only),
    ]
    .into_iter()
    .map(|(name, test)| {
        Trial::test(name, move || {
            test();
            Ok::<_, Failed>(())
        })
    })
    .collect();
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

fn open(folder: &Path, key: &CacheKey) -> CodeCache {
    open_with(folder, key, CACHE_BYTES_DEFAULT)
}

fn open_with(folder: &Path, key: &CacheKey, bytes_max: u64) -> CodeCache {
    CodeCache::open(CacheFolder::open(folder).unwrap(), key, bytes_max).unwrap()
}

/// An engine that compiles in this process.
fn engine(cache: &CodeCache) -> Engine {
    Engine::builder().guests(2).permits(2).cache(cache.clone()).build().unwrap()
}

/// An engine whose compiler is this program, or one that is not there.
fn engine_with(cache: &CodeCache, compiler: &Path, artifacts: &Path) -> Engine {
    Engine::builder()
        .guests(2)
        .permits(2)
        .compile(Compile::Child(compiler.to_owned()))
        .artifacts(artifacts)
        .cache(cache.clone())
        .build()
        .unwrap()
}

/// Components that differ in a text only.
fn component(name: &str) -> Vec<u8> {
    Tiny::default().manifest(&MANIFEST.replace("tiny", name)).component()
}

#[track_caller]
fn load(engine: &Engine, name: &str) -> Guest {
    let guest = engine.load(&component(name), &Limits::default()).unwrap();
    assert_eq!(guest.manifest().name, name);
    runs(&guest);
    guest
}

#[track_caller]
fn runs(guest: &Guest) {
    let run = guest.reconcile("{}", &mut Cluster::default()).unwrap();
    assert!(matches!(run.outcome, Outcome::Complete(_)), "{run:?}");
}

/// A folder with the entry of one component.
struct Warm {
    folder: TempDir,
    entry: PathBuf,
    good: Vec<u8>,
}

fn warm() -> Warm {
    let folder = tempfile::tempdir().unwrap();
    load(&engine(&open(folder.path(), KEY)), "tiny");
    let [entry] = <[PathBuf; 1]>::try_from(entries(folder.path())).unwrap();
    let good = fs::read(&entry).unwrap();
    Warm { folder, entry, good }
}

impl Warm {
    /// Puts other bytes in the place of the entry.
    fn put(&self, bytes: &[u8]) {
        fs::remove_file(&self.entry).unwrap();
        fs::write(&self.entry, bytes).unwrap();
        fs::set_permissions(&self.entry, Permissions::from_mode(0o400)).unwrap();
    }

    /// What is there now is refused, the component compiled, and its entry good again.
    #[track_caller]
    fn is_refused(&self, what: &str) {
        let cache = open(self.folder.path(), KEY);
        let engine = engine(&cache);
        load(&engine, "tiny");
        let refused = CacheFigures { refused: 1, stored: 1, ..CacheFigures::default() };
        assert_eq!(cache.figures(), refused, "{what}");
        load(&engine, "tiny");
        assert_eq!(cache.figures(), CacheFigures { hits: 1, ..refused }, "{what}");
        assert!(fs::read(&self.entry).unwrap() == self.good, "{what}: not as it was");
    }
}

/// All entries, by name.
fn entries(folder: &Path) -> Vec<PathBuf> {
    ending(folder, "code")
}

fn ending(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension() == Some(OsStr::new(extension)))
        .collect();
    found.sort();
    found
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().mode() & 0o7777
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

fn second_load() {
    let folder = tempfile::tempdir().unwrap();
    let artifacts = tempfile::tempdir().unwrap();
    let program = std::env::current_exe().unwrap();
    let cold = open(folder.path(), KEY);
    load(&engine_with(&cold, &program, artifacts.path()), "tiny");
    assert_eq!(cold.figures(), CacheFigures { misses: 1, stored: 1, ..CacheFigures::default() });
    assert_eq!(fs::read_dir(artifacts.path()).unwrap().count(), 0);

    // As after a restart; there is no compiler that could be asked.
    let nobody = artifacts.path().join("nobody");
    let warm = open(folder.path(), KEY);
    let engine = engine_with(&warm, &nobody, artifacts.path());
    load(&engine, "tiny");
    assert_eq!(warm.figures(), CacheFigures { hits: 1, ..CacheFigures::default() });
    let error = engine.load(&component("other"), &Limits::default()).unwrap_err();
    assert_eq!(error.reason(), "CompilerUnavailable");
    assert_eq!(mode(&entries(folder.path())[0]), 0o400);
}

fn in_process() {
    let folder = tempfile::tempdir().unwrap();
    let cache = open(folder.path(), KEY);
    let engine = engine(&cache);
    load(&engine, "tiny");
    load(&engine, "tiny");
    load(&engine, "other");
    let expected = CacheFigures { hits: 1, misses: 2, stored: 2, ..CacheFigures::default() };
    assert_eq!(cache.figures(), expected);
}

fn outlives() {
    let Warm { folder, entry, .. } = warm();
    let guest = load(&engine(&open(folder.path(), KEY)), "tiny");
    fs::remove_file(entry).unwrap();
    runs(&guest);
    drop(folder);
    runs(&guest);
}

fn tampered() {
    let warm = warm();
    let length = warm.good.len();
    // All over the artifact, and each part of the seal.
    let spread = (0..16).map(|part| part * length / 16);
    for at in spread.chain([length - 40, length - 33, length - 32, length - 1]) {
        let mut bytes = warm.good.clone();
        bytes[at] ^= 1;
        warm.put(&bytes);
        warm.is_refused(&format!("byte {at} of {length}"));
    }
}

fn wrong_length() {
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

fn other_key() {
    let warm = warm();
    let theirs = tempfile::tempdir().unwrap();
    load(&engine(&open(theirs.path(), &CacheKey::Given([2; 32]))), "tiny");
    let their_entry = &entries(theirs.path())[0];
    assert_eq!(their_entry.file_name(), warm.entry.file_name());
    warm.put(&fs::read(their_entry).unwrap());
    warm.is_refused("their key");
}

fn other_name() {
    let warm = warm();
    load(&engine(&open(warm.folder.path(), KEY)), "other");
    let [other] = <[PathBuf; 1]>::try_from(
        entries(warm.folder.path())
            .into_iter()
            .filter(|path| *path != warm.entry)
            .collect::<Vec<_>>(),
    )
    .unwrap();
    // Sealed with our key, but it is the code of another component.
    warm.put(&fs::read(other).unwrap());
    warm.is_refused("the entry of another component");
}

fn writable_entry() {
    let warm = warm();
    for mode in [0o420, 0o402, 0o666] {
        fs::set_permissions(&warm.entry, Permissions::from_mode(mode)).unwrap();
        warm.is_refused(&format!("mode {mode:o}"));
        assert_eq!(self::mode(&warm.entry), 0o400);
    }
}

fn foreign_entry() {
    if !is_root() {
        // Only root can give a file away; the folder of another user is tested for all.
        return;
    }
    let warm = warm();
    chown(&warm.entry, Some(NOBODY), None).unwrap();
    warm.is_refused("another owner");
    assert_eq!(fs::metadata(&warm.entry).unwrap().uid(), 0);
}

fn no_file() {
    let warm = warm();
    let elsewhere = warm.folder.path().join("elsewhere");
    fs::rename(&warm.entry, &elsewhere).unwrap();
    symlink(&elsewhere, &warm.entry).unwrap();
    warm.is_refused("a symbolic link to a good entry");

    // Nobody writes to the pipe: opening it must not wait.
    fs::remove_file(&warm.entry).unwrap();
    let made = Command::new("mkfifo").arg(&warm.entry).status().unwrap();
    assert!(made.success());
    warm.is_refused("a pipe");

    fs::remove_file(&warm.entry).unwrap();
    fs::create_dir(&warm.entry).unwrap();
    let cache = open(warm.folder.path(), KEY);
    load(&engine(&cache), "tiny");
    // A folder is in the way of the new entry as well; the guest is none the worse.
    assert_eq!(cache.figures(), CacheFigures { refused: 1, ..CacheFigures::default() });
    assert!(ending(warm.folder.path(), "new").is_empty());
}

fn other_settings() {
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

fn nothing_kept() {
    let folder = tempfile::tempdir().unwrap();
    let cache = open(folder.path(), KEY);
    let bytes = component("tiny");
    let cut = &bytes[..bytes.len() / 2];
    let error = engine(&cache).load(cut, &Limits::default()).unwrap_err();
    assert_eq!(error.reason(), "CompileFailed");
    assert_eq!(cache.figures(), CacheFigures { misses: 1, ..CacheFigures::default() });
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

fn made() {
    let above = tempfile::tempdir().unwrap();
    // As the volumes of pods are; what is made within is ours.
    fs::set_permissions(above.path(), Permissions::from_mode(0o777)).unwrap();
    let folder = above.path().join("a/b");
    load(&engine(&open(&folder, KEY)), "tiny");
    assert_eq!(mode(&folder), 0o700);
    assert_eq!(entries(&folder).len(), 1);
}

#[track_caller]
fn refused_folder(folder: &Path, expected: &str) {
    let error = CacheFolder::open(folder).unwrap_err();
    let said = error.to_string();
    assert!(said.contains(folder.to_str().unwrap()), "{said}");
    assert!(said.contains(expected), "{said}");
}

fn writable_folder() {
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

fn foreign_folder() {
    let folder = tempfile::tempdir().unwrap();
    if is_root() {
        chown(folder.path(), Some(NOBODY), None).unwrap();
        refused_folder(folder.path(), "belongs to user 65534, not to 0");
    } else {
        refused_folder(Path::new("/usr"), "belongs to user 0, not to");
    }
}

fn file_as_folder() {
    let file = tempfile::NamedTempFile::new().unwrap();
    refused_folder(file.path(), "cannot be used");
    refused_folder(&file.path().join("below"), "cannot be used");
}

fn kept_key() {
    let folder = tempfile::tempdir().unwrap();
    // All at once: one of them makes it.
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

fn wrong_keys() {
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
        let said = error.to_string();
        assert!(said.contains(expected) && said.contains("delete it"), "{said}");
        fs::remove_file(&key).unwrap();
    }
}

fn evicts() {
    let Warm { folder, entry: first, good } = warm();
    let bytes = good.len() as u64;
    // Room for three; names of one length give code of one size.
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
    // Used again, the first is the youngest.
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

fn too_large() {
    let folder = tempfile::tempdir().unwrap();
    let cache = open_with(folder.path(), KEY, 100);
    let engine = engine(&cache);
    load(&engine, "tiny");
    load(&engine, "tiny");
    assert_eq!(cache.figures(), CacheFigures { misses: 2, ..CacheFigures::default() });
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

fn abandoned() {
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
    assert!(foreign.exists(), "not of our making");
}

fn concurrent() {
    const THREADS: usize = 8;
    let folder = tempfile::tempdir().unwrap();
    // Two hosts on one folder.
    let caches = [open(folder.path(), KEY), open(folder.path(), KEY)];
    let engines = caches
        .each_ref()
        .map(|cache| Engine::builder().guests(8).permits(8).cache(cache.clone()).build().unwrap());
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let engine = &engines[thread % 2];
            scope.spawn(move || {
                for name in ["tiny", "other", "tiny"] {
                    load(engine, name);
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

fn read_only() {
    let Warm { folder, entry, .. } = warm();
    if is_root() {
        // Root may write anywhere: the host of this test is somebody else.
        for path in [folder.path(), &entry] {
            chown(path, Some(NOBODY), None).unwrap();
        }
    }
    fs::set_permissions(folder.path(), Permissions::from_mode(0o500)).unwrap();
    // By this name, since that user may not reach the file's own.
    let mut host = Command::new("/proc/self/exe");
    host.arg("read-only").arg(folder.path()).current_dir("/");
    if is_root() {
        host.uid(NOBODY).gid(NOBODY);
    }
    let output = host.output().unwrap();
    fs::set_permissions(folder.path(), Permissions::from_mode(0o700)).unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// A host that may read the folder, with one entry in it, and not write to it.
fn read_only_host(folder: &Path) {
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

        // Without a key nothing is trusted.
        let without = open(folder, &CacheKey::Kept);
        assert_eq!(warnings.count(), 2);
        let engine = self::engine(&without);
        load(&engine, "tiny");
        load(&engine, "other");
        assert_eq!(warnings.count(), 2);
        assert_eq!(without.figures(), CacheFigures::default());
    });
    assert_eq!(fs::read_dir(folder).unwrap().count(), 1);
}

/// Counts warnings and errors.
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
