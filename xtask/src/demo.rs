//! `cargo xtask demo`: Innkeeper at work, from nothing, on a simulated cluster or a real one.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};
use innkeeper_controlplane::{ControlPlane, Options};

use crate::command::{cargo, root, run as run_command};
use crate::progress::say;
use crate::{cluster, guests};

/// The guests of the demo.
const SHOWN: [&str; 7] =
    ["imo", "kabocha", "kuri", "maintpage", "podroute", "podroute-labelled", "postgres"];

/// Names a cluster that tests may use instead of one of their own.
const THEIRS: &str = "INNKEEPER_TEST_KUBECONFIG";

/// Where it is played.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Where {
    /// On a simulated cluster, or on one that the arguments name.
    Here,
    /// On a control plane that is started for it.
    ControlPlane,
    /// The same with a node, on which pods run.
    Node,
}

/// Builds Innkeeper and its guests, and runs `innkeeper demo` with these arguments.
///
/// # Errors
/// What could not be built, or what the demo says.
pub(crate) fn run(stage: Where, arguments: &[String]) -> Result<()> {
    guests::build(&root(), Some(&SHOWN))?;
    run_command(&mut cargo(&["build", "--package", "innkeeper-cli"]))?;
    if stage == Where::Here && !arguments.iter().any(|one| one.starts_with("--kubeconfig")) {
        // As a part of the build: the demo starts at once then.
        say("  the guests are compiled for this machine");
        run_command(demo(None)?.arg("--compile-only"))?;
    }
    built(stage, arguments)
}

/// The same with what is built already.
pub(crate) fn built(stage: Where, arguments: &[String]) -> Result<()> {
    let mut tell = |line: &str| say(&format!("  {line}"));
    let options = Options { controller_manager: true, ..Options::default() };
    match stage {
        Where::Here => run_command(demo(None)?.args(arguments)),
        Where::ControlPlane => {
            prepare()?;
            let plane = ControlPlane::start_and_tell(&options, &mut tell)?;
            hint()?;
            run_command(demo(Some(plane.kubeconfig()))?.args(arguments))
        }
        Where::Node => {
            prepare()?;
            let cluster = innkeeper_node::Cluster::start(&options, &mut tell)?;
            hint()?;
            run_command(demo(Some(cluster.plane().kubeconfig()))?.args(arguments))
        }
    }
}

/// Before a cluster is started for the demo alone.
fn prepare() -> Result<()> {
    if std::env::var_os(THEIRS).is_some_and(|value| !value.is_empty()) {
        bail!(
            "{THEIRS} names a cluster for tests. To play the demo on it, say so: cargo xtask demo --kubeconfig ${THEIRS}"
        );
    }
    // Ctrl-C is the demo's: it takes away what it has made, and ends; then the cluster does.
    ctrlc::set_handler(|| ()).context("catching Ctrl-C")
}

fn hint() -> Result<()> {
    if let Some(kubectl) = cluster::kubectl_hint()? {
        say(&format!("  {kubectl}"));
    }
    Ok(())
}

fn demo(kubeconfig: Option<&Path>) -> Result<Command> {
    let mut demo = Command::new(program()?);
    demo.args(["demo", "--components"]).arg(root().join("guests/target/components"));
    demo.arg("--cache-dir").arg(innkeeper_controlplane::cache_folder()?.join("code"));
    if let Some(kubeconfig) = kubeconfig {
        demo.arg("--kubeconfig").arg(kubeconfig);
    }
    Ok(demo)
}

/// The `innkeeper` program that cargo built.
fn program() -> Result<PathBuf> {
    let output = cargo(&["metadata", "--no-deps", "--format-version", "1"]).output()?;
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout)
        .context("cargo metadata gave something unreadable")?;
    let folder = metadata["target_directory"].as_str().context("cargo names no target folder")?;
    let program = Path::new(folder).join("debug/innkeeper");
    if !program.is_file() {
        bail!("{} is missing after the build", program.display());
    }
    Ok(program)
}
