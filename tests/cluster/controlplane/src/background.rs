//! A control plane that outlives the process that started it.

use std::fs;
use std::path::{Path, PathBuf};

use crate::options::Options;
use crate::process::{self};
use crate::running::Own;
use crate::{Error, Programs, Watchdog};

/// A control plane that outlives the process that started it; its state lies in a
/// folder that names it.
#[derive(Debug)]
pub struct Background {
    folder: PathBuf,
}

impl Background {
    /// The control plane of the user, in the folder `cluster` of Innkeeper's cache folder.
    ///
    /// # Errors
    /// If the environment names no home and no cache folder.
    pub fn of_user() -> Result<Self, Error> {
        Ok(Self { folder: crate::programs::cache_folder()?.join("cluster") })
    }

    /// The one whose state lies in `folder`.
    pub fn at(folder: &Path) -> Self {
        Self { folder: folder.to_owned() }
    }

    /// Where its state lies.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Path of the admin's kubeconfig, which exists while the control plane is up.
    pub fn kubeconfig(&self) -> PathBuf {
        self.folder.join("kubeconfig")
    }

    /// Whether all its processes run.
    pub fn is_up(&self) -> bool {
        let pids = self.pids();
        !pids.is_empty() && pids.iter().all(|pid| self.is_ours(*pid))
    }

    /// Starts it, or leaves it if it is up. What is left of a broken one is ended first.
    ///
    /// # Errors
    /// If a broken one cannot be removed, or the new one does not start.
    pub fn up(&self, options: &Options, say: &mut dyn FnMut(&str)) -> Result<(), Error> {
        if self.is_up() {
            return Ok(());
        }
        self.down()?;
        self.start(options, say)
    }

    /// Starts it in its folder, next to what already lies there.
    ///
    /// # Errors
    /// If a program is missing and cannot be built, a file cannot be written, or a program does not
    /// get ready.
    pub fn start(&self, options: &Options, say: &mut dyn FnMut(&str)) -> Result<(), Error> {
        let programs = Programs::find(say)?;
        fs::create_dir_all(&self.folder).map_err(Error::file(&self.folder))?;
        let watchdog = Watchdog::start(&self.folder)?;
        let mut own = Own::start(&programs, options, &self.folder, Some(watchdog))?;
        let pids: Vec<String> =
            own.processes.iter().map(|process| process.id().to_string()).collect();
        let path = self.folder.join("pids");
        fs::write(&path, pids.join("\n")).map_err(Error::file(&path))?;
        // From here on it is on its own.
        own.processes.clear();
        Ok(())
    }

    /// Ends its processes, each by its pid, and removes its folder. Nothing happens if
    /// there is none.
    ///
    /// # Errors
    /// If its folder cannot be removed.
    pub fn down(&self) -> Result<(), Error> {
        let mut pids = self.pids();
        pids.reverse();
        for pid in pids {
            if self.is_ours(pid) {
                process::end(pid, || self.is_ours(pid));
            }
        }
        match fs::remove_dir_all(&self.folder) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(Error::file(&self.folder)(error))
            }
            _ => Ok(()),
        }
    }

    fn pids(&self) -> Vec<u32> {
        let text = fs::read_to_string(self.folder.join("pids")).unwrap_or_default();
        text.lines().filter_map(|line| line.parse().ok()).collect()
    }

    /// Whether `pid` is still the process that was started: its flags name our folder.
    fn is_ours(&self, pid: u32) -> bool {
        let folder = self.folder.display().to_string();
        process::command_line(pid).is_some_and(|line| line.contains(&folder))
    }
}
