//! Compiled code on disk: a component that was compiled once is mapped at the next start.
//!
//! ```text
//! <folder>/key                the key, unless the caller gives one; 0600
//! <folder>/<64 digits>.code   one artifact and its seal; 0400
//! <folder>/<32 digits>.new    one being written
//! ```
//!
//! An entry is named by what its code depends on (see [`entry::Name`]) and sealed by the host's
//! key: code is run as the host, so none is taken that no host with this key has made. What is
//! wrong with an entry is never the module's trouble: it is refused, and compiled anew.
//!
//! Whoever acts as the host's user can write here, and thereby acts as the host; which is true
//! of the host's program and memory as well. Nobody else can.
//!
//! Several hosts may share a folder. An entry appears whole, by a rename, and is never written
//! to again; one that is deleted stays with those who have it mapped. Two that compile the same
//! component write the same entry, and the later one stays.

mod entry;
mod folder;
mod key;

use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use wasmtime::component::Component;

use self::entry::Name;
pub use self::folder::{CacheError, CacheFolder};
use self::folder::{Found, Listed};
pub use self::key::CacheKey;
use self::key::Key;

/// What all entries take together if nothing else is said, in bytes. An artifact has about
/// three times the bytes of its component.
pub const CACHE_BYTES_DEFAULT: u64 = 1 << 30;

/// How much older than a new file a half-written one must be to be what a host left when it
/// was killed, in seconds.
const ABANDONED_S: i64 = 60 * 60;

/// Compiled code on disk. Cloning is cheap and gives the same cache.
#[derive(Clone)]
pub struct CodeCache {
    inner: Arc<Inner>,
}

struct Inner {
    folder: CacheFolder,
    /// None if there is none and none can be kept: then nothing is cached.
    key: Option<Key>,
    bytes_max: u64,
    counts: Counts,
    reported_unwritable: AtomicBool,
    reported_refused: AtomicBool,
}

#[derive(Default)]
struct Counts {
    hits: AtomicU64,
    misses: AtomicU64,
    refused: AtomicU64,
    stored: AtomicU64,
    evicted: AtomicU64,
}

/// What a cache has done since it was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheFigures {
    /// Components that were not compiled, since their code was there.
    pub hits: u64,
    /// Components that were compiled, since there was no code.
    pub misses: u64,
    /// Components that were compiled, since what was there could not be trusted.
    pub refused: u64,
    /// Entries written.
    pub stored: u64,
    /// Entries deleted to make room.
    pub evicted: u64,
}

impl CodeCache {
    /// A cache in a folder, whose entries are sealed with `key` and take at most
    /// `bytes_max` bytes together ([`CACHE_BYTES_DEFAULT`]).
    ///
    /// A folder that cannot be written to is used as it is, with one warning.
    ///
    /// # Errors
    /// [`CacheError`], if the key that is kept in the folder cannot be trusted.
    pub fn open(folder: CacheFolder, key: &CacheKey, bytes_max: u64) -> Result<Self, CacheError> {
        let key = match key {
            CacheKey::Given(bytes) => Some(Key::new(bytes)),
            CacheKey::Kept => match key::kept(&folder)? {
                Ok(bytes) => Some(Key::new(&bytes)),
                Err(error) => {
                    tracing::warn!(
                        folder = %folder.path().display(),
                        %error,
                        "the code cache has no key and none can be written: nothing is cached"
                    );
                    None
                }
            },
        };
        let inner = Inner {
            folder,
            key,
            bytes_max,
            counts: Counts::default(),
            reported_unwritable: AtomicBool::new(false),
            reported_refused: AtomicBool::new(false),
        };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// What it has done so far.
    pub fn figures(&self) -> CacheFigures {
        let of = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let Counts { hits, misses, refused, stored, evicted } = &self.inner.counts;
        CacheFigures {
            hits: of(hits),
            misses: of(misses),
            refused: of(refused),
            stored: of(stored),
            evicted: of(evicted),
        }
    }

    /// The place of a component's code for this engine; `digest` is the SHA-256 of
    /// the component. `None` if nothing is cached.
    pub(crate) fn entry(&self, wasm: &wasmtime::Engine, digest: &[u8; 32]) -> Option<Entry<'_>> {
        let key = self.inner.key.as_ref()?;
        Some(Entry { cache: &self.inner, key, name: Name::of(wasm, digest) })
    }
}

impl fmt::Debug for CodeCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CodeCache")
            .field("folder", &self.inner.folder.path())
            .field("bytes_max", &self.inner.bytes_max)
            .finish_non_exhaustive()
    }
}

/// The place of one component's code.
pub(crate) struct Entry<'a> {
    cache: &'a Inner,
    key: &'a Key,
    name: Name,
}

