//! The command `innkeeper simulate`, as a test runs it.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow, bail};
use innkeeper_controlplane::Watchdog;
use tempfile::TempDir;
use tokio::process::{Child, Command};

use crate::eventually;
use crate::stage::program;

/// Bound on the start of the program.
const START: Duration = Duration::from_mins(1);

/// A simulated cluster on a port, in a process of its own. Killed when dropped.
pub struct SimulatedCluster {
    kubeconfig: PathBuf,
    _child: Child,
    _watchdog: Watchdog,
    _folder: TempDir,
}

impl SimulatedCluster {
    /// Starts one, and waits until it answers.
    ///
    /// # Errors
    /// Also if the program is not built; says how to build it.
    pub async fn start() -> Result<Self> {
        let folder = tempfile::Builder::new().prefix("innkeeper-simulated-").tempdir()?;
        let mut watchdog = Watchdog::start(folder.path())?;
        let kubeconfig = folder.path().join("kubeconfig");
        let program = program()?;
        let mut child = Command::new(&program)
            .arg("simulate")
            .arg("--kubeconfig")
            .arg(&kubeconfig)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .with_context(|| format!("running {}", program.display()))?;
        watchdog
            .guard(child.id().ok_or_else(|| anyhow!("the simulated cluster ended at once"))?)?;
        // The port listens before the file is there, and the file may be there before its text.
        eventually("the simulated cluster has a kubeconfig", START, async || {
            if let Some(status) = child.try_wait()? {
                bail!("the simulated cluster ended ({status})");
            }
            let text = std::fs::read_to_string(&kubeconfig).unwrap_or_default();
            let is_whole = serde_json::from_str::<serde_json::Value>(&text).is_ok();
            Ok(if is_whole { Ok(()) } else { Err("it has none".to_owned()) })
        })
        .await?;
        Ok(Self { kubeconfig, _child: child, _watchdog: watchdog, _folder: folder })
    }

    /// Path of the admin's kubeconfig.
    pub fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }
}
