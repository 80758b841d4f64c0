//! `cargo xtask bench`: the figures of docs/benchmarks.md.

use std::path::PathBuf;

use anyhow::Result;

use crate::command::{cargo, root, run as run_command};
use crate::guests;
use crate::progress::Steps;

/// Measures the host on a control plane of its own, then the sandbox against native code and
/// with 100 modules.
///
/// # Errors
/// The first step that fails.
pub(crate) fn run(arguments: &[String]) -> Result<()> {
    let mut steps = Steps::new(4);
    steps.next("guests");
    guests::build(&root(), None)?;
    steps.end("built");

    steps.next("host, in release (about 6 min the first time)");
    run_command(&mut cargo(&["build", "--release", "--package", "innkeeper-cli"]))?;
    steps.end("built");

    steps.next("the host on a control plane (about 5 min)");
    let target =
        std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from);
    let mut bench = cargo(&["run", "--package", "innkeeper-cluster-tests", "--bin", "bench", "--"]);
    bench.args(arguments).env("INNKEEPER_BIN", target.join("release/innkeeper"));
    run_command(&mut bench)?;
    steps.end("measured");

    steps.next("the sandbox against native code, and 100 modules (about 6 min the first time)");
    run_command(&mut cargo(&["bench", "--package", "innkeeper-sandbox"]))?;
    steps.end("measured");
    Ok(())
}
