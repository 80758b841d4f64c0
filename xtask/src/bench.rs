//! `cargo xtask bench`: the figures of docs/benchmarks.md.

mod host;
mod peers;

use anyhow::{Result, bail};

use self::host::Host;
use crate::command::{cargo, root, run as run_command};
use crate::guests;
use crate::progress::Steps;

/// The argument that asks for the figures of admission only.
const ADMISSION: &str = "--admission";
/// The argument that asks for the cost of writes to the API server only.
const WRITES: &str = "--writes";
/// The argument that asks for the comparison with the controllers of others only.
const PEERS: &str = "--peers";

/// Measures the host on a control plane of its own, then the sandbox against native code and
/// with 100 modules, then admission. With `--admission` first, only admission: the arguments after
/// it are those of its bench. With `--peers` first, only the comparison with other controllers.
/// With `--writes` first, only what each way to write costs the API server. `--guided` measures the
/// program of `cargo xtask program`.
///
/// # Errors
/// The first step that fails.
pub(crate) fn run(arguments: &[String]) -> Result<()> {
    let (host, arguments) = Host::of(arguments);
    if let Some((PEERS, rest)) = arguments.split_first().map(|(first, rest)| (first.as_str(), rest))
    {
        return peers::run(rest, host);
    }
    if arguments.first().is_some_and(|first| first == WRITES) {
        return run_bench(&arguments, host);
    }
    if let Some((ADMISSION, rest)) =
        arguments.split_first().map(|(first, rest)| (first.as_str(), rest))
    {
        if host == Host::Guided {
            bail!(
                "--guided and {ADMISSION} do not go together: reviews are measured with the whole program in release; leave --guided out"
            );
        }
        let mut steps = Steps::new(3);
        steps.next("guests");
        guests::build(&root(), Some(&["required-labels", "binding-limit"]))?;
        steps.end("built");
        return admission(&mut steps, rest);
    }
    let mut steps = Steps::new(5 + host.steps());
    steps.next("guests");
    guests::build(&root(), None)?;
    steps.end("built");

    host.build(&mut steps)?;

    steps.next("the host on a control plane (about 5 min)");
    run_bench(&arguments, host)?;
    steps.end("measured");

    steps.next("the sandbox against native code, and 100 modules (about 6 min the first time)");
    run_command(&mut cargo(&["bench", "--package", "innkeeper-sandbox"]))?;
    steps.end("measured");
    admission(&mut steps, &[])
}

/// Runs the bench on a control plane.
fn run_bench(arguments: &[String], host: Host) -> Result<()> {
    let mut bench = cargo(&["run", "--package", "innkeeper-cluster-tests", "--bin", "bench", "--"]);
    run_command(bench.args(arguments).envs(host.programs()))
}

/// Measures the admission server under load, and what a review costs in the host.
fn admission(steps: &mut Steps, arguments: &[String]) -> Result<()> {
    steps.next("admission under load (about 10 min the first time)");
    let packages = ["--package", "innkeeper-cli", "--package", "innkeeper-admission-load"];
    run_command(cargo(&["build", "--release", "--bins"]).args(packages))?;
    let load = host::release().with_file_name("admission-load");
    let mut load = std::process::Command::new(load);
    run_command(load.args(arguments).env("INNKEEPER_BIN", host::release()))?;
    steps.end("measured");

    steps.next("what a review costs in the host (about 3 min the first time)");
    run_command(&mut cargo(&["bench", "--package", "innkeeper-operator", "--bench", "reviews"]))?;
    steps.end("measured");
    Ok(())
}
