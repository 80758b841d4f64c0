//! How much disk space a run of the suite takes.

use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;

use anyhow::{Context as _, Result};
use innkeeper_node::disk::{free, gigabytes};

use crate::command::root;

/// Less than this free, in bytes, and a linker or a test may have failed for want of space: a
/// linker then ends with a bus error and names no file.
const SCARCE: u64 = 2_000_000_000;

/// The free space where the suite writes most: build results, and temporary files of tests.
pub(super) struct Disk {
    volumes: Vec<Volume>,
}

struct Volume {
    folder: PathBuf,
    device: u64,
    at_start: u64,
    least: u64,
}

impl Disk {
    /// As it is now.
    ///
    /// # Errors
    /// If a folder cannot be read.
    pub(super) fn new() -> Result<Self> {
        let mut volumes: Vec<Volume> = Vec::new();
        for folder in [root(), std::env::temp_dir()] {
            let metadata = folder.metadata();
            let device = metadata.with_context(|| folder.display().to_string())?.dev();
            if volumes.iter().all(|known| known.device != device) {
                let free = free(&folder)?;
                volumes.push(Volume { folder, device, at_start: free, least: free });
            }
        }
        Ok(Self { volumes })
    }

    /// Looks again. A file system that cannot be read keeps its figure.
    pub(super) fn look(&mut self) {
        for volume in &mut self.volumes {
            volume.least = free(&volume.folder).map_or(volume.least, |now| now.min(volume.least));
        }
    }

    /// What is free where.
    pub(super) fn start(&self) -> Vec<String> {
        let line = |volume: &Volume| {
            let free = gigabytes(volume.at_start);
            format!("{free} of disk space are free in {}", volume.folder.display())
        };
        self.volumes.iter().map(line).collect()
    }

    /// Where space was scarce during the run: a likely reason of failures that do not name it.
    pub(super) fn scarce(&self) -> Vec<String> {
        let scarce = self.volumes.iter().filter(|volume| volume.least < SCARCE);
        let line = |volume: &Volume| {
            let (least, folder) = (gigabytes(volume.least), volume.folder.display());
            format!(
                "disk space: only {least} were free in {folder}, which may be why the steps above \
                 failed; remove files there, or set CARGO_TARGET_DIR or TMPDIR to another disk"
            )
        };
        scarce.map(line).collect()
    }

    /// What was least free, and where.
    pub(super) fn end(&self) -> Vec<String> {
        let line = |volume: &Volume| {
            let (least, used) = (volume.least, volume.at_start.saturating_sub(volume.least));
            let (least, used) = (gigabytes(least), gigabytes(used));
            let folder = volume.folder.display();
            format!("disk space in {folder}: {used} used after the start, at least {least} free")
        };
        self.volumes.iter().map(line).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with_least(least: u64) -> Disk {
        let volume = Volume { folder: PathBuf::from("/data"), device: 1, at_start: least, least };
        Disk { volumes: vec![volume] }
    }

    #[test]
    fn scarce_space_is_named_with_its_folder() {
        assert_eq!(with_least(SCARCE).scarce(), Vec::<String>::new());
        let lines = with_least(SCARCE - 1).scarce();
        assert!(lines[0].contains("only 1.9 GB were free in /data"), "{lines:?}");
    }
}
