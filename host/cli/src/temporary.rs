//! The temporary files of a command that runs for long: they go with a signal, too.

use std::fs;
use std::path::PathBuf;
use std::thread;

use anyhow::{Context as _, anyhow};
use tempfile::TempDir;

use crate::signals::EndSignals;

/// The exit status after a signal, as shells give it for Ctrl-C.
const INTERRUPTED: i32 = 130;

/// How often the command tries to remove the folder while its other threads still write into it.
const ATTEMPTS: usize = 10;

/// The folder of all temporary files that this process makes from now on. The end of the command
/// removes it, and so do Ctrl-C, SIGTERM and SIGHUP, which end the process.
pub(crate) struct TemporaryFolder {
    _folder: TempDir,
}

impl TemporaryFolder {
    /// Makes the folder within the system's one for temporary files.
    ///
    /// # Errors
    /// If it cannot be made, the process has such a folder already, or signals cannot be received.
    pub(crate) fn make() -> anyhow::Result<Self> {
        let folder = tempfile::Builder::new()
            .prefix("innkeeper-")
            .tempdir()
            .context("cannot make a folder for temporary files")?;
        tempfile::env::override_temp_dir(folder.path())
            .map_err(|other| anyhow!("{} is used for temporary files", other.display()))?;
        remove_on_signal(folder.path().to_owned()).context("cannot receive signals")?;
        Ok(Self { _folder: folder })
    }
}

/// Ends the process on a signal, without the folder. A thread of its own waits for the signal: the
/// command may compute for long.
fn remove_on_signal(path: PathBuf) -> std::io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    let mut signals = {
        let _guard = runtime.enter();
        EndSignals::listen()?
    };
    thread::Builder::new().name("signals".into()).spawn(move || {
        runtime.block_on(signals.received());
        for _ in 0..ATTEMPTS {
            if fs::remove_dir_all(&path).is_ok() || !path.exists() {
                break;
            }
        }
        std::process::exit(INTERRUPTED);
    })?;
    Ok(())
}
