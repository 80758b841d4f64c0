//! The cluster against which the specs run: the simulator, or a real control plane.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use innkeeper_controlplane::{ControlPlane, Options, Programs};
use innkeeper_simulator::{Controllers, Simulator};
use innkeeper_simulator_server::{KubeconfigFile, Server};
use jiff::{SignedDuration, Timestamp};
use tempfile::TempDir;
use tokio::runtime::Runtime;

/// How often old versions expire. A spec waits for it, with the default up to ten minutes.
const COMPACTION_SECONDS: i64 = 30;

/// Which cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Which {
    Simulator,
    Control,
}

impl Which {
    /// The name of the folder of its outputs.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Simulator => "simulator",
            Self::Control => "control",
        }
    }
}

/// A running cluster. It ends when this value is dropped.
pub(crate) struct Side {
    kubeconfig: PathBuf,
    kubectl: PathBuf,
    _cluster: Cluster,
    folder: TempDir,
}

/// What must live as long as its cluster is used.
enum Cluster {
    Real(#[expect(dead_code, reason = "the control plane ends when it is dropped")] ControlPlane),
    Simulated { server: Option<Server>, runtime: Runtime, _kubeconfig: KubeconfigFile },
}

impl Drop for Cluster {
    fn drop(&mut self) {
        if let Self::Simulated { server, runtime, .. } = self
            && let Some(server) = server.take()
        {
            runtime.block_on(server.stop());
        }
    }
}

impl Side {
    /// Starts the cluster with all its controllers. `say` gets a line before something takes long.
    ///
    /// # Errors
    /// If the cluster does not start, or there is no kubectl.
    pub(crate) fn start(which: Which, say: &mut dyn FnMut(&str)) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let kubectl = folder.path().join("kubectl");
        // The program of the control plane takes its own name for the name of its part.
        symlink(Programs::find(say)?.command("kubectl")?.get_program(), &kubectl)
            .context("linking kubectl")?;
        let (cluster, kubeconfig) = match which {
            Which::Simulator => simulated(&folder.path().join("kubeconfig"))?,
            Which::Control => real(say)?,
        };
        Ok(Self { kubeconfig, kubectl, _cluster: cluster, folder })
    }

    /// The kubeconfig of an administrator.
    pub(crate) fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    /// A folder that lives as long as the cluster.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// kubectl, as one program.
    pub(crate) fn kubectl(&self) -> &Path {
        &self.kubectl
    }
}

fn simulated(kubeconfig: &Path) -> Result<(Cluster, PathBuf)> {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let simulator = Simulator::with(1, Timestamp::now(), Controllers::all());
    simulator.compact_every(SignedDuration::from_secs(COMPACTION_SECONDS));
    let options = innkeeper_simulator_server::Options::default();
    let server = runtime.block_on(Server::start(simulator, &options))?;
    let file = server.write_kubeconfig(kubeconfig)?;
    let cluster = Cluster::Simulated { server: Some(server), runtime, _kubeconfig: file };
    Ok((cluster, kubeconfig.to_owned()))
}

fn real(say: &mut dyn FnMut(&str)) -> Result<(Cluster, PathBuf)> {
    let options = Options {
        controller_manager: true,
        apiserver_flags: vec![format!("--etcd-compaction-interval={COMPACTION_SECONDS}s")],
        ..Options::default()
    };
    let plane = ControlPlane::start_and_tell(&options, say)?;
    let kubeconfig = plane.kubeconfig().to_owned();
    Ok((Cluster::Real(plane), kubeconfig))
}
