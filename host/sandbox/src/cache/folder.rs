//! The folder of a code cache. The host checks and uses it by one open descriptor, so another
//! folder that gets its name later changes nothing.

use std::fs::{DirBuilder, File};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{
    self, AtFlags, Dir, FileType, Mode, OFlags, Stat, Timespec, Timestamps, UTIME_NOW, UTIME_OMIT,
};
use rustix::io::Errno;
use rustix::process::geteuid;

/// The suffix of a file that a host is writing, and the number of random bytes before it.
const NEW_SUFFIX: &str = ".new";
const NEW_RANDOM_BYTES: usize = 16;

/// The mode bits by which others than the owner may write.
const OTHERS_WRITE: u32 = 0o022;
/// The mode bits by which others than the owner may do anything.
const OTHERS: u32 = 0o077;

/// The reason why the host does not use a folder as a code cache.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CacheError {
    /// The folder does not exist and cannot be made, or cannot be entered.
    #[error("the folder {} for compiled code cannot be used: {error}", .path.display())]
    Folder {
        /// The folder.
        path: PathBuf,
        /// The error of the system call.
        error: io::Error,
    },
    /// Another user could put code into the folder, which would run as this host.
    #[error(
        "the folder {} for compiled code {what}, so others could put code there that runs as \
         this host: give one that does not exist yet (it is made, also within that one), or \
         `chown` it to this user and `chmod 700` it", .path.display()
    )]
    Unsafe {
        /// The folder.
        path: PathBuf,
        /// The problem.
        what: String,
    },
    /// Others may know or have changed the key in the folder.
    #[error(
        "the key {} of the compiled code is not used: {what} (delete it, and a new one is made; \
         all code is then compiled once more)", .path.display()
    )]
    Key {
        /// The key's file.
        path: PathBuf,
        /// The problem.
        what: String,
    },
}

/// A folder that only this user can write to.
#[derive(Debug)]
pub struct CacheFolder {
    path: PathBuf,
    fd: OwnedFd,
}

/// The file of a name.
pub(super) enum Found {
    Absent,
    /// A regular file of this user to which no other user can write.
    Own {
        file: File,
        bytes: u64,
    },
    /// Another file, with the reason.
    Foreign(String),
}

/// A file of the folder.
pub(super) struct Listed {
    pub(super) name: String,
    pub(super) bytes: u64,
    pub(super) modified_s: i64,
    pub(super) modified_ns: u64,
}

impl CacheFolder {
    /// Opens a folder, and makes it (for this user alone) if it does not exist.
    ///
    /// # Errors
    /// [`CacheError::Folder`] if the folder can be neither opened nor made, [`CacheError::Unsafe`]
    /// if it belongs to another user or others may write to it.
    pub fn open(path: &Path) -> Result<Self, CacheError> {
        let unusable = |error: io::Error| CacheError::Folder { path: path.to_owned(), error };
        DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(unusable)?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let fd = fs::open(path, flags, Mode::empty()).map_err(|error| unusable(error.into()))?;
        let stat = fs::fstat(&fd).map_err(|error| unusable(error.into()))?;
        match foreign(&stat) {
            None => Ok(Self { path: path.to_owned(), fd }),
            Some(what) => Err(CacheError::Unsafe { path: path.to_owned(), what }),
        }
    }

