//! The `innkeeper` program, as a test runs it.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow, bail};
use bytes::Bytes;
use http_body_util::{BodyExt as _, Empty};
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use innkeeper_controlplane::{Watchdog, free_address};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt as _, AsyncRead, BufReader};
use tokio::process::{Child, Command};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::eventually;

/// Lines of the log shown in an error.
const TAIL_LINES: usize = 40;
/// Bound on one request to the host's own address.
const HTTP_TIMEOUT: Duration = Duration::from_secs(30);

/// How to run the host.
#[derive(Clone, Debug, Default)]
pub struct HostOptions {
    /// The program; if not given, `INNKEEPER_BIN`, else the one that cargo built for
    /// the test.
    pub program: Option<PathBuf>,
    /// The kubeconfig that it uses.
    pub kubeconfig: PathBuf,
    /// A folder of Modules, for `--modules`.
    pub modules: Option<PathBuf>,
    /// The name of its pod, under which it is a candidate for the Lease; if not given, it works at
    /// once, as a host that is alone.
    pub pod: Option<String>,
    /// More flags for `innkeeper run`.
    pub flags: Vec<String>,
    /// More variables of its environment.
    pub environment: Vec<(String, String)>,
    /// Do not print the end of its log when it is dropped: for a program that is no test.
    pub hides_log: bool,
}

impl HostOptions {
    /// With this kubeconfig, and Modules from the cluster.
    pub fn new(kubeconfig: &Path) -> Self {
        Self { kubeconfig: kubeconfig.to_owned(), ..Self::default() }
    }
}

/// A running `innkeeper run`. Killed when dropped, and when the test is killed.
pub struct Host {
    child: Child,
    pid: u32,
    address: SocketAddr,
    lines: Arc<Mutex<Vec<String>>>,
    hides_log: bool,
    readers: Vec<JoinHandle<()>>,
    _watchdog: Watchdog,
    _folder: TempDir,
}

