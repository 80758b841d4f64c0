//! One run of an operator on a simulated cluster.

use std::fmt;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};

use crate::command::target;
use crate::operators::operator::{Goal, Operator};

/// The maximum time of a run until the operator has converged.
const TIMEOUT: Duration = Duration::from_mins(3);
/// The time between two looks at the cluster.
const INTERVAL: Duration = Duration::from_millis(250);
/// How many lines of the operator's output a failure shows.
const SHOWN_LINES: usize = 20;

/// An operator with a plan.
pub(crate) struct Trial<'a> {
    pub(crate) operator: &'a Operator,
    pub(crate) program: &'a Path,
    pub(crate) kubectl: &'a [String],
    pub(crate) plan: Option<&'a PathBuf>,
}

/// A run that converged.
pub(crate) struct Outcome {
    time: Duration,
    faults: usize,
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.time.as_secs_f64();
        write!(f, "converged {seconds:.1} s after the sample, {} faults", self.faults)
    }
}

/// A simulated cluster. Dropping this value ends it with its operator.
struct Simulate(Child);

impl Drop for Simulate {
    fn drop(&mut self) {
        // A signal that it can catch: it ends the operator, too.
        let ended = Command::new("kill").arg(self.0.id().to_string()).status();
        if ended.is_err() {
            let _ = self.0.kill();
        }
        let _ = self.0.wait();
    }
}

impl Trial<'_> {
    /// Runs the operator until it has converged.
    pub(crate) fn run(&self, source: &Path) -> Result<Outcome> {
        let folder = tempfile::tempdir()?;
        let kubeconfig = folder.path().join("kubeconfig");
        let plan = if let Some(plan) = self.plan {
            plan.clone()
        } else {
            let plan = folder.path().join("plan.yaml");
            fs::write(&plan, "faults: []\n")?;
            plan
        };
        let (output, log) = (folder.path().join("output"), folder.path().join("log"));
        let mut command = Command::new(target().join("debug/innkeeper"));
        command.args(["simulate", "--kubeconfig"]).arg(&kubeconfig);
        command.arg("--faults").arg(plan).arg("--faults-exec").arg(self.line());
        command.stdin(Stdio::null()).stdout(File::create(&output)?).stderr(File::create(&log)?);
        let simulate = Simulate(command.spawn().context("cannot run target/debug/innkeeper")?);
        let result = self.converge(source, &kubeconfig);
        drop(simulate);
        let reports = fs::read_to_string(&output)?;
        let faults = reports.lines().filter(|line| line.contains(" s  ")).count();
        match result {
            Ok(time) => Ok(Outcome { time, faults }),
            Err(error) => {
                let log = fs::read_to_string(&log)?;
                let lines: Vec<&str> = log.lines().collect();
                let shown = &lines[lines.len().saturating_sub(SHOWN_LINES)..];
                Err(error.context(format!("{reports}\n{}", shown.join("\n"))))
            }
        }
    }

    /// The command of the operator. Its arguments are those of this repository.
    fn line(&self) -> String {
        format!("exec '{}' {}", self.program.display(), self.operator.arguments.join(" "))
    }

    fn converge(&self, source: &Path, kubeconfig: &Path) -> Result<Duration> {
        wait("the simulated cluster does not begin", || Ok(kubeconfig.exists()))?;
        for file in self.operator.definitions(source)? {
            let file = file.display().to_string();
            self.kubectl(kubeconfig, &["apply", "--server-side", "-f", &file])?;
        }
        let sample = source.join(&self.operator.name).join("sample.yaml").display().to_string();
        // The API server may not serve the kind yet.
        wait("the sample is refused", || {
            Ok(self.kubectl(kubeconfig, &["apply", "-f", &sample]).is_ok())
        })?;
        let begun = Instant::now();
        for goal in &self.operator.converged {
            let Goal { object, path, value } = goal;
            let path = format!("jsonpath={path}");
            let failed = format!("{object} does not get {path} = {value}");
            wait(&failed, || {
                let shown = self.kubectl(kubeconfig, &["get", object, "-o", &path]);
                Ok(shown.is_ok_and(|shown| shown == *value))
            })?;
        }
        Ok(begun.elapsed())
    }

    fn kubectl(&self, kubeconfig: &Path, arguments: &[&str]) -> Result<String> {
        let (program, first) = self.kubectl.split_first().context("there is no kubectl")?;
        let mut command = Command::new(program);
        command.args(first).arg("--kubeconfig").arg(kubeconfig).args(arguments);
        let output = command.output().with_context(|| format!("cannot run {program}"))?;
        if !output.status.success() {
            bail!("kubectl {}: {}", arguments.join(" "), String::from_utf8_lossy(&output.stderr));
        }
        Ok(String::from_utf8(output.stdout)?)
    }
}

/// Waits until a condition holds.
fn wait(failed: &str, mut holds: impl FnMut() -> Result<bool>) -> Result<()> {
    let begun = Instant::now();
    while !holds()? {
        if begun.elapsed() > TIMEOUT {
            bail!("{failed} within {} s", TIMEOUT.as_secs());
        }
        std::thread::sleep(INTERVAL);
    }
    Ok(())
}
