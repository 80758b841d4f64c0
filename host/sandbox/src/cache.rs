//! Compiled code on disk: the host compiles a component once, and maps its code at the next start.
//!
//! ```text
//! <folder>/key                the key, unless the caller gives one; 0600
//! <folder>/<64 digits>.code   one artifact and its seal; 0400
//! <folder>/<32 digits>.new    one being written
//! ```
//!
//! The name of an entry is a digest over all that its code depends on (see [`entry::Name`]), and
//! the host's key seals the entry: the host runs the code, so it accepts only entries of a host
//! with this key. It refuses a wrong entry and compiles the component again; no module fails
//! because of an entry.
//!
//! A process of the host's user can write to the folder, and thereby run code as the host, as it
//! can by the host's program and memory. No other process can.
//!
//! Several hosts may share a folder. An entry appears whole, by a rename, and no host writes to it
//! again. A host that has mapped an entry keeps it after the deletion. If two hosts compile the
//! same component, both write the same entry, and the later one stays.

mod entry;
mod folder;
mod key;

use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::AsRawFd;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use self::entry::Name;
pub use self::folder::{CacheError, CacheFolder};
use self::folder::{Found, Listed};
pub use self::key::CacheKey;
use self::key::Key;
use crate::code::Code;
use crate::format::Format;

/// The default of the size of all entries together, in bytes. An artifact has about three times the
/// bytes of its component.
pub const CACHE_BYTES_DEFAULT: u64 = 1 << 30;

/// A half-written file that is so much older than a new one is from a host that was killed, in
/// seconds.
const ABANDONED_S: i64 = 60 * 60;

/// Compiled code on disk. Clones are cheap and the same cache.
#[derive(Clone)]
pub struct CodeCache {
    inner: Arc<Inner>,
}

struct Inner {
    folder: CacheFolder,
    /// `None` if there is no key and the host cannot write one: then it caches nothing.
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

/// The counters of a cache since it was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheFigures {
    /// Components whose code was in the cache.
    pub hits: u64,
    /// Components that the host compiled because the cache had no code.
    pub misses: u64,
    /// Components that the host compiled because it refused their entry.
    pub refused: u64,
    /// Entries written.
    pub stored: u64,
    /// Entries deleted to make room.
    pub evicted: u64,
}

impl CodeCache {
    /// Opens a cache in a folder. `key` seals its entries, which have at most `bytes_max` bytes
    /// together ([`CACHE_BYTES_DEFAULT`]).
    ///
    /// The host reads a folder to which it cannot write, and logs one warning.
    ///
    /// # Errors
    /// [`CacheError::Key`] if others may have read or written the key in the folder.
    pub fn open(folder: CacheFolder, key: &CacheKey, bytes_max: u64) -> Result<Self, CacheError> {
        let key = match key {
            CacheKey::Given(bytes) => Some(Key::new(bytes)),
            CacheKey::Kept => match key::kept(&folder)? {
                Ok(bytes) => Some(Key::new(&bytes)),
                Err(error) => {
                    tracing::warn!(
                        folder = %folder.path().display(),
                        %error,
                        "code cache without a key: the host cannot write one and caches nothing"
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

    /// The counters so far.
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

    /// The entry of a guest's code for this engine; `digest` is the SHA-256 of the bytes of the
    /// guest. `None` if the host caches nothing.
    pub(crate) fn entry(
        &self,
        wasm: &wasmtime::Engine,
        format: Format,
        digest: &[u8; 32],
    ) -> Option<Entry<'_>> {
        let key = self.inner.key.as_ref()?;
        Some(Entry { cache: &self.inner, key, format, name: Name::of(wasm, format, digest) })
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

/// The entry of one component's code, which may not exist yet.
pub(crate) struct Entry<'a> {
    cache: &'a Inner,
    key: &'a Key,
    format: Format,
    name: Name,
}

impl Entry<'_> {
    /// Maps the code, if the entry exists and its seal is valid.
    pub(crate) fn fetch(&self, wasm: &wasmtime::Engine) -> Option<Code> {
        let counts = &self.cache.counts;
        let count = match self.open(wasm) {
            Ok(Some(code)) => {
                counts.hits.fetch_add(1, Ordering::Relaxed);
                return Some(code);
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

    /// Writes an artifact of `bytes` bytes that this host's compiler has just made, and maps it
    /// from the cache, so that all hosts share one file in the page cache; `None` if that fails,
    /// which the host logs once.
    pub(crate) fn keep(
        &self,
        wasm: &wasmtime::Engine,
        artifact: &mut dyn Read,
        bytes: u64,
    ) -> Option<Code> {
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
                        "code cache not writable: the host compiles components without an entry at each start"
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

    /// Maps the entry; `Err` has the reason why the host refuses it.
    fn open(&self, wasm: &wasmtime::Engine) -> Result<Option<Code>, String> {
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
        let code = map(wasm, self.format, &file).map_err(|error| {
            format!("it cannot be mapped: {error:#} (is its file system mounted noexec?)")
        })?;
        // The time of the last use orders evictions. Without it the entry goes too early.
        let _ = folder::touch(&file);
        Ok(Some(code))
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
                "cached code is refused and compiled again; further refusals are logged at debug"
            );
        }
        // A new entry replaces it in any case.
        let _ = folder.delete_ours(&file);
    }

    /// Writes an entry; `false` if it is larger than the whole cache may be.
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

    /// Deletes entries, the one unused for longest first, until `bytes` more fit, and half-written
    /// files of killed hosts. `now_s` is the time of the folder's file system.
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
        // By name if times are equal.
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

/// Maps an entry whose seal was checked by this descriptor.
fn map(wasm: &wasmtime::Engine, format: Format, file: &File) -> wasmtime::Result<Code> {
    // wasmtime opens by name only. This name leads to the file behind the descriptor, even if
    // another file has its name in the folder now.
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    // SAFETY: the file must be an artifact of this build of wasmtime for these settings, and
    // nobody may change it while it is mapped.
    //
    // The seal, which covers every byte before it, shows the first. Only hosts have the key, and
    // a host seals only artifacts of its own compiler. The name, which is sealed too, is a digest
    // over wasmtime's exact version, all settings and CPU features that shape code, and the
    // component. wasmtime checks most of these again. (wasmtime starts at the ELF header and does
    // not read the seal behind the artifact.)
    //
    // The second: `CacheFolder::open_file` has checked by this descriptor that the file is a
    // regular one of this user to which no other user may write. So a process of this user made
    // it, and only such a process can have it open for writing. A host never writes to an entry
    // under its name: it replaces the entry by a rename, or deletes it, and both leave the mapped
    // file unchanged. Other processes of this user could change the file, as they could change
    // this program and its memory: the host trusts them.
    #[expect(unsafe_code, reason = "mapping native code is unsafe by nature")]
    unsafe {
        Code::map(wasm, format, Path::new(&path))
    }
}