impl Host {
    /// Starts the program; [`Self::ready`] waits until it is ready.
    ///
    /// # Errors
    /// Also if the program is not built; says how to build it.
    pub fn start(options: &HostOptions) -> Result<Self> {
        let program = options.program.clone().map_or_else(program, Ok)?;
        let address = free_address(Ipv4Addr::LOCALHOST)?;
        let folder = tempfile::Builder::new().prefix("innkeeper-host-").tempdir()?;
        let mut watchdog = Watchdog::start(folder.path())?;
        let mut command = Command::new(&program);
        command.arg("run").arg("--bind").arg(address.to_string());
        if let Some(modules) = &options.modules {
            command.arg("--modules").arg(modules);
        }
        match (&options.pod, &options.modules) {
            (Some(pod), _) => {
                command.env("POD_NAME", pod);
            }
            (None, None) => {
                command.arg("--leader-elect=false");
            }
            (None, Some(_)) => {}
        }
        let mut child = command
            .args(&options.flags)
            .env("KUBECONFIG", &options.kubeconfig)
            .envs(options.environment.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .with_context(|| format!("running {}", program.display()))?;
        let pid = child.id().ok_or_else(|| anyhow!("the host ended at once"))?;
        watchdog.guard(pid)?;
        let lines = Arc::new(Mutex::new(Vec::new()));
        let mut readers = Vec::new();
        if let Some(stream) = child.stdout.take() {
            readers.push(tokio::spawn(collect(stream, Arc::clone(&lines))));
        }
        if let Some(stream) = child.stderr.take() {
            readers.push(tokio::spawn(collect(stream, Arc::clone(&lines))));
        }
        Ok(Self {
            child,
            pid,
            address,
            lines,
            hides_log: options.hides_log,
            readers,
            _watchdog: watchdog,
            _folder: folder,
        })
    }

    /// Waits until /readyz answers 200.
    ///
    /// # Errors
    /// After `bound`, or when the host ends; with the end of its log.
    pub async fn ready(&mut self, bound: Duration) -> Result<()> {
        let result = eventually("/readyz answers 200", bound, async || {
            if let Some(status) = self.child.try_wait()? {
                bail!("the host ended ({status})");
            }
            Ok(match self.http("/readyz").await {
                Ok((200, _)) => Ok(()),
                Ok((code, body)) => Err(format!("{code} {body}")),
                Err(error) => Err(format!("{error:#}")),
            })
        })
        .await;
        result.with_context(|| self.tail())
    }

    /// Sends a GET to the host's own address; gives the HTTP status and the body.
    ///
    /// # Errors
    /// If the host does not answer in time.
    pub async fn http(&self, path: &str) -> Result<(u16, String)> {
        self.http_with(path, None).await
    }

    /// Sends a GET with a bearer token, if there is one.
    ///
    /// # Errors
    /// If the host does not answer in time.
    pub async fn http_with(&self, path: &str, token: Option<&str>) -> Result<(u16, String)> {
        let client = Client::builder(TokioExecutor::new()).build_http::<Empty<Bytes>>();
        let mut request = http::Request::get(format!("http://{}{path}", self.address));
        if let Some(token) = token {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        let request = request.body(Empty::new())?;
        let answer = timeout(HTTP_TIMEOUT, async {
            let response = client.request(request).await?;
            let code = response.status().as_u16();
            let body = response.into_body().collect().await?.to_bytes();
            anyhow::Ok((code, String::from_utf8_lossy(&body).into_owned()))
        });
        answer.await.with_context(|| format!("GET {path} from the host"))?
    }

    /// The value of a metric at /metrics: the sum over all its label sets that contain each of
    /// `labels` (as in `module="podroute"`). `None` if there is no such line.
    ///
    /// # Errors
    /// If the host does not answer in time.
    pub async fn metric(&self, name: &str, labels: &[&str]) -> Result<Option<f64>> {
        let (_, text) = self.http("/metrics").await?;
        Ok(metric(&text, name, labels))
    }

    /// Where it serves health and metrics.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Process id.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// The number of its child processes now: its compilers.
    ///
    /// # Errors
    /// If the host has ended.
    pub fn children(&self) -> Result<usize> {
        let tasks = std::path::PathBuf::from(format!("/proc/{}/task", self.pid));
        let mut count = 0;
        for task in std::fs::read_dir(&tasks).with_context(|| tasks.display().to_string())? {
            // A thread may end meanwhile.
            let children = std::fs::read_to_string(task?.path().join("children"));
            count += children.unwrap_or_default().split_whitespace().count();
        }
        Ok(count)
    }

    /// What it wrote so far, both streams.
    pub fn log(&self) -> Vec<String> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Waits until a line of the log contains `text`, and gives the first such line.
    ///
    /// # Errors
    /// If there is no such line within `bound`.
    pub async fn logged(&self, text: &str, bound: Duration) -> Result<String> {
        eventually(&format!("the host logs {text:?}"), bound, async || {
            let line = self.log().into_iter().find(|line| line.contains(text));
            Ok(line.ok_or_else(|| self.tail()))
        })
        .await
    }

    /// Something that kills the host at once (SIGKILL) and can be called from anywhere, for
    /// [`crate::Proxy::at_write`].
    pub fn killer(&self) -> impl FnOnce() + Send + 'static + use<> {
        let pid = self.pid;
        // Our child, not waited for yet, so that the pid is nobody else's.
        move || signal(pid, Signal::KILL)
    }

    /// Something that stops the host (SIGSTOP) as a suspended machine would, as [`Self::killer`].
    pub fn pauser(&self) -> impl FnOnce() + Send + 'static + use<> {
        let pid = self.pid;
        move || signal(pid, Signal::STOP)
    }

    /// Asks it to end (SIGTERM); [`Self::ended`] waits for the end.
    pub fn terminate(&self) {
        signal(self.pid, Signal::TERM);
    }

    /// Lets a host that was stopped go on (SIGCONT).
    pub fn resume(&self) {
        signal(self.pid, Signal::CONT);
    }

