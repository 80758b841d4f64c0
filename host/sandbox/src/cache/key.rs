//! The key that seals entries.

use std::fmt;
use std::io::{self, Read as _, Write as _};

use hmac::{Hmac, KeyInit as _};
use sha2::Sha256;

use super::folder::{CacheError, CacheFolder, Found, is_readable_by_others, random};

/// Bytes of a key.
const KEY_BYTES: usize = 32;

/// The file of a key in the folder.
const FILE: &str = "key";

/// The key that seals entries.
#[derive(Clone)]
pub enum CacheKey {
    /// Random bytes, made once and kept in the folder. A process that can read the folder as the
    /// host's user, now or from a copy of the disk, can make entries.
    Kept,
    /// Bytes of the caller. A key outside of the disk also protects against others that can write
    /// to the disk: another pod that had the volume, a restored backup.
    Given([u8; KEY_BYTES]),
}

impl fmt::Debug for CacheKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Kept => "Kept",
            Self::Given(_) => "Given(..)",
        })
    }
}

/// A key, ready to authenticate.
pub(super) struct Key(Hmac<Sha256>);

impl Key {
    pub(super) fn new(bytes: &[u8; KEY_BYTES]) -> Self {
        // HMAC pads a key that is shorter than the hash's block.
        let mut block = [0; 64];
        block[..KEY_BYTES].copy_from_slice(bytes);
        Self(Hmac::new((&block).into()))
    }

    /// A new authentication code.
    pub(super) fn mac(&self) -> Hmac<Sha256> {
        self.0.clone()
    }
}

/// The key in the folder, which the host makes if there is none. If several hosts make it at once,
/// all of them get the first one's. The inner error: there is no key, and none can be written.
///
/// # Errors
/// [`CacheError::Key`] if others may have read or written the key.
pub(super) fn kept(folder: &CacheFolder) -> Result<io::Result<[u8; KEY_BYTES]>, CacheError> {
    if let Some(key) = read(folder)? {
        return Ok(Ok(key));
    }
    match make(folder) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        Err(error) => return Ok(Err(error)),
    }
    Ok(read(folder)?.ok_or_else(|| io::Error::other("the key was deleted at once")))
}

fn read(folder: &CacheFolder) -> Result<Option<[u8; KEY_BYTES]>, CacheError> {
    let wrong = |what: String| CacheError::Key { path: folder.path().join(FILE), what };
    let mut file = match folder.open_file(FILE) {
        Ok(Found::Own { file, .. }) => file,
        Ok(Found::Absent) => return Ok(None),
        Ok(Found::Foreign(what)) => return Err(wrong(what)),
        Err(error) => return Err(wrong(format!("it cannot be opened: {error}"))),
    };
    if is_readable_by_others(&file).map_err(|error| wrong(error.to_string()))? {
        return Err(wrong("others may read it".to_owned()));
    }
    let mut key = [0; KEY_BYTES];
    let mut rest = [0; 1];
    match file.read_exact(&mut key).and_then(|()| file.read(&mut rest)) {
        Ok(0) => Ok(Some(key)),
        Ok(_) => Err(wrong(format!("it has more than {KEY_BYTES} bytes"))),
        Err(error) => Err(wrong(format!("{KEY_BYTES} bytes cannot be read from it: {error}"))),
    }
}

fn make(folder: &CacheFolder) -> io::Result<()> {
    let key: [u8; KEY_BYTES] = random()?;
    let mut new = folder.create()?;
    new.file().write_all(&key)?;
    // The host can make an entry again, but not the key: it must survive a loss of power.
    new.file().sync_all()?;
    new.link(FILE)
}
