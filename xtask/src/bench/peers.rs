//! `cargo xtask bench --peers`: builds the controllers of tests/bench/peers, and compares them with
//! the host.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result};
use innkeeper_toolchain::command::ask;

use super::host::Host;
use crate::command::{cargo, root, run as run_command, target};
use crate::guests;
use crate::program;
use crate::progress::Steps;

/// The variable that names a checkout of Metacontroller. Its module path is `metacontroller`, which
/// the Go module proxy does not serve.
const METACONTROLLER: &str = "METACONTROLLER_SOURCE";

/// The argument with which the host is measured alone, with other numbers of resources.
const GROWTH: &str = "--growth";

/// Measures all controllers, with this build of the host. With `--report`, only writes the page
/// from earlier results; with `--growth`, measures the host alone.
///
/// # Errors
/// If a build fails, or a controller does not converge.
pub(super) fn run(arguments: &[String], host: Host) -> Result<()> {
    let folder = target().join("peers");
    if arguments.iter().any(|argument| argument == "--report") {
        return measure(&folder, arguments, host);
    }
    let is_growth = arguments.iter().any(|argument| argument.starts_with(GROWTH));
    let mut steps = Steps::new(host.steps() + if is_growth { 2 } else { 3 });
    steps.next("guests");
    guests::build(&root(), Some(&program::GUESTS))?;
    steps.end("built");

    host.build(&mut steps)?;
    if is_growth {
        steps.next("the host alone (50,000 resources take about 45 min)");
        measure(&folder, arguments, host)?;
        steps.end("measured");
        return Ok(());
    }

    steps.next("peers (about 5 min the first time)");
    fs::create_dir_all(&folder)?;
    let versions = serde_json::to_string_pretty(&build(&folder, host)?)?;
    fs::write(folder.join("versions.json"), versions)?;
    steps.end("built");

    steps.next("all controllers on control planes (about 1 h)");
    measure(&folder, arguments, host)?;
    steps.end("measured");
    Ok(())
}

fn measure(folder: &Path, arguments: &[String], host: Host) -> Result<()> {
    let mut bench = cargo(&["run", "--package", "innkeeper-cluster-tests", "--bin", "bench", "--"]);
    run_command(bench.arg("--peers").arg(folder).args(arguments).envs(host.programs()))
}

/// Builds the peers into a folder; returns the versions by name, with that of the host.
fn build(folder: &Path, host: Host) -> Result<BTreeMap<&'static str, String>> {
    let source = root().join("tests/bench/peers");
    go(&source, &folder.join("controller-runtime"), "./controller-runtime")?;
    go(&source, &folder.join("metacontroller-hook"), "./metacontroller")?;
    let kube_rs = folder.join("kube-rs-target");
    let manifest = source.join("kube-rs/Cargo.toml");
    let mut command = cargo(&["build", "--release", "--locked", "--manifest-path"]);
    run_command(command.arg(manifest).env("CARGO_TARGET_DIR", &kube_rs))?;
    fs::copy(kube_rs.join("release/kube-rs-peer"), folder.join("kube-rs"))?;

    let commit = output(Command::new("git").args(["rev-parse", "--short", "HEAD"]))?;
    let mut versions = BTreeMap::from([
        ("innkeeper", commit + host.note()),
        ("controller-runtime", required(&source, "sigs.k8s.io/controller-runtime")?),
        ("kube-rs", locked(&source.join("kube-rs/Cargo.lock"), "kube")?),
        ("kubernetes", required(&root().join("tests/cluster/controlplane"), "k8s.io/kubernetes")?),
        ("go", output(Command::new("go").args(["env", "GOVERSION"]).current_dir(&source))?),
        ("rust", output(Command::new("rustc").arg("--version"))?.replace("rustc ", "")),
        ("date", output(Command::new("date").args(["-u", "+%F"]))?),
    ]);
    if let Some(checkout) = std::env::var_os(METACONTROLLER).map(PathBuf::from) {
        go(&checkout, &folder.join("metacontroller"), "./pkg/cmd/metacontroller")?;
        let crds = checkout.join("manifests/production/metacontroller-crds-v1.yaml");
        fs::copy(&crds, folder.join("metacontroller-crds.yaml"))
            .with_context(|| crds.display().to_string())?;
        let mut describe = Command::new("git");
        describe.args(["describe", "--tags"]).current_dir(&checkout);
        versions.insert("metacontroller", output(&mut describe)?);
    }
    Ok(versions)
}

/// Builds a program of a Go module. Go checks the modules by go.sum.
fn go(module: &Path, program: &Path, package: &str) -> Result<()> {
    let mut command = Command::new("go");
    command.args(["build", "-trimpath", "-o"]).arg(program).arg(package);
    run_command(command.current_dir(module).env("CGO_ENABLED", "0"))
        .context("cannot build a peer; install Go 1.26 or later")
}

/// The version of a module that the go.mod of a folder requires.
fn required(folder: &Path, module: &str) -> Result<String> {
    let path = folder.join("go.mod");
    let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    let mut lines = text.lines().map(|line| line.trim().trim_start_matches("require "));
    let version = lines.find_map(|line| line.strip_prefix(module)?.split_whitespace().next());
    version.map(str::to_owned).with_context(|| format!("no {module} in {}", path.display()))
}

/// The version of a package in a Cargo.lock.
fn locked(path: &Path, package: &str) -> Result<String> {
    let text = fs::read_to_string(path).with_context(|| path.display().to_string())?;
    let (_, rest) = text
        .split_once(&format!("name = \"{package}\"\nversion = \""))
        .with_context(|| format!("no {package} in {}", path.display()))?;
    Ok(rest.split('"').next().unwrap_or_default().to_owned())
}

/// What a command prints, without the end of its line.
fn output(command: &mut Command) -> Result<String> {
    Ok(ask(command)?.trim().to_owned())
}
