//! A controller under measurement: its account, its programs, and their start and end.

use std::fmt;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result};
use innkeeper_cluster_tests::stage::{HOST, SOON, operator_program, root};
use innkeeper_cluster_tests::{AuditFilter, Stage, eventually};
use innkeeper_controlplane::{Process, Watchdog, free_address};
use serde::{Deserialize, Serialize};
use serde_json::json;
use tempfile::TempDir;

use crate::figures::{Usage, usage};

/// Primaries that each controller reconciles at the same time: the default of Innkeeper.
const MAX_CONCURRENT_RECONCILES: &str = "8";

/// How long a controller may take to end after SIGTERM.
const END: Duration = Duration::from_secs(20);

/// Which controller is measured.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, clap::ValueEnum,
)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Peer {
    Innkeeper,
    ControllerRuntime,
    KubeRs,
    Metacontroller,
}

impl Peer {
    /// All, in the order of the tables.
    pub(crate) const ALL: [Self; 4] =
        [Self::Innkeeper, Self::ControllerRuntime, Self::KubeRs, Self::Metacontroller];

    /// Those whose programs are in a folder, and Innkeeper.
    pub(crate) fn built(programs: &Path) -> Vec<Self> {
        let is_built =
            |peer: &Self| *peer == Self::Innkeeper || programs.join(peer.name()).exists();
        Self::ALL.into_iter().filter(is_built).collect()
    }

    /// The name of its program and its ServiceAccount.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Innkeeper => "innkeeper",
            Self::ControllerRuntime => "controller-runtime",
            Self::KubeRs => "kube-rs",
            Self::Metacontroller => "metacontroller",
        }
    }
}

impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A controller that is installed on a control plane. Its processes end when it is dropped.
pub(crate) struct Controller {
    /// The user of its requests, as the audit log names it.
    pub(crate) user: String,
    commands: Vec<(&'static str, Command)>,
    processes: Vec<Process>,
    watchdog: Watchdog,
    folder: TempDir,
}

impl Controller {
    /// Installs a controller of the Benches of a namespace: its CRDs, its account and its rights.
    /// It does not run yet.
    ///
    /// # Errors
    /// If the API server refuses an object, or a program does not exist.
    pub(crate) async fn install(
        peer: Peer,
        stage: &Stage,
        programs: &Path,
        namespace: &str,
    ) -> Result<Self> {
        let folder = tempfile::Builder::new().prefix("innkeeper-peer-").tempdir()?;
        let watchdog = Watchdog::start(folder.path())?;
        let (user, commands) = if peer == Peer::Innkeeper {
            (HOST.to_owned(), innkeeper(stage, namespace).await?)
        } else {
            let kubeconfig = folder.path().join("kubeconfig");
            account(stage, peer, &kubeconfig).await?;
            let user = format!("system:serviceaccount:peers:{peer}");
            (user, peer_commands(stage, peer, programs, &kubeconfig).await?)
        };
        Ok(Self { user, commands, processes: Vec::new(), watchdog, folder })
    }

    /// Starts the controller, and waits until it watches Benches.
    ///
    /// # Errors
    /// If a program ends, with the end of its log.
    pub(crate) async fn start(&mut self, stage: &Stage) -> Result<()> {
        let audit = stage.plane.audit()?;
        let mark = audit.mark()?;
        for (name, command) in &mut self.commands {
            let none: [&str; 0] = [];
            let process = Process::spawn(name, command, none, self.folder.path())?;
            self.watchdog.guard(process.id())?;
            self.processes.push(process);
        }
        let filter = AuditFilter::new().user(&self.user).verb("watch").resource("benches");
        eventually("the controller watches Benches", SOON, async || {
            self.processes.iter_mut().try_for_each(Process::check)?;
            let watches = !audit.since(mark, &filter)?.is_empty();
            Ok(if watches { Ok(()) } else { Err("no watch in the audit log".to_owned()) })
        })
        .await
    }