    /// Waits until it works, as one of several that share a Lease.
    ///
    /// # Errors
    /// If it does not hold the Lease within `bound`.
    pub async fn leads(&self, bound: Duration) -> Result<()> {
        eventually("the host leads", bound, async || {
            let leads = self.metric("innkeeper_leader_election_master_status", &[]).await?;
            Ok(if leads == Some(1.0) { Ok(()) } else { Err(self.tail()) })
        })
        .await
    }

    /// Sends SIGKILL, and waits for the end.
    ///
    /// # Errors
    /// If the process cannot be killed.
    pub async fn kill(mut self) -> Result<()> {
        self.child.kill().await.context("killing the host")?;
        self.drain().await;
        Ok(())
    }

    /// Waits for the end, by itself or by [`Self::killer`]. Gives the status and the log.
    ///
    /// # Errors
    /// If the host still runs after `bound`.
    pub async fn ended(mut self, bound: Duration) -> Result<(ExitStatus, Vec<String>)> {
        match timeout(bound, self.child.wait()).await {
            Ok(status) => {
                let status = status?;
                self.drain().await;
                Ok((status, self.log()))
            }
            Err(_) => bail!("the host still runs after {bound:?}\n{}", self.tail()),
        }
    }

    /// Sends SIGTERM, and waits for the end. Gives the status and the log.
    ///
    /// # Errors
    /// If the host still runs after `bound`.
    pub async fn stop(self, bound: Duration) -> Result<(ExitStatus, Vec<String>)> {
        self.terminate();
        self.ended(bound).await
    }

    /// Reads what is left in the pipes of a process that has ended.
    async fn drain(&mut self) {
        for reader in self.readers.drain(..) {
            // A grandchild may hold the pipe open, so with a bound.
            let _ = timeout(Duration::from_secs(1), reader).await;
        }
    }

    fn tail(&self) -> String {
        let log = self.log();
        let end = &log[log.len().saturating_sub(TAIL_LINES)..];
        format!("the end of the host's log:\n{}", end.join("\n"))
    }
}

impl Drop for Host {
    /// Prints the end of the log, which a test shows if it fails.
    #[expect(clippy::print_stdout, reason = "shown when the test fails")]
    fn drop(&mut self) {
        if !self.hides_log {
            println!("{}", self.tail());
        }
    }
}

fn signal(pid: u32, signal: Signal) {
    if let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
        // Fails only if it has ended already.
        let _ = kill_process(pid, signal);
    }
}

async fn collect(stream: impl AsyncRead + Unpin, lines: Arc<Mutex<Vec<String>>>) {
    let mut reader = BufReader::new(stream).lines();
    while let Ok(Some(line)) = reader.next_line().await {
        lines.lock().unwrap_or_else(PoisonError::into_inner).push(line);
    }
}

/// Sums the samples of one metric in Prometheus' text format. The sum of a metric in what /metrics
/// says, over all its label sets that contain each of `labels`.
pub(crate) fn metric(text: &str, name: &str, labels: &[&str]) -> Option<f64> {
    let samples: Vec<f64> = text
        .lines()
        .filter_map(|line| line.strip_prefix(name))
        .filter(|rest| rest.starts_with([' ', '{']))
        .filter(|rest| labels.iter().all(|label| rest.contains(label)))
        .filter_map(|rest| rest.rsplit_once(' ')?.1.parse().ok())
        .collect();
    (!samples.is_empty()).then(|| samples.iter().sum())
}

/// The path of the program: `INNKEEPER_BIN`, else the one above this test's own folder.
///
/// # Errors
/// If there is no file at the path.
pub fn program() -> Result<PathBuf> {
    named_by("INNKEEPER_BIN")?.map_or_else(|| built("innkeeper"), Ok)
}

/// The path of the program that images contain: `INNKEEPER_OPERATOR_BIN`, else the one above this
/// test's own folder.
///
/// # Errors
/// If there is no file at the path.
pub fn operator_program() -> Result<PathBuf> {
    named_by("INNKEEPER_OPERATOR_BIN")?.map_or_else(|| built("innkeeper-operator"), Ok)
}

/// The program that a variable names.
fn named_by(variable: &str) -> Result<Option<PathBuf>> {
    let path = std::env::var_os(variable).filter(|value| !value.is_empty()).map(PathBuf::from);
    if let Some(path) = path.as_ref().filter(|path| !path.is_file()) {
        bail!("{variable} names {}, which is not a file", path.display());
    }
    Ok(path)
}

