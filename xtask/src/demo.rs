//! `cargo xtask demo`: builds Innkeeper and its guests, and shows them on a simulated cluster or a
//! real one.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;

use anyhow::{Context as _, Result, anyhow, bail};
use innkeeper_controlplane::{ControlPlane, Options};

use crate::command::{cargo, root, run as run_command};
use crate::progress::{Steps, complain, say};
use crate::{cluster, guests};

/// The guests of the demo.
const GUESTS: [&str; 7] =
    ["imo", "kabocha", "kuri", "maintpage", "podroute", "podroute-labelled", "postgres"];

/// The profile of the program, as .cargo/config.toml has it for xtask.
const PROFILE: &str = "demo";

/// The variable that names the user's cluster for tests.
const TEST_KUBECONFIG: &str = "INNKEEPER_TEST_KUBECONFIG";

/// The cluster on which the demo runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Where {
    /// A simulated cluster, or one that the arguments name.
    Here,
    /// A control plane that xtask starts for the demo.
    ControlPlane,
    /// The same with a node, on which pods run.
    Node,
}

/// Builds Innkeeper and its guests, and runs `innkeeper demo` with these arguments.
///
/// # Errors
/// The part that does not compile, or the error of the demo.
pub(crate) fn run(stage: Where, arguments: &[String]) -> Result<()> {
    let mut steps = Steps::new(if stage == Where::Here { 2 } else { 3 });
    steps.next(
        "Compile the host and the guests side by side (about 5 min on two idle cores the first time)",
    );
    build()?;
    steps.end("done");
    play(stage, arguments, PROFILE, &mut |what| steps.next(what))
}

/// Runs the demo with the guests and the program of a `cargo build` that the caller ran before.
///
/// # Errors
/// The error of the demo.
pub(crate) fn built(stage: Where, arguments: &[String]) -> Result<()> {
    play(stage, arguments, "debug", &mut |what| say(&format!("      {what}")))
}

/// Compiles the guests on a thread of its own, and the program.
fn build() -> Result<()> {
    // The host has about three times the work, so the guests get the smaller share of the cores.
    let jobs = thread::available_parallelism().map_or(1, usize::from).div_ceil(3);
    thread::scope(|scope| {
        let guests = scope.spawn(|| {
            let built = guests::build_with(&root(), Some(&GUESTS), Some(jobs));
            match &built {
                Ok(_) => say("guests: done"),
                // The host still compiles: the user need not wait for the error.
                Err(error) => complain(&format!("guests: {error:#}")),
            }
            built.map(drop)
        });
        let arguments =
            ["build", "--package", "innkeeper-cli", "--bin", "innkeeper", "--profile", PROFILE];
        let host = run_command(&mut cargo(&arguments));
        let guests = guests.join().map_err(|_| anyhow!("the build of the guests panicked"))?;
        host.and(guests)
    })
}

/// Starts the cluster, and runs the demo on it. `profile` is the folder of the program below the
/// target folder; `next` gets the steps.
fn play(
    stage: Where,
    arguments: &[String],
    profile: &str,
    next: &mut dyn FnMut(&str),
) -> Result<()> {
    let demo = |kubeconfig: Option<&Path>| demo(profile, kubeconfig);
    let mut tell = |line: &str| say(&format!("      {line}"));
    let options = Options { controller_manager: true, ..Options::default() };
    match stage {
        Where::Here => {
            next("Run the demo (it compiles the guests for this machine first, about 10 s)");
            run_command(demo(None)?.args(arguments))
        }
        Where::ControlPlane => {
            prepare()?;
            next("Start the control plane (about 8 min the first time)");
            let plane = ControlPlane::start_and_tell(&options, &mut tell)?;
            hint()?;
            next("Run the demo");
            run_command(demo(Some(plane.kubeconfig()))?.args(arguments))
        }
        Where::Node => {
            prepare()?;
            next("Start the control plane and a node (about 16 min the first time)");
            let cluster = innkeeper_node::Cluster::start(&options, &mut tell)?;
            hint()?;
            next("Run the demo");
            run_command(demo(Some(cluster.plane().kubeconfig()))?.args(arguments))
        }
    }
}

/// Checks what a cluster for the demo alone needs, and catches Ctrl-C.
fn prepare() -> Result<()> {
    if std::env::var_os(TEST_KUBECONFIG).is_some_and(|value| !value.is_empty()) {
        bail!(
            "{TEST_KUBECONFIG} names a cluster for tests; to run the demo on it: cargo xtask demo --kubeconfig ${TEST_KUBECONFIG}"
        );
    }
    // Ctrl-C is for the demo: it removes its objects and ends, then xtask ends the cluster.
    ctrlc::set_handler(|| ()).context("catching Ctrl-C")
}

fn hint() -> Result<()> {
    if let Some(kubectl) = cluster::kubectl_hint()? {
        say(&format!("      {kubectl}"));
    }
    Ok(())
}

fn demo(profile: &str, kubeconfig: Option<&Path>) -> Result<Command> {
    let mut demo = Command::new(program(profile)?);
    demo.args(["demo", "--components"]).arg(root().join("guests/target/components"));
    demo.arg("--cache-dir").arg(innkeeper_controlplane::cache_folder()?.join("code"));
    if let Some(kubeconfig) = kubeconfig {
        demo.arg("--kubeconfig").arg(kubeconfig);
    }
    Ok(demo)
}

/// The `innkeeper` program that cargo built.
fn program(profile: &str) -> Result<PathBuf> {
    let output = cargo(&["metadata", "--no-deps", "--format-version", "1"]).output()?;
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout)
        .context("cannot read the output of cargo metadata")?;
    let folder = metadata["target_directory"].as_str().context("cargo names no target folder")?;
    let program = Path::new(folder).join(profile).join("innkeeper");
    if !program.is_file() {
        bail!(
            "{} is missing; build it with `cargo build --package innkeeper-cli`",
            program.display()
        );
    }
    Ok(program)
}
