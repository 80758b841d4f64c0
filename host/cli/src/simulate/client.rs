//! The process of the client under test.

use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context as _, bail};
use innkeeper_faults::{Restart, ServedFaults};
use innkeeper_simulator_server::SimulatorService;
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::process::{Child, Command};
use tokio::sync::mpsc::UnboundedReceiver;

use crate::out;

/// The time after which a client that has ended by itself starts again.
const BACKOFF: Duration = Duration::from_secs(1);

/// A client under test.
pub(crate) struct Client<'a> {
    command: &'a str,
    /// The kubeconfig for each API server, the first one at the beginning.
    kubeconfigs: Vec<(String, PathBuf)>,
}

/// A run of the client. Dropping this value kills it with all its processes.
struct Run {
    child: Child,
    group: Option<Pid>,
}

impl Drop for Run {
    fn drop(&mut self) {
        if let Some(group) = self.group {
            // The processes may have ended already.
            let _ = kill_process_group(group, Signal::KILL);
        }
    }
}

impl<'a> Client<'a> {
    /// A client that a command runs.
    pub(crate) fn new(command: &'a str, kubeconfigs: Vec<(String, PathBuf)>) -> Self {
        Self { command, kubeconfigs }
    }

    /// Runs the client, and starts it again where the plan requires it or it ends by itself.
    ///
    /// # Errors
    /// If it cannot be started, or standard output is closed.
    pub(crate) async fn run(
        &self,
        served: &ServedFaults<SimulatorService>,
        restarts: &mut UnboundedReceiver<Restart>,
    ) -> anyhow::Result<()> {
        let mut api_server = self.kubeconfigs[0].0.clone();
        loop {
            served.client_started(&api_server);
            let mut run = self.start(&api_server)?;
            let restart = tokio::select! {
                biased;
                restart = restarts.recv() => restart,
                status = run.child.wait() => {
                    out::line(format_args!("the client has ended: {}", status?))?;
                    // The group may belong to another process from here on.
                    run.group = None;
                    tokio::select! {
                        restart = restarts.recv() => restart,
                        () = tokio::time::sleep(BACKOFF) => continue,
                    }
                }
            };
            let Some(restart) = restart else { bail!("nobody injects faults any more") };
            drop(run);
            api_server = restart.api_server;
        }
    }

    fn start(&self, server: &str) -> anyhow::Result<Run> {
        let kubeconfig = self.kubeconfigs.iter().find(|(name, _)| name == server);
        let (_, kubeconfig) = kubeconfig.context("the plan names an unknown API server")?;
        let mut command = Command::new("sh");
        // Standard output has the faults.
        let line = format!("exec >&2\n{}", self.command);
        command.arg("-c").arg(line).env("KUBECONFIG", kubeconfig);
        command.stdin(Stdio::null()).process_group(0);
        let child = command.spawn().context("cannot start the client under test with `sh`")?;
        let group = child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
        Ok(Run { child, group })
    }
}
