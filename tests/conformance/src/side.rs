//! The cluster against which the specs run: the simulator, or a real control plane.

use std::any::Any;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use innkeeper_controlplane::{ControlPlane, Options, Programs};
use innkeeper_simulator::{Controllers, Simulator};
use innkeeper_simulator_server::BlockingServer;
use jiff::{SignedDuration, Timestamp};
use tempfile::TempDir;

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
    /// It ends when it is dropped.
    _cluster: Box<dyn Any + Send + Sync>,
    folder: TempDir,
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

fn simulated(kubeconfig: &Path) -> Result<(Box<dyn Any + Send + Sync>, PathBuf)> {
    let simulator = Simulator::with(1, Timestamp::now(), Controllers::all());
    simulator.compact_every(SignedDuration::from_secs(COMPACTION_SECONDS));
    let options = innkeeper_simulator_server::Options::default();
    let server = BlockingServer::start(simulator, &options, kubeconfig)?;
    Ok((Box::new(server), kubeconfig.to_owned()))
}

fn real(say: &mut dyn FnMut(&str)) -> Result<(Box<dyn Any + Send + Sync>, PathBuf)> {
    let options = Options {
        controller_manager: true,
        apiserver_flags: vec![format!("--etcd-compaction-interval={COMPACTION_SECONDS}s")],
        ..Options::default()
    };
    let plane = ControlPlane::start_and_tell(&options, say)?;
    let kubeconfig = plane.kubeconfig().to_owned();
    Ok((Box::new(plane), kubeconfig))
}
