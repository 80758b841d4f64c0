//! Components of earlier builds of this user, also in other clones. A component has the digest of
//! all its inputs in its name, so that only the same inputs find it.

use std::fs::{self, File};
use std::io::{ErrorKind, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use anyhow::{Context as _, Result};
use flate2::read::GzDecoder;

use super::{componentize, inputs};
use crate::progress::complain;
use crate::user_folder::user_folder;

/// The most bytes of all kept components. Those of one revision have about 25 MB.
const BYTES_MAX: u64 = 256 << 20;

/// The most bytes of a component that is restored.
const COMPONENT_BYTES_MAX: u64 = 256 << 20;

/// The user's kept components, each compressed by gzip: its checksum finds a damaged file.
pub(super) struct Kept {
    /// None if nothing is kept.
    folder: Option<PathBuf>,
}

impl Kept {
    /// Those of the user's cache. Says if nothing can be kept there.
    pub(super) fn of_user() -> Self {
        let folder = user_folder("components");
        let complain = |error: &_| complain(&format!("guests: no component is kept: {error:#}"));
        Self { folder: folder.inspect_err(complain).ok() }
    }

    /// Writes the component that was made of these inputs into a folder, with its stamp, if it is
    /// kept; says whether it is. Removes a file that is damaged.
    ///
    /// # Errors
    /// If the component cannot be written, or a damaged file cannot be removed.
    pub(super) fn restore(&self, out: &Path, name: &str, digest: &str) -> Result<bool> {
        let Some(path) = self.path(name, digest) else { return Ok(false) };
        let Ok(compressed) = fs::read(&path) else { return Ok(false) };
        let mut bytes = Vec::new();
        let mut decoder = GzDecoder::new(&*compressed).take(COMPONENT_BYTES_MAX);
        if decoder.read_to_end(&mut bytes).is_err() {
            fs::remove_file(&path).with_context(|| format!("cannot remove {}", path.display()))?;
            return Ok(false);
        }
        innkeeper_toolchain::componentize::write(&componentize::path(out, name), &bytes)?;
        inputs::record(out, name, digest, compressed.len() as u64)?;
        // The time of its last use. If it cannot be set, the component is removed earlier.
        let file = File::options().append(true).open(&path);
        let _ = file.map(|file| file.set_modified(SystemTime::now()));
        Ok(true)
    }

    /// Stamps a new component of a folder, and keeps it. Says if it cannot be kept.
    ///
    /// # Errors
    /// If the component cannot be read, or its stamp cannot be written.
    pub(super) fn record(&self, out: &Path, name: &str, digest: &str) -> Result<()> {
        let path = componentize::path(out, name);
        let bytes = fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let compressed = componentize::gzip(&bytes)?;
        if let Err(error) = self.keep(name, digest, &compressed, BYTES_MAX) {
            complain(&format!("guests: the component {name} is not kept: {error:#}"));
        }
        inputs::record(out, name, digest, compressed.len() as u64)
    }

    /// Writes a compressed component, then removes those that were not used for longest until all
    /// have at most `bytes_max`.
    fn keep(&self, name: &str, digest: &str, compressed: &[u8], bytes_max: u64) -> Result<()> {
        let Some(folder) = &self.folder else { return Ok(()) };
        let Some(path) = self.path(name, digest) else { return Ok(()) };
        let mut file = tempfile::NamedTempFile::new_in(folder)?;
        file.write_all(compressed)?;
        file.persist(path)?;
        bound(folder, bytes_max)
    }

    fn path(&self, name: &str, digest: &str) -> Option<PathBuf> {
        let digest: String = digest.chars().take(32).collect();
        Some(self.folder.as_ref()?.join(format!("{name}-{digest}.wasm.gz")))
    }
}

fn bound(folder: &Path, bytes_max: u64) -> Result<()> {
    let mut files = Vec::new();
    for entry in folder.read_dir()? {
        let entry = entry?;
        // Another process may have removed it.
        if let Ok(metadata) = entry.metadata() {
            files.push((metadata.modified()?, metadata.len(), entry.path()));
        }
    }
    let mut total: u64 = files.iter().map(|(_, bytes, _)| bytes).sum();
    files.sort();
    for (_, bytes, path) in files {
        if total <= bytes_max {
            break;
        }
        match fs::remove_file(&path) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error.into()),
            _ => total -= bytes,
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const DIGEST: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

    fn kept(folder: &tempfile::TempDir) -> Kept {
        Kept { folder: Some(folder.path().to_owned()) }
    }

    /// Builds a component in a clone.
    fn build(clone: &tempfile::TempDir, name: &str, bytes: &[u8]) {
        fs::write(componentize::path(clone.path(), name), bytes).unwrap();
    }

    #[test]
    fn component_is_restored_in_another_clone_for_the_same_inputs_only() {
        let [folder, first, second] = [(); 3].map(|()| tempfile::tempdir().unwrap());
        let kept = kept(&folder);
        build(&first, "a", b"component");
        assert!(!kept.restore(second.path(), "a", DIGEST).unwrap());
        kept.record(first.path(), "a", DIGEST).unwrap();
        let size = inputs::current(first.path(), "a", DIGEST).unwrap();
        assert!(!kept.restore(second.path(), "b", DIGEST).unwrap());
        assert!(!kept.restore(second.path(), "a", &DIGEST.replace('0', "1")).unwrap());
        assert_eq!(second.path().read_dir().unwrap().count(), 0);
        assert!(kept.restore(second.path(), "a", DIGEST).unwrap());
        assert_eq!(fs::read(componentize::path(second.path(), "a")).unwrap(), b"component");
        assert_eq!(inputs::current(second.path(), "a", DIGEST), Some(size));
    }

    #[test]
    fn damaged_component_is_not_restored_and_is_removed() {
        let [folder, clone] = [(); 2].map(|()| tempfile::tempdir().unwrap());
        let kept = kept(&folder);
        let good = componentize::gzip(&[b'c'; 1000]).unwrap();
        let mut changed = good.clone();
        let crc = changed.len() - 6;
        changed[crc] ^= 1;
        for damaged in [&good[..good.len() - 1], &good[..4], &[], b"not gzip", &changed] {
            kept.keep("a", DIGEST, damaged, BYTES_MAX).unwrap();
            assert!(!kept.restore(clone.path(), "a", DIGEST).unwrap(), "{damaged:?}");
            assert_eq!(clone.path().read_dir().unwrap().count(), 0);
            assert!(!kept.path("a", DIGEST).unwrap().exists());
        }
        kept.keep("a", DIGEST, &good, BYTES_MAX).unwrap();
        assert!(kept.restore(clone.path(), "a", DIGEST).unwrap());
    }

    #[test]
    fn components_that_were_not_used_for_longest_are_removed() {
        let [folder, clone] = [(); 2].map(|()| tempfile::tempdir().unwrap());
        let kept = kept(&folder);
        let compressed = componentize::gzip(b"component").unwrap();
        let bytes = compressed.len() as u64;
        for (age, name) in ["a", "b", "c"].iter().enumerate() {
            kept.keep(name, DIGEST, &compressed, BYTES_MAX).unwrap();
            let file = File::options().append(true).open(kept.path(name, DIGEST).unwrap());
            let hours = Duration::from_hours(1) * u32::try_from(age + 1).unwrap();
            file.unwrap().set_modified(SystemTime::now() - hours).unwrap();
        }
        kept.restore(clone.path(), "c", DIGEST).unwrap();
        kept.keep("d", DIGEST, &compressed, 3 * bytes).unwrap();
        let left = ["a", "b", "c", "d"].map(|name| kept.path(name, DIGEST).unwrap().exists());
        assert_eq!(left, [true, false, true, true]);
    }

    #[test]
    fn component_is_stamped_when_nothing_can_be_kept() {
        let [folder, clone] = [(); 2].map(|()| tempfile::tempdir().unwrap());
        build(&clone, "a", b"component");
        for folder in [None, Some(folder.path().join("missing"))] {
            let kept = Kept { folder };
            kept.record(clone.path(), "a", DIGEST).unwrap();
            assert!(inputs::current(clone.path(), "a", DIGEST).is_some());
            assert!(!kept.restore(clone.path(), "a", DIGEST).unwrap());
        }
    }
}
