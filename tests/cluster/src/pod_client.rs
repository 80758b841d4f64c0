//! A pod from which a test asks others.

use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context as _, Result};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::eventually;
use crate::stage::{SOON, prints};

/// A pod from which a test asks others, with the rights of an admin.
pub struct PodClient {
    namespace: String,
    kubectl: std::process::Command,
}

impl PodClient {
    /// The pod `client` of a namespace, which runs.
    pub(crate) fn new(namespace: &str, kubectl: std::process::Command) -> Self {
        Self { namespace: namespace.to_owned(), kubectl }
    }

    /// What a command prints that runs in the pod.
    ///
    /// # Errors
    /// Its output, if it fails.
    pub async fn run(&self, command: &[&str]) -> Result<String> {
        prints(self.command(command)).await
    }

    /// Gets a page, by the name that cluster DNS knows.
    ///
    /// # Errors
    /// If the pod gets no page in time.
    pub async fn page(&self, url: &str) -> Result<String> {
        // Not wget's own bound: Debian's static busybox crashes on it.
        self.run(&["timeout", "20", "wget", "-q", "-O", "-", url]).await
    }

    /// Waits until a page has this text.
    ///
    /// # Errors
    /// If the page has another text after the time.
    pub async fn until_page(&self, url: &str, text: &str) -> Result<()> {
        eventually(&format!("{url} says {text:?}"), SOON, async || {
            Ok(match self.page(url).await {
                Ok(page) if page.trim() == text => Ok(()),
                Ok(page) => Err(page),
                Err(error) => Err(format!("{error:#}")),
            })
        })
        .await
    }

    /// Runs a script in the pod at the same time as the test, and collects what it prints.
    ///
    /// # Errors
    /// If kubectl cannot be run.
    pub fn follow(&self, script: &str) -> Result<Lines> {
        let mut process = Command::from(self.command(&["sh", "-c", script]))
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .context("running kubectl")?;
        let stdout = process.stdout.take().context("kubectl has no standard output")?;
        let printed = Arc::new(Mutex::new(Vec::new()));
        let collected = Arc::clone(&printed);
        let reader = tokio::spawn(async move {
            let mut read = BufReader::new(stdout).lines();
            while let Ok(Some(line)) = read.next_line().await {
                collected.lock().unwrap_or_else(PoisonError::into_inner).push(line);
            }
        });
        Ok(Lines { _process: process, printed, reader })
    }

    /// The command that runs another in the pod.
    pub fn command(&self, command: &[&str]) -> std::process::Command {
        let mut kubectl = std::process::Command::new(self.kubectl.get_program());
        kubectl.args(self.kubectl.get_args());
        for (name, value) in self.kubectl.get_envs() {
            if let Some(value) = value {
                kubectl.env(name, value);
            }
        }
        kubectl.args(["exec", "--namespace", &self.namespace, "client", "--"]).args(command);
        kubectl
    }
}

/// What a script has printed so far. kubectl ends with this value, the script itself with its pod,
/// or when it finds out by itself.
pub struct Lines {
    _process: Child,
    printed: Arc<Mutex<Vec<String>>>,
    reader: JoinHandle<()>,
}

impl Lines {
    /// All lines so far.
    pub fn so_far(&self) -> Vec<String> {
        self.printed.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Waits until the lines so far are as `wanted`, which says what is missing.
    ///
    /// # Errors
    /// What `wanted` says is missing after `bound`.
    pub async fn until(
        &self,
        what: &str,
        bound: Duration,
        wanted: impl Fn(&[String]) -> Result<(), String>,
    ) -> Result<()> {
        eventually(what, bound, async || Ok(wanted(&self.so_far()))).await
    }

    /// Waits until the script has ended by itself; gives all that it printed.
    ///
    /// # Errors
    /// If the script still runs after `bound`.
    pub async fn end(mut self, bound: Duration) -> Result<Vec<String>> {
        timeout(bound, &mut self.reader).await.context("the script does not end")??;
        Ok(self.so_far())
    }
}
