//! The program of the specs: how it is built and called.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use innkeeper_controlplane::GoProgram;

use crate::files;
use crate::report::{self, Spec, SpecResult};

/// The name of the suite in `main.go`; ginkgo's focus matches it too.
const SUITE: &str = "specs without nodes";
/// What the names of the chosen specs start with; the program has those of other groups too.
const GROUPS: [&str; 2] = ["[sig-api-machinery] ", "[sig-auth] "];
/// How long a spec may take. The longest that passes takes about half of it on a busy machine.
const TIMEOUT: Duration = Duration::from_secs(150);

/// The built program.
#[derive(Clone, Debug)]
pub struct Program {
    path: PathBuf,
}

/// The cluster against which the program runs.
pub(crate) struct Target<'a> {
    /// The kubeconfig of an administrator.
    pub(crate) kubeconfig: &'a Path,
    /// kubectl, for the specs that call it.
    pub(crate) kubectl: &'a Path,
    /// A folder for what kubectl remembers of this cluster.
    pub(crate) home: &'a Path,
    /// The folder of the reports and outputs.
    pub(crate) folder: &'a Path,
}

impl Program {
    /// Finds the program in the user's cache, or builds it first (about 5 minutes with 2 cores,
    /// needs Go). `say` gets a line before.
    ///
    /// # Errors
    /// If Go is missing, or the build fails.
    pub fn find(say: &mut dyn FnMut(&str)) -> Result<Self> {
        let source = files::of_crate("program");
        let what = "Kubernetes' specs";
        let program = GoProgram { name: "conformance", what, source: &source, instead: "" };
        Ok(Self { path: program.find(say)? })
    }

    /// The version of Kubernetes whose specs the program has.
    ///
    /// # Errors
    /// If `go.mod` does not say so.
    pub fn kubernetes() -> Result<String> {
        let text = files::read(&files::of_crate("program/go.mod"))?;
        let version = text.lines().find_map(|line| line.trim().strip_prefix("k8s.io/kubernetes v"));
        version.map(str::to_owned).context("program/go.mod does not require k8s.io/kubernetes")
    }

    /// The chosen specs, by name.
    ///
    /// # Errors
    /// If the program does not list its specs.
    pub fn specs(&self) -> Result<Vec<Spec>> {
        let folder = tempfile::tempdir()?;
        let report = folder.path().join("all.json");
        let output = Command::new(&self.path)
            // Without a pattern, the framework leaves out specs by name.
            .args(["--ginkgo.dry-run", "--ginkgo.focus=.", "--ginkgo.silence-skips"])
            .arg(format!("--ginkgo.json-report={}", report.display()))
            .current_dir(folder.path())
            .stdin(Stdio::null())
            .output()
            .with_context(|| format!("running {}", self.path.display()))?;
        if !output.status.success() {
            bail!("the dry run of the specs failed: {}", String::from_utf8_lossy(&output.stdout));
        }
        let mut specs = report::specs(&read(&report)?)?;
        specs.retain(|spec| GROUPS.iter().any(|group| spec.name.starts_with(group)));
        Ok(specs)
    }

    /// Runs one spec. Its report and output are kept in the folder of `target` as `file.json` and
    /// `file.txt`.
    ///
    /// # Errors
    /// If the program leaves no report of the spec.
    pub(crate) fn run(&self, name: &str, target: &Target<'_>, file: &str) -> Result<SpecResult> {
        let report = target.folder.join(format!("{file}.json"));
        let output_path = target.folder.join(format!("{file}.txt"));
        if report.exists() {
            fs::remove_file(&report)?;
        }
        let output = fs::File::create(&output_path)
            .with_context(|| format!("writing {}", output_path.display()))?;
        let path = |flag: &str, path: &Path| format!("--{flag}={}", path.display());
        Command::new(&self.path)
            .arg(path("kubeconfig", target.kubeconfig))
            .arg(path("kubectl-path", target.kubectl))
            .arg(path("e2e-output-dir", target.folder))
            .arg(path("ginkgo.json-report", &report))
            .args(["--provider=skeleton", "--num-nodes=0", "--allowed-not-ready-nodes=-1"])
            .args(["--minStartupPods=-1", "--dump-logs-on-failure=false", "--disable-log-dump"])
            .arg(format!("--ginkgo.timeout={}s", TIMEOUT.as_secs()))
            .args(["--ginkgo.grace-period=10s", "--ginkgo.no-color", "--ginkgo.silence-skips"])
            .arg(format!("--ginkgo.focus=^{SUITE} {}$", regex::escape(name)))
            .current_dir(target.folder)
            .env_remove("KUBECONFIG")
            .env("HOME", target.home)
            .stdin(Stdio::null())
            .stdout(output.try_clone()?)
            .stderr(output)
            .status()
            .with_context(|| format!("running {}", self.path.display()))?;
        let failed = || format!("running the spec `{name}`: see {}", output_path.display());
        report::result(&read(&report).with_context(failed)?, name).with_context(failed)
    }
}

fn read(path: &Path) -> Result<Vec<u8>> {
    fs::read(path).with_context(|| format!("reading {}", path.display()))
}
