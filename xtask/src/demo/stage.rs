//! The host, as the demo runs it.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow, bail};
use innkeeper_controlplane::{ControlPlane, Process, Watchdog, tail};
use tempfile::TempDir;

use super::kubectl::Kubectl;
use crate::command::cargo;

/// How long the host may take to end.
const END: Duration = Duration::from_secs(10);
/// Bound on a question about readiness.
const ASK: Duration = Duration::from_secs(2);

/// A running `innkeeper run`. Ended when dropped, and when this program is killed.
pub(super) struct Host {
    process: Process,
    ended: bool,
    address: SocketAddr,
    // After the process, in this order.
    _watchdog: Watchdog,
    folder: TempDir,
}

/// The `innkeeper` program that cargo built.
pub(super) fn program() -> Result<PathBuf> {
    let output = cargo(&["metadata", "--no-deps", "--format-version", "1"]).output()?;
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout)
        .context("cargo metadata gave something unreadable")?;
    let folder = metadata["target_directory"].as_str().context("cargo names no target folder")?;
    let program = Path::new(folder).join("debug/innkeeper");
    if !program.is_file() {
        bail!("{} is missing after the build", program.display());
    }
    Ok(program)
}

impl Host {
    /// Starts it with the rights of the ServiceAccount `innkeeper` and no more, if the
    /// control plane is our own; else with those of the user's kubeconfig.
    pub(super) fn start(program: &Path, plane: &ControlPlane, kubectl: &Kubectl) -> Result<Self> {
        let folder = tempfile::Builder::new().prefix("innkeeper-demo-").tempdir()?;
        let mut watchdog = Watchdog::start(folder.path())?;
        let kubeconfig = match plane.anonymous_kubeconfig() {
            Ok(server) => {
                let create = ["-n", "innkeeper-system", "create", "token", "innkeeper"];
                let token = kubectl.run(&[&create[..], &["--duration", "24h"]].concat())?;
                let path = folder.path().join("kubeconfig");
                server.with_token(token.trim()).write(&path)?;
                path
            }
            Err(_) => plane.kubeconfig().to_owned(),
        };
        let address = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?;
        let mut command = Command::new(program);
        command.env("KUBECONFIG", kubeconfig);
        let listen = address.to_string();
        let arguments = ["run", "--bind", &listen];
        let process = Process::spawn("innkeeper", &mut command, arguments, folder.path())?;
        watchdog.guard(process.id())?;
        Ok(Self { process, ended: false, address, _watchdog: watchdog, folder })
    }

    /// Whether /readyz answers 200.
    pub(super) fn is_ready(&self) -> Result<bool> {
        let Ok(mut socket) = TcpStream::connect_timeout(&self.address, ASK) else {
            return Ok(false);
        };
        socket.set_read_timeout(Some(ASK))?;
        write!(
            socket,
            "GET /readyz HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n",
            self.address
        )?;
        let mut answer = Vec::new();
        // Reading on to the end may fail when the head is there; the head is what counts.
        let _ = socket.read_to_end(&mut answer);
        Ok(answer.starts_with(b"HTTP/1.1 200"))
    }

    /// Its log.
    pub(super) fn log(&self) -> PathBuf {
        self.folder.path().join("innkeeper.log")
    }

    /// `Ok` while it runs.
    pub(super) fn check(&mut self) -> Result<()> {
        Ok(self.process.check()?)
    }

    /// An error with the end of the log.
    pub(super) fn error(&self, what: &str) -> anyhow::Error {
        anyhow!("{what}; the end of the host's log:\n{}", tail(&self.log(), 30))
    }

    /// Ends it as a Deployment would.
    ///
    /// # Errors
    /// If it does not end with success in 10 s.
    pub(super) fn end(&mut self) -> Result<()> {
        self.ended = true;
        if !self.process.end(END) {
            return Err(self.error("the host did not end well"));
        }
        Ok(())
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        if !self.ended {
            self.process.end(END);
        }
    }
}