impl Entry<'_> {
    /// The code, if it is there and can be trusted.
    pub(crate) fn fetch(&self, wasm: &wasmtime::Engine) -> Option<Component> {
        let counts = &self.cache.counts;
        let count = match self.open(wasm) {
            Ok(Some(component)) => {
                counts.hits.fetch_add(1, Ordering::Relaxed);
                return Some(component);
            }
            Ok(None) => &counts.misses,
            Err(reason) => {
                self.refuse(&reason);
                &counts.refused
            }
        };
        count.fetch_add(1, Ordering::Relaxed);
        None
    }

    /// Keeps an artifact of `bytes` bytes that this host's compiler has just made, and maps it
    /// from here, so that one file is the page cache of all hosts; `None` if that fails, which
    /// is said once.
    pub(crate) fn keep(
        &self,
        wasm: &wasmtime::Engine,
        artifact: &mut dyn Read,
        bytes: u64,
    ) -> Option<Component> {
        match self.write(artifact, bytes) {
            Ok(true) => {
                self.cache.counts.stored.fetch_add(1, Ordering::Relaxed);
            }
            Ok(false) => {
                let (folder, max) = (self.cache.folder.path(), self.cache.bytes_max);
                tracing::debug!(folder = %folder.display(), bytes, max, "code larger than the cache");
                return None;
            }
            Err(error) => {
                if !self.cache.reported_unwritable.swap(true, Ordering::Relaxed) {
                    tracing::warn!(
                        folder = %self.cache.folder.path().display(),
                        %error,
                        "the code cache cannot be written to: what is not in it is compiled at every start"
                    );
                }
                return None;
            }
        }
        self.open(wasm).unwrap_or_else(|reason| {
            self.refuse(&reason);
            None
        })
    }

    /// `Err` says why what is there is not used.
    fn open(&self, wasm: &wasmtime::Engine) -> Result<Option<Component>, String> {
        let folder = &self.cache.folder;
        let (mut file, bytes) = match folder.open_file(&self.name.file()) {
            Ok(Found::Own { file, bytes }) => (file, bytes),
            Ok(Found::Absent) => return Ok(None),
            Ok(Found::Foreign(what)) => return Err(what),
            Err(error) => return Err(format!("it cannot be opened: {error}")),
        };
        if bytes > self.cache.bytes_max {
            return Err(format!("it has {bytes} bytes"));
        }
        entry::check(self.key, &self.name, &mut file, bytes)?;
        let component = map(wasm, &file).map_err(|error| {
            format!("it cannot be mapped: {error:#} (is its file system mounted noexec?)")
        })?;
        // The order in which entries go; where it cannot be told, they go too early.
        let _ = folder::touch(&file);
        Ok(Some(component))
    }

    fn refuse(&self, reason: &str) {
        let folder = &self.cache.folder;
        let file = self.name.file();
        let path = folder.path().join(&file);
        if self.cache.reported_refused.swap(true, Ordering::Relaxed) {
            tracing::debug!(path = %path.display(), reason, "cached code is refused");
        } else {
            tracing::warn!(
                path = %path.display(),
                reason,
                "cached code is refused and compiled anew; further ones are told at debug"
            );
        }
        // A new entry takes its place in any case.
        let _ = folder.delete_ours(&file);
    }

    /// Whether it was written; not if it is larger than the whole cache may be.
    fn write(&self, artifact: &mut dyn Read, bytes: u64) -> io::Result<bool> {
        let total = bytes.saturating_add(entry::SEAL_BYTES);
        if total > self.cache.bytes_max {
            return Ok(false);
        }
        let mut new = self.cache.folder.create()?;
        self.make_room(total, new.modified_s()?)?;
        let written = entry::write(self.key, &self.name, artifact, new.file())?;
        if written != bytes {
            return Err(io::Error::other("the compiler's artifact changed while it was copied"));
        }
        new.rename(&self.name.file())?;
        Ok(true)
    }

    /// Deletes entries, the one unused for longest first, until `bytes` more fit; and what other
    /// hosts left half-written. `now_s` is the folder's own time.
    fn make_room(&self, bytes: u64, now_s: i64) -> io::Result<()> {
        let folder = &self.cache.folder;
        let mut entries: Vec<Listed> = Vec::new();
        let mut total = bytes;
        for listed in folder.list()? {
            if folder::is_new(&listed.name) {
                if listed.modified_s < now_s.saturating_sub(ABANDONED_S) {
                    folder.delete(&listed.name)?;
                } else {
                    total = total.saturating_add(listed.bytes);
                }
            } else if Name::is_file(&listed.name) {
                total = total.saturating_add(listed.bytes);
                entries.push(listed);
            }
        }
        // By name where times are equal.
        entries.sort_unstable_by(|a, b| {
            (a.modified_s, a.modified_ns, &a.name).cmp(&(b.modified_s, b.modified_ns, &b.name))
        });
        for oldest in entries {
            if total <= self.cache.bytes_max {
                break;
            }
            folder.delete(&oldest.name)?;
            self.cache.counts.evicted.fetch_add(1, Ordering::Relaxed);
            total = total.saturating_sub(oldest.bytes);
        }
        Ok(())
    }
}

/// Maps an entry whose seal was checked by this very descriptor.
fn map(wasm: &wasmtime::Engine, file: &File) -> wasmtime::Result<Component> {
    // wasmtime opens by name only. This name is the file behind the descriptor, whatever has
    // happened to its name in the folder since.
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    // SAFETY: the file must be an artifact of this build of wasmtime for these settings, and
    // nobody may change it while it is mapped.
    //
    // The first is what the seal says, which covers every byte before it: only who has the
    // key can make it, the hosts; they seal nothing but what their own compiler wrote; and the
    // name, which is sealed with it, stands for wasmtime's exact version, all settings and
    // CPU features that shape code, and the component. wasmtime looks at most of these again.
    // (wasmtime finds its way from the ELF header and does not look at the seal behind.)
    //
    // The second: `CacheFolder::open_file` has looked, through this descriptor, that the file
    // is a regular one of our own user that nobody else may write to. So it was made by a process
    // of this user, and only such a one can have it open for writing. Hosts never write to
    // an entry that has its name: they replace it by a rename, or delete it, which both leave
    // the mapped file as it is. Other processes of this user could change it, as they
    // could change this program and its memory: they are trusted.
    #[expect(unsafe_code, reason = "mapping native code is unsafe by nature")]
    unsafe {
        Component::deserialize_file(wasm, path)
    }
}