/// A program that cargo has built.
fn built(name: &str) -> Result<PathBuf> {
    // This test lies in TARGET/debug/deps.
    let test = std::env::current_exe().context("finding this test's own path")?;
    let path = test.ancestors().nth(2).map(|folder| folder.join(name)).unwrap_or_default();
    if !path.is_file() {
        bail!(
            "{} is missing: run `cargo build -p innkeeper-cli` first, or name a program by INNKEEPER_BIN and INNKEEPER_OPERATOR_BIN",
            path.display()
        );
    }
    Ok(path)
}

/// The root of the repository.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).map(Path::to_owned).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A host that says where it runs and ends well on SIGTERM.
    const OBEDIENT: &str = "#!/bin/sh\necho \"args $*\"\necho \"config $KUBECONFIG\" >&2\ntrap 'echo bye; exit 0' TERM\nwhile :; do sleep 0.02; done\n";
    const BOUND: Duration = Duration::from_mins(1);

    fn script(text: &str) -> (TempDir, HostOptions) {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("innkeeper");
        std::fs::write(&program, text).unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
        let options = HostOptions {
            program: Some(program),
            modules: Some(PathBuf::from("modules")),
            ..HostOptions::new(Path::new("some/kubeconfig"))
        };
        (folder, options)
    }

    #[tokio::test]
    async fn a_host_is_given_its_flags_and_ends_on_sigterm() {
        let (_folder, options) = script(OBEDIENT);
        let host = Host::start(&options).unwrap();
        let line = host.logged("args ", BOUND).await.unwrap();
        assert!(line.starts_with("args run --bind 127.0.0.1:"), "{line}");
        assert!(line.ends_with("--modules modules"), "{line}");
        host.logged("config some/kubeconfig", BOUND).await.unwrap();
        let (status, log) = host.stop(BOUND).await.unwrap();
        assert!(status.success(), "{status}");
        assert!(log.contains(&"bye".to_owned()), "{log:?}");
    }

    #[tokio::test]
    async fn a_host_can_be_killed_from_elsewhere() {
        let (_folder, options) = script(OBEDIENT);
        let host = Host::start(&options).unwrap();
        host.logged("args ", BOUND).await.unwrap();
        let kill = host.killer();
        std::thread::spawn(kill).join().unwrap();
        let (status, _) = host.ended(BOUND).await.unwrap();
        assert_eq!(std::os::unix::process::ExitStatusExt::signal(&status), Some(9));
    }

    #[tokio::test]
    async fn a_host_that_ends_before_it_is_ready_is_an_error_with_its_log() {
        let (_folder, options) = script("#!/bin/sh\necho no cluster >&2\nexit 3\n");
        let mut host = Host::start(&options).unwrap();
        host.logged("no cluster", BOUND).await.unwrap();
        let error = format!("{:#}", host.ready(BOUND).await.unwrap_err());
        assert!(error.contains("the host ended (exit status: 3)"), "{error}");
        assert!(error.contains("no cluster"), "{error}");
    }

    #[tokio::test]
    async fn a_program_that_is_not_there_is_named() {
        let options =
            HostOptions { program: Some(PathBuf::from("no/such/host")), ..HostOptions::default() };
        let error = Host::start(&options).err().map(|error| format!("{error:#}"));
        assert!(error.as_deref().unwrap_or_default().contains("no/such/host"), "{error:?}");
    }

    #[test]
    fn metrics_are_summed_over_the_label_sets_that_fit() {
        let text = "# TYPE a counter\na{m=\"x\",v=\"1\"} 2\na{m=\"y\"} 3\na_total 9\nb 1.5\n";
        assert_eq!(metric(text, "a", &[]), Some(5.0));
        assert_eq!(metric(text, "a", &["m=\"x\""]), Some(2.0));
        assert_eq!(metric(text, "b", &[]), Some(1.5));
        assert_eq!(metric(text, "c", &[]), None);
    }
}
