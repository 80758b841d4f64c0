//! One of the two clusters, and kubectl that talks to it.

use std::any::Any;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use innkeeper_controlplane::{ControlPlane, Options, Programs};
use innkeeper_simulator::{Controllers, Simulator};
use innkeeper_simulator_server::BlockingServer;
use tempfile::TempDir;

use crate::normal::Names;
use crate::words::words;

/// How long a line of a watch may take.
const BOUND: Duration = Duration::from_mins(2);

/// Whatever goes wrong with a side itself.
pub type Failure = Box<dyn std::error::Error + Send + Sync>;

/// What a command printed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Printed {
    /// The exit status.
    pub code: Option<i32>,
    /// Standard output, comparable.
    pub out: String,
    /// Standard error, comparable.
    pub error: String,
}

/// A cluster with a kubectl of its own: no files of the user's, no cache that others use.
pub struct Side {
    kubeconfig: PathBuf,
    names: Names,
    /// It ends when it is dropped.
    _cluster: Box<dyn Any + Send + Sync>,
    home: TempDir,
}

impl Side {
    /// A real API server, without controllers.
    ///
    /// # Errors
    /// If it cannot be started.
    pub fn real() -> Result<Self, Failure> {
        let plane = ControlPlane::start(&Options::default())?;
        let kubeconfig = plane.kubeconfig().to_owned();
        let names = Names::default();
        Ok(Self { kubeconfig, names, _cluster: Box::new(plane), home: TempDir::new()? })
    }

    /// The simulator, without controllers, on a port.
    ///
    /// # Errors
    /// If it cannot be started.
    pub fn simulated() -> Result<Self, Failure> {
        let home = TempDir::new()?;
        let controllers =
            Controllers { garbage_collector: false, namespaces: false, ..Controllers::default() };
        let simulator = Simulator::with(1, jiff::Timestamp::now(), controllers);
        let kubeconfig = home.path().join("kubeconfig");
        let options = innkeeper_simulator_server::Options::default();
        let server = BlockingServer::start(simulator, &options, &kubeconfig)?;
        Ok(Self { kubeconfig, names: Names::default(), _cluster: Box::new(server), home })
    }

    /// Makes a namespace, and lets all commands be about it.
    ///
    /// # Errors
    /// If that does not work.
    pub fn settle_in(&mut self, namespace: &str, folder: &Path) -> Result<(), Failure> {
        for line in [
            format!("create namespace {namespace}"),
            format!("config set-context --current --namespace {namespace}"),
        ] {
            let printed = self.run(&line, folder)?;
            if printed.code != Some(0) {
                return Err(format!("kubectl {line}: {}", printed.error).into());
            }
        }
        Ok(())
    }

    fn command(&self, line: &str, folder: &Path) -> Result<Command, Failure> {
        let mut command = Programs::find(&mut |_| ())?.command("kubectl")?;
        command
            .args(words(line))
            .current_dir(folder)
            .env("KUBECONFIG", &self.kubeconfig)
            .env("HOME", self.home.path())
            .env("TZ", "UTC")
            // It ends too soon to be worth tidying up for.
            .env("GOGC", "off")
            .stdin(Stdio::null());
        Ok(command)
    }

    /// Runs a command to its end, in a folder.
    ///
    /// # Errors
    /// If there is no kubectl.
    pub fn run(&mut self, line: &str, folder: &Path) -> Result<Printed, Failure> {
        let output = self.command(line, folder)?.output()?;
        let mut text = |bytes: &[u8]| self.names.normal(&String::from_utf8_lossy(bytes));
        let (out, error) = (text(&output.stdout), text(&output.stderr));
        Ok(Printed { code: output.status.code(), out, error })
    }

    /// A document of the server, as it is.
    ///
    /// # Errors
    /// If it gives none.
    pub fn raw(&self, path: &str) -> Result<String, Failure> {
        let output = self.command(&format!("get --raw {path}"), self.home.path())?.output()?;
        if !output.status.success() {
            return Err(format!("{path}: {}", String::from_utf8_lossy(&output.stderr)).into());
        }
        Ok(String::from_utf8(output.stdout)?)
    }

    /// Runs a command that goes on, and others while it does. Gives its lines: `first` before the
    /// others begin, and `then` after.
    ///
    /// # Errors
    /// If there is no kubectl, or a line does not come.
    pub fn watch(
        &mut self,
        line: &str,
        first: usize,
        others: &[&str],
        then: usize,
        folder: &Path,
    ) -> Result<Vec<String>, Failure> {
        let mut child = Going(self.command(line, folder)?.stdout(Stdio::piped()).spawn()?);
        let output = child.0.stdout.take().ok_or("kubectl has no output")?;
        let (sender, lines) = channel();
        let reader = thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        let mut found = next(&lines, first, line)?;
        for other in others {
            let printed = self.run(other, folder)?;
            if printed.code != Some(0) {
                return Err(format!("kubectl {other}: {}", printed.error).into());
            }
        }
        found.extend(next(&lines, then, line)?);
        drop(child);
        reader.join().map_err(|_| "the reader of a watch panicked")?;
        Ok(found.iter().map(|line| self.names.normal(line)).collect())
    }
}

/// The next lines.
fn next(lines: &Receiver<String>, count: usize, what: &str) -> Result<Vec<String>, Failure> {
    let deadline = Instant::now() + BOUND;
    let mut found = Vec::new();
    while found.len() < count {
        let left = deadline.saturating_duration_since(Instant::now());
        match lines.recv_timeout(left) {
            Ok(line) => found.push(line),
            Err(RecvTimeoutError::Timeout) => {
                return Err(
                    format!("kubectl {what}: {count} lines after {BOUND:?}? {found:?}").into()
                );
            }
            Err(RecvTimeoutError::Disconnected) => {
                return Err(format!("kubectl {what} ended after {found:?}").into());
            }
        }
    }
    Ok(found)
}

/// A process that is ended when this goes.
struct Going(Child);

impl Drop for Going {
    fn drop(&mut self) {
        // One that has ended already is as good.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
