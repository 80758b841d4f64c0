//! The program `innkeeper`, in processes of its own: a simulated cluster and the host.

use std::fs::File;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use innkeeper_controlplane::{Watchdog, free_address};
use tempfile::TempDir;
use tokio::process::{Child, Command};

use crate::api::{Api, get};
use crate::eventually::eventually;

/// How long a process may take until it answers. A host without compiled code compiles first.
const START: Duration = Duration::from_mins(5);

/// How the host allocates memory, as deploy/host sets it.
const MALLOC: [(&str, &str); 3] = [
    ("MALLOC_ARENA_MAX", "2"),
    ("MALLOC_MMAP_THRESHOLD_", "131072"),
    ("MALLOC_TRIM_THRESHOLD_", "131072"),
];

/// A process of the program, killed with this value or with this process.
pub struct Program {
    child: Child,
    log: PathBuf,
    _watchdog: Watchdog,
    _folder: TempDir,
}

impl Program {
    fn start(program: &Path, arguments: &[String], environment: &[(&str, &str)]) -> Result<Self> {
        let folder = tempfile::Builder::new().prefix("innkeeper-load-").tempdir()?;
        let log = folder.path().join("log");
        let (out, error) = (File::create(&log)?, File::options().append(true).open(&log)?);
        let mut watchdog = Watchdog::start(folder.path())?;
        let child = Command::new(program)
            .args(arguments)
            .envs(environment.iter().copied())
            .stdin(Stdio::null())
            .stdout(out)
            .stderr(error)
            .kill_on_drop(true)
            .spawn()
            .with_context(|| format!("cannot run {}", program.display()))?;
        watchdog.guard(child.id().context("the program ended at once")?)?;
        Ok(Self { child, log, _watchdog: watchdog, _folder: folder })
    }

    /// The id of the process.
    ///
    /// # Errors
    /// If it has ended.
    pub fn pid(&self) -> Result<u32> {
        self.child.id().context("the program has ended")
    }

    /// Ends the process at once.
    ///
    /// # Errors
    /// If it cannot be killed.
    pub async fn end(mut self) -> Result<()> {
        self.child.kill().await.context("the program cannot be ended")
    }

    /// An error with the end of the log if the process has ended.
    fn check(&mut self) -> Result<()> {
        if let Some(status) = self.child.try_wait()? {
            bail!("the program ended ({status}):\n{}", self.tail());
        }
        Ok(())
    }

    fn tail(&self) -> String {
        let text = std::fs::read_to_string(&self.log).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(20)..].join("\n")
    }
}

/// Starts `innkeeper simulate`. Gives it with a client of the cluster and the kubeconfig, which is
/// in `folder`.
///
/// # Errors
/// If it does not start.
pub async fn simulate(program: &Path, folder: &Path) -> Result<(Program, Api, PathBuf)> {
    let kubeconfig = folder.join("kubeconfig");
    let path = kubeconfig.display().to_string();
    let mut started =
        Program::start(program, &["simulate".into(), "--kubeconfig".into(), path], &[])?;
    let api = eventually("the simulated cluster has a kubeconfig", START, async || {
        started.check()?;
        Ok(Api::of(&kubeconfig).map_err(|error| format!("{error:#}")))
    })
    .await?;
    Ok((started, api, kubeconfig))
}

/// A running host with its addresses.
pub struct Host {
    /// The process.
    pub program: Program,
    /// Where it serves health and metrics.
    pub address: SocketAddr,
    /// Where it answers admission requests.
    pub admission: SocketAddr,
}

impl Host {
    /// Starts `innkeeper run` with an admission server, and waits until it is ready. `folder` keeps
    /// compiled code. It allocates memory as deploy/host says, or as glibc does by default.
    ///
    /// # Errors
    /// If it ends, or is not ready in time; with the end of its log.
    pub async fn start(
        program: &Path,
        kubeconfig: &Path,
        folder: &Path,
        is_default_malloc: bool,
    ) -> Result<Self> {
        let address = free_address(Ipv4Addr::LOCALHOST)?;
        let admission = free_address(Ipv4Addr::LOCALHOST)?;
        let arguments = [
            "run".to_owned(),
            format!("--kubeconfig={}", kubeconfig.display()),
            "--leader-elect=false".to_owned(),
            format!("--bind={address}"),
            format!("--admission-bind={admission}"),
            format!("--admission-url=https://{admission}"),
            format!("--cache-dir={}", folder.join("code").display()),
        ];
        let mut environment = vec![("RUST_LOG", "warn")];
        environment.extend(MALLOC.into_iter().filter(|_| !is_default_malloc));
        let mut program = Program::start(program, &arguments, &environment)?;
        eventually("the host is ready", START, async || {
            program.check()?;
            Ok(match get(address, "/readyz").await {
                Ok((200, _)) => Ok(()),
                Ok((status, body)) => Err(format!("{status} {body}\n{}", program.tail())),
                Err(error) => Err(format!("{error:#}")),
            })
        })
        .await?;
        Ok(Self { program, address, admission })
    }

    /// The sum of the values of a metric of the host.
    ///
    /// # Errors
    /// If the host does not answer.
    pub async fn metric(&self, name: &str) -> Result<f64> {
        let (_, text) = get(self.address, "/metrics").await?;
        let samples = text.lines().filter_map(|line| line.strip_prefix(name));
        let samples = samples.filter(|rest| rest.starts_with([' ', '{']));
        let values = samples.filter_map(|rest| rest.rsplit_once(' ')?.1.parse::<f64>().ok());
        // The sum of no values would be -0.
        Ok(values.fold(0.0, |sum, value| sum + value))
    }
}