    /// Ends the controller with SIGTERM.
    ///
    /// # Errors
    /// If the watchdog has ended.
    pub(crate) fn stop(&mut self) -> Result<()> {
        while let Some(mut process) = self.processes.pop() {
            self.watchdog.release(process.id())?;
            process.end(END);
        }
        Ok(())
    }

    /// What all its processes have used until now.
    ///
    /// # Errors
    /// If a process has ended.
    pub(crate) fn usage(&self) -> Result<Usage> {
        self.processes.iter().try_fold(Usage::default(), |sum, process| {
            Ok(sum + usage(process.id()).with_context(|| process.name().to_owned())?)
        })
    }
}

impl Drop for Controller {
    fn drop(&mut self) {
        for process in &mut self.processes {
            process.kill();
        }
    }
}

/// Installs the module of the Benches, whose guest brings the CRD.
async fn innkeeper(stage: &Stage, namespace: &str) -> Result<Vec<(&'static str, Command)>> {
    let spec = json!({"allowedCRDGroups": ["bench.innkeeper.dev"], "namespaces": [namespace]});
    stage.module("bench", "bench-guest", &spec).await?;
    let mut command = Command::new(operator_program()?);
    let bind = free_address(Ipv4Addr::LOCALHOST)?;
    command.args(["run", "--leader-elect=false", "--bind"]).arg(bind.to_string());
    command.args(["--max-concurrent-reconciles", MAX_CONCURRENT_RECONCILES]);
    command.env("KUBECONFIG", stage.kubeconfig());
    command.envs(stage.host_options(stage.kubeconfig()).await?.environment);
    Ok(vec![("innkeeper", command)])
}

/// Creates the CRD, the accounts and the rights of the peers, and writes a kubeconfig of one.
async fn account(stage: &Stage, peer: Peer, kubeconfig: &Path) -> Result<()> {
    install(stage, &root().join("guests/examples/bench/crd.json")).await?;
    install(stage, &source().join("rbac.yaml")).await?;
    let server = stage.plane.anonymous_kubeconfig()?;
    stage.admin.account_kubeconfig(server, ("peers", peer.name()), kubeconfig).await
}

/// The commands of a peer, in the order of their start.
async fn peer_commands(
    stage: &Stage,
    peer: Peer,
    programs: &Path,
    kubeconfig: &Path,
) -> Result<Vec<(&'static str, Command)>> {
    let mut command = Command::new(programs.join(peer.name()));
    command.env("KUBECONFIG", kubeconfig);
    let mut commands = Vec::new();
    if peer == Peer::Metacontroller {
        install(stage, &programs.join("metacontroller-crds.yaml")).await?;
        let address = free_address(Ipv4Addr::LOCALHOST)?;
        let mut hook = Command::new(programs.join("metacontroller-hook"));
        hook.arg(format!("--address={address}"));
        commands.push(("metacontroller-hook", hook));
        let controller = read(&source().join("metacontroller/controller.yaml"))?;
        let url = format!("http://{address}/sync");
        stage.admin.apply(&controller.replace("HOOK", &url)).await?;
        // Its defaults are 5 requests a second and 5 workers.
        command.args(["--client-go-qps=1000", "--client-go-burst=1000"]);
        command.args(["--workers", MAX_CONCURRENT_RECONCILES]);
        command.args(["--metrics-address=127.0.0.1:0", "--health-probe-bind-address=0"]);
    } else {
        command.args(["--max-concurrent-reconciles", MAX_CONCURRENT_RECONCILES]);
    }
    commands.push((peer.name(), command));
    Ok(commands)
}

/// Applies the objects of a file, and waits until its CRDs are served.
async fn install(stage: &Stage, path: &Path) -> Result<()> {
    for object in stage.admin.apply(&read(path)?).await? {
        if object["kind"] == "CustomResourceDefinition" {
            stage.admin.until_established(&object).await?;
        }
    }
    Ok(())
}

fn read(path: &Path) -> Result<String> {
    std::fs::read_to_string(path).with_context(|| path.display().to_string())
}

/// The sources of the peers.
fn source() -> PathBuf {
    root().join("tests/bench/peers")
}