    /// The path that the caller gave.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Opens a file for reading, and checks its owner and mode.
    pub(super) fn open_file(&self, name: &str) -> io::Result<Found> {
        // The open of a pipe must not block.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = match fs::openat(&self.fd, name, flags, Mode::empty()) {
            Ok(fd) => File::from(fd),
            Err(Errno::NOENT) => return Ok(Found::Absent),
            Err(Errno::LOOP) => return Ok(Found::Foreign("it is a symbolic link".to_owned())),
            Err(error) => return Err(error.into()),
        };
        let stat = fs::fstat(&file)?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            return Ok(Found::Foreign("it is no regular file".to_owned()));
        }
        Ok(match foreign(&stat) {
            Some(what) => Found::Foreign(format!("it {what}")),
            None => Found::Own { file, bytes: size(&stat) },
        })
    }

    /// Creates a file that is deleted unless it gets a name.
    pub(super) fn create(&self) -> io::Result<New<'_>> {
        let name = format!("{}{NEW_SUFFIX}", hex::encode(random::<NEW_RANDOM_BYTES>()?));
        let flags =
            OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        // No process opens it for writing again, not even this one.
        let fd = fs::openat(&self.fd, &name, flags, Mode::RUSR)?;
        Ok(New { folder: self, file: File::from(fd), name })
    }

    /// Deletes a file; a missing one is no error.
    pub(super) fn delete(&self, name: &str) -> io::Result<()> {
        match fs::unlinkat(&self.fd, name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Deletes a file if it belongs to this user.
    pub(super) fn delete_ours(&self, name: &str) -> io::Result<()> {
        let stat = fs::statat(&self.fd, name, AtFlags::SYMLINK_NOFOLLOW)?;
        if stat.st_uid == geteuid().as_raw() { self.delete(name) } else { Ok(()) }
    }

    /// All files, in no order, without those that are deleted during the call.
    pub(super) fn list(&self) -> io::Result<Vec<Listed>> {
        let mut all = Vec::new();
        for found in Dir::read_from(&self.fd)? {
            let found = found?;
            // The names of the host's own files are ASCII.
            let Ok(name) = found.file_name().to_str() else { continue };
            let stat = match fs::statat(&self.fd, name, AtFlags::SYMLINK_NOFOLLOW) {
                Ok(stat) => stat,
                Err(Errno::NOENT) => continue,
                Err(error) => return Err(error.into()),
            };
            if FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile {
                all.push(Listed {
                    name: name.to_owned(),
                    bytes: size(&stat),
                    modified_s: stat.st_mtime,
                    modified_ns: stat.st_mtime_nsec,
                });
            }
        }
        Ok(all)
    }
}

/// A file that this host is writing.
pub(super) struct New<'a> {
    folder: &'a CacheFolder,
    file: File,
    name: String,
}

impl New<'_> {
    pub(super) fn file(&mut self) -> &mut File {
        &mut self.file
    }

    /// The time of the last write, in seconds, by the clock of the file system.
    pub(super) fn modified_s(&self) -> io::Result<i64> {
        Ok(fs::fstat(&self.file)?.st_mtime)
    }

    /// Gives the file its name, and replaces the one that has it.
    pub(super) fn rename(self, name: &str) -> io::Result<()> {
        let fd = &self.folder.fd;
        Ok(fs::renameat(fd, &self.name, fd, name)?)
    }

    /// Gives the file its name, which no other file may have.
    pub(super) fn link(self, name: &str) -> io::Result<()> {
        let fd = &self.folder.fd;
        Ok(fs::linkat(fd, &self.name, fd, name, AtFlags::empty())?)
    }
}

impl Drop for New<'_> {
    fn drop(&mut self) {
        // After a rename there is no file. `make_room` deletes one that stays here.
        let _ = self.folder.delete(&self.name);
    }
}

/// Random bytes of the system.
pub(super) fn random<const BYTES: usize>() -> io::Result<[u8; BYTES]> {
    let mut random = [0; BYTES];
    getrandom::fill(&mut random).map_err(|error| io::Error::other(error.to_string()))?;
    Ok(random)
}

/// Whether a file with this name is one that a host is writing.
pub(super) fn is_new(name: &str) -> bool {
    name.strip_suffix(NEW_SUFFIX)
        .is_some_and(|digits| hex::decode_to_slice(digits, &mut [0; NEW_RANDOM_BYTES]).is_ok())
}

/// Sets the time of a file's last use to now.
pub(super) fn touch(file: &File) -> io::Result<()> {
    let at = |tv_nsec| Timespec { tv_sec: 0, tv_nsec };
    let times = Timestamps { last_access: at(UTIME_OMIT), last_modification: at(UTIME_NOW) };
    Ok(fs::futimens(file, &times)?)
}

/// Whether others than this user may read or change a file.
pub(super) fn is_readable_by_others(file: impl AsFd) -> io::Result<bool> {
    Ok(fs::fstat(file)?.st_mode & OTHERS != 0)
}

/// The reason why others than this user can write to a file; `None` if they cannot.
fn foreign(stat: &Stat) -> Option<String> {
    let us = geteuid().as_raw();
    if stat.st_uid != us {
        return Some(format!("belongs to user {}, not to {us}", stat.st_uid));
    }
    (stat.st_mode & OTHERS_WRITE != 0)
        .then(|| format!("may be written to by others (mode {:o})", stat.st_mode & 0o7777))
}

fn size(stat: &Stat) -> u64 {
    u64::try_from(stat.st_size).unwrap_or(0)
}
